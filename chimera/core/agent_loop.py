"""AgentLoop: the loop behind interactive agents, as a stream of events."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, ClassVar

from chimera.core.cancellation import CancellationToken, RunToken, as_token
from chimera.core.context import Context
from chimera.core.decisions import Interceptors
from chimera.core.drivers import async_drive
from chimera.core.effects import Effect, Emit
from chimera.core.engine import Program, execute_program
from chimera.core.loop import ReAct, new_run
from chimera.core.loop_config import LoopConfig, PermissionCallback
from chimera.core.loop_events import LoopEvent, LoopEventType, LoopResult
from chimera.core.run import Run
from chimera.core.steering import MessageQueue
from chimera.permissions.base import PermissionPolicy
from chimera.types import AgentResult, Message

__all__ = ["AgentLoop", "stream_events"]


class AgentLoop:
    """Asks the model and runs its calls, streaming what happens. One object may serve many runs at once."""

    name: ClassVar[str] = "agent"

    def run(
        self,
        messages: Sequence[Message],
        *,
        tools: Iterable[Any] | None,
        provider: Any,
        system_prompt: str | None,
        max_turns: int = 100,
        interceptors: Interceptors | None = None,
        permissions: PermissionPolicy | None = None,
        hooks: Any = None,
        compaction: Any = None,
        abort_signal: Any = None,
        message_queue: MessageQueue | None = None,
        stream: bool = False,
        permission_callback: PermissionCallback | None = None,
        config: LoopConfig | None = None,
        env: Any = None,
        context: Context | None = None,
        prompts: Sequence[Message] = (),
        lane: str = "",
    ) -> AsyncGenerator[LoopEvent, None]:
        """Run a conversation to its end and yield what happens; the last event is always the one `result`.

        `messages` is the conversation so far and is not touched; `result.data.messages` is the conversation after.
        With `context` the run goes on with that conversation in place: `messages` are added to it first, and it is
        whole on every way out, a cancelled task included. `prompts` are what the user says now: they pass the hooks.
        Without `permissions` nothing is asked; what a policy asks is put to `permission_callback`, and denied where
        there is none. `abort_signal` is a `CancellationToken` or an event with `is_set`. `config` sets everything that
        has no argument of its own; an argument that is given wins. A provider's failure is an `error` event and the
        reason of the result. Cancelling the task that iterates is passed on and ends the stream without a result.
        """
        if context is None:
            context = Context()
        # Both are called once somebody listens: the run is held to what holds then.
        settle = partial(
            _config,
            *(config, interceptors, permissions, hooks, compaction, abort_signal, message_queue, permission_callback),
        )
        begin: Callable[[ReAct], Run] = partial(
            new_run,
            provider=provider,
            tools=tools,
            context=context,
            env=env,
            lane=lane,
            listening=True,
            streaming=stream,
        )
        return async_drive(_conversation(max_turns, settle, begin, context, system_prompt, messages, prompts))


class _Turns(ReAct):
    name = AgentLoop.name


def _conversation(
    max_turns: int,
    settle: Callable[[], LoopConfig],
    begin: Callable[[ReAct], Run],
    context: Context,
    system_prompt: str | None,
    messages: Sequence[Message],
    prompts: Sequence[Message],
) -> Generator[Effect, Any, None]:
    loop = _Turns(max_turns, settle())
    context.system = system_prompt
    context.messages.extend(messages)
    yield from _told(begin(loop), partial(loop.program, context), context, prompts)


def _config(
    config: LoopConfig | None,
    interceptors: Interceptors | None,
    permissions: PermissionPolicy | None,
    hooks: Any,
    compaction: Any,
    abort_signal: Any,
    message_queue: MessageQueue | None,
    permission_callback: PermissionCallback | None,
) -> LoopConfig:
    cancellation = as_token(abort_signal)
    given: dict[str, Any] = {
        "interceptors": interceptors,
        "permissions": permissions,
        "hooks": hooks,
        "compaction": compaction,
        "cancellation": cancellation,
        "message_queue": message_queue,
        "permission_callback": permission_callback,
    }
    if config is None:
        return LoopConfig(yolo_mode=permissions is None, **given)
    if cancellation is not None and config.cancellation is not None:
        given["cancellation"] = RunToken(cancellation, config.cancellation)
    return replace(config, **{name: value for name, value in given.items() if value is not None})


def stream_events(
    run: Run,
    start: Callable[[], Program],
    context: Context,
    token: CancellationToken | None = None,
    prompts: Sequence[Message] = (),
) -> AsyncGenerator[LoopEvent, None]:
    """Run any loop's program and yield its `LoopEvent`s, ending with exactly one `result`.

    `token` cancels the run, besides the one that it was made with.
    """
    if token is not None:
        run.cancellation = RunToken(token, run.cancellation)
    return async_drive(_told(run, start, context, prompts))


def _told(
    run: Run, start: Callable[[], Program], context: Context, prompts: Sequence[Message]
) -> Generator[Effect, Any, None]:
    """Run the program, and tell how it ended, whichever way that was."""
    result: AgentResult | None = None
    failure: str | None = None
    try:
        result = yield from execute_program(run, start, context, prompts)
    except Exception as exc:
        failure = f"{type(exc).__name__}: {exc}"
        run.note(LoopEventType.ERROR, failure)
    if run.notes:
        yield run.told
    ended = LoopEvent(LoopEventType.RESULT, _loop_result(run, context, result, failure), run.turn)
    yield Emit(deque((ended,)))  # alone: what is noted from here on, by a tool that outlives its run, is nobody's


def _loop_result(run: Run, context: Context, result: AgentResult | None, failure: str | None) -> LoopResult:
    return LoopResult(
        reason=f"error: {failure}" if failure is not None else run.reason,
        messages=list(context.messages),
        usage=dict(run.usage),
        cost_usd=run.cost,
        duration_ms=(perf_counter() - run.started) * 1000,
        turn_count=run.turn,
        output=result.output if result is not None else "",
        policies=run.policies,
    )
