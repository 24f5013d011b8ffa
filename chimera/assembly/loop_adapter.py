"""Lanes: strategy loops, and loops that plugins bring, as streams of events under the chains that they are handed."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from chimera.assembly.hosted import below, host_run, steps_as_events
from chimera.core.agent_loop import stream_events
from chimera.core.cancellation import as_token
from chimera.core.context import Context
from chimera.core.decisions import Interceptors
from chimera.core.loop import Loop, new_run
from chimera.core.loop_config import LoopConfig
from chimera.core.loop_events import LoopEvent, LoopEventType, LoopResult
from chimera.core.loops.plan_execute import PlanAndExecute
from chimera.core.loops.reflexion import Reflexion
from chimera.core.loops.tree_of_thought import TreeOfThought
from chimera.errors import MisuseError
from chimera.plugins import PluginExtensionRegistry
from chimera.types import Message

__all__ = ["REAL_LOOPS", "adapt_loop", "is_real_loop", "lane_of", "loop_names"]

_SHIPPED: dict[str, Callable[..., Loop]] = {
    "plan-execute": PlanAndExecute,
    "reflexion": Reflexion,
    "tot": TreeOfThought,
}
REAL_LOOPS: tuple[str, ...] = tuple(_SHIPPED)
"""The strategy loops that are shipped, by the names that lanes know them by."""


def is_real_loop(name: object) -> bool:
    """Tell whether `name` names a strategy loop that is shipped."""
    return name in REAL_LOOPS


def loop_names() -> list[str]:
    """Return the names that `adapt_loop` takes: those of the shipped loops, then those that plugins registered."""
    return list(dict.fromkeys((*REAL_LOOPS, *PluginExtensionRegistry.get_loops())))


def lane_of(spec: str) -> tuple[str, str | None]:
    """Split a lane such as `model:reflexion` into the model and the loop.

    The loop is None for a model alone. A colon that is followed by anything but the name of a loop is the model's own.
    """
    model, _, name = spec.rpartition(":")
    return (model, name) if model and name in loop_names() else (spec, None)


def adapt_loop(
    loop_name: str,
    *,
    provider: Any,
    tools: Iterable[Any] | None,
    system_prompt: str | None,
    messages: Sequence[Message],
    env: Any = None,
    max_steps: int = 50,
    abort_signal: Any = None,
    interceptors: Interceptors | None = None,
    context: Context | None = None,
    lane: str = "",
    stream: bool = False,
) -> AsyncGenerator[LoopEvent, None]:
    """Run the loop that `loop_name` names, shipped or registered by a plugin, and yield its events.

    The last event is the one `result`, however the run ends; only cancelling the task that iterates ends the stream
    without one. `messages` is the conversation so far and is not touched; with `context` the run goes on with that
    conversation in place, and `messages` are added to it first. `abort_signal` is a `CancellationToken` or an event
    with `is_set`: no step begins after it. Whatever blocks (a model, a tool, a loop that is no program) runs off the
    event loop.

    `interceptors` are the chains of the lane as they are, merged by whoever calls. The configuration of the loop holds
    them and nothing else: lanes check no permissions. Without chains a shipped loop is built without a configuration. A
    plugin's loop is made by `factory(config=...)`, with `max_steps` where the factory takes it, and is held to the
    chains whatever it makes of the configuration.

    Raises `MisuseError` for a name that is unknown, or that a plugin took although a shipped loop has it.
    """
    factory = _factory(loop_name)
    token = as_token(abort_signal)
    config = LoopConfig(interceptors=interceptors, yolo_mode=True) if interceptors else None
    context = Context(system_prompt) if context is None else context
    context.system = system_prompt
    context.messages.extend(messages)
    options: dict[str, Any] = {"lane": lane, "listening": True}

    def start() -> AsyncGenerator[LoopEvent, None]:
        loop = _made(factory, max_steps, config)
        host = host_run(loop_name, config, provider, tools, context, env, token, **options)
        if not _is_program(loop):
            return steps_as_events(loop, host, context, env)
        if loop.config is config:
            run = new_run(loop, provider, tools, context, env, streaming=stream, **options)
        else:
            with below(host):
                run = new_run(loop, provider, tools, context, env, streaming=stream, **options)
        return stream_events(run, lambda: loop.program(context), context, token)

    return _ending_once(start, context)


def _factory(name: str) -> Callable[..., Any]:
    registered = PluginExtensionRegistry.get_loops()
    if name in _SHIPPED and name in registered:
        raise MisuseError(f"the loop {name!r} is shipped, and a plugin registers another one under the same name")
    factory = _SHIPPED.get(name) or registered.get(name)
    if factory is None:
        near = get_close_matches(str(name), loop_names(), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(loop_names())}"
        raise MisuseError(f"there is no loop {name!r}; {hint}")
    return factory


def _made(factory: Callable[..., Any], max_steps: int, config: LoopConfig | None) -> Any:
    if factory in _SHIPPED.values():
        return factory(max_steps=max_steps) if config is None else factory(max_steps=max_steps, config=config)
    limit = {"max_steps": max_steps} if _takes(factory, "max_steps") else {}
    loop = factory(config=config, **limit)
    if not callable(getattr(loop, "iter_steps", None)):
        raise MisuseError(f"the factory of the loop made a {type(loop).__name__}, which has no iter_steps")
    return loop


def _takes(factory: Callable[..., Any], parameter: str) -> bool:
    try:
        return parameter in inspect.signature(factory).parameters
    except (TypeError, ValueError):  # what is written in C, say, need not tell what it takes
        return False


def _is_program(loop: Any) -> bool:
    """Tell whether all that a loop does is in its program; one that drives itself in some other way is let do so."""
    return isinstance(loop, Loop) and type(loop).iter_steps is Loop.iter_steps


async def _ending_once(
    start: Callable[[], AsyncGenerator[LoopEvent, None]], context: Context
) -> AsyncGenerator[LoopEvent, None]:
    """Start a stream and pass it on; one that cannot be started ends like one that failed."""
    try:
        events = start()
    except Exception as exc:
        failure = f"{type(exc).__name__}: {exc}"
        yield LoopEvent(LoopEventType.ERROR, failure)
        yield LoopEvent(LoopEventType.RESULT, LoopResult(f"error: {failure}", list(context.messages)))
        return
    try:
        async for event in events:
            yield event
    finally:
        await events.aclose()
