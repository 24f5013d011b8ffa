"""One scenario, every way to drive it: what the engine's tests run their policies through."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from chimera.core.agent_loop import AgentLoop
from chimera.core.context import Context
from chimera.core.decisions import Interceptors
from chimera.core.loop import ReAct, drain_steps
from chimera.core.loop_config import LoopConfig
from chimera.core.loop_events import LoopEvent, LoopEventType, LoopResult
from chimera.core.tool import BaseTool
from chimera.events import Event, EventBus, InterceptorEvent
from chimera.providers.base import Response
from chimera.providers.faux import FauxProvider, FauxRequest
from chimera.types import Message, StepResult, ToolCall, ToolResult

__all__ = [
    "MODES",
    "STEP_MODES",
    "Boom",
    "Note",
    "Ran",
    "Scripted",
    "Summarise",
    "assert_acceptable",
    "call",
    "calling",
    "drive",
    "edits",
    "every_mode",
    "held",
    "step_mode",
    "tool_texts",
]


@dataclass
class Ran:
    """What a run left behind. `events` are the loop events of the modes that have them, `bus` those of the bus."""

    output: str
    success: bool
    reason: str | None
    messages: list[Message]
    requests: list[FauxRequest]
    steps: list[StepResult] = field(default_factory=list)
    events: list[LoopEvent] = field(default_factory=list)
    bus: list[Event] = field(default_factory=list)

    @property
    def decisions(self) -> list[InterceptorEvent]:
        """The decisions as the bus was told of them."""
        return [event for event in self.bus if isinstance(event, InterceptorEvent)]

    @property
    def noted(self) -> list[InterceptorEvent]:
        """The decisions as the stream of loop events tells of them."""
        return [event.data for event in self.events if event.type is LoopEventType.INTERCEPTOR]

    @property
    def answers(self) -> list[str]:
        """The texts of the tool messages."""
        return tool_texts(self.messages)


class Note(BaseTool):
    """Keeps the arguments that its body was entered with, and answers with `says`."""

    def __init__(self, name: str = "note", says: Any = "noted", *, safe: bool = False, effect: Any = "read") -> None:
        self.name = name
        self.says = says
        self.is_concurrency_safe = safe
        self.effect = effect
        self.entered: list[dict[str, Any]] = []

    def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        self.entered.append(args)
        return self.says if isinstance(self.says, ToolResult) else ToolResult(str(self.says))


class Boom(Note):
    """Raises, once it has noted that it ran."""

    def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        super().execute(args, env)
        raise self.says if isinstance(self.says, BaseException) else ValueError(self.says)


class Scripted:
    """As little of a provider as a loop accepts: one method, no base class. Exceptions of the script are raised."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requests: list[list[Message]] = []

    def complete(self, messages: Sequence[Message], tools: Any = None, **kwargs: Any) -> Any:
        self.requests.append(list(messages))
        answer = self.answers.pop(0) if self.answers else "done"
        if isinstance(answer, BaseException):
            raise answer
        return Response(answer) if isinstance(answer, str) else answer


class Summarise:
    """The smallest compaction strategy: when there are more than `limit` messages, the model sums all of them up."""

    name = "tiny"

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def due(self, messages: Sequence[Message], *, input_tokens: int, context_window: int) -> bool:
        return len(messages) > self.limit

    def compact(self, messages: Sequence[Message]) -> Any:
        asking = (Message.system("summarise"), *messages)
        answer = yield SimpleNamespace(messages=asking, kwargs={"max_tokens": 99})
        return [Message.user(f"summary: {answer.content}")]


def calling(*calls: tuple[str, Any] | str, **step: Any) -> Any:
    """Return a step of a script that calls tools: by name, or by name and arguments."""
    pairs = [(call, {}) if isinstance(call, str) else call for call in calls]
    return {"tool_calls": [{"name": name, "arguments": arguments} for name, arguments in pairs], **step}


def held(interceptors: Interceptors | None = None, **options: Any) -> LoopConfig:
    """Return a configuration that asks nobody, unless `options` say otherwise."""
    return LoopConfig(interceptors=interceptors, **{"yolo_mode": True, **options})


def drive(
    mode: str,
    script: Any,
    tools: Iterable[Any] | None = None,
    config: LoopConfig | None = None,
    *,
    prompt: str | None = "go",
    context: Context | None = None,
    max_steps: int = 20,
    env: Any = None,
    decide: Callable[[Any], None] | None = None,
) -> Ran:
    """Run the script of a model, or a provider, in one of `MODES`, to its end, and look at what it left behind.

    `decide` is handed each pending approval of the modes that iterate. The configuration gets a bus when it has none.
    """
    provider = FauxProvider(script) if isinstance(script, list | str) else script
    if context is None:
        context = Context("be good", [Message.user(prompt)] if prompt is not None else ())
    bus = [] if config is None else _listen(config)
    ran = _DRIVERS[mode](provider, list(tools or ()), context, config, max_steps, env, decide)
    ran.messages, ran.bus = list(context.messages), bus
    ran.requests = list(getattr(provider, "requests", ()))
    return ran


def _listen(config: LoopConfig) -> list[Event]:
    heard: list[Event] = []
    if config.event_bus is None:
        config.event_bus = EventBus()
        config.secrets_redaction = False if config.secrets_redaction is None else config.secrets_redaction
    config.event_bus.subscribe("*", heard.append)
    return heard


def _ran(result: Any, steps: list[StepResult]) -> Ran:
    return Ran(result.output, result.success, result.error, [], [], steps)


def _run(provider: Any, tools: list[Any], context: Context, config: Any, max_steps: int, env: Any, _decide: Any) -> Ran:
    return _ran(ReAct(max_steps, config).run(provider, tools, context, env), [])


def _iter_steps(
    provider: Any, tools: list[Any], context: Context, config: Any, max_steps: int, env: Any, decide: Any
) -> Ran:
    steps = ReAct(max_steps, config).iter_steps(provider, tools, context, env)
    taken: list[StepResult] = []

    def watched() -> Any:
        while True:
            try:
                step = next(steps)
            except StopIteration as stop:
                return stop.value
            _take(step, taken, decide)
            yield step

    return _ran(drain_steps(watched()), taken)


def _async_iter_steps(
    provider: Any, tools: list[Any], context: Context, config: Any, max_steps: int, env: Any, decide: Any
) -> Ran:
    async def main() -> Ran:
        taken: list[StepResult] = []
        stream = ReAct(max_steps, config).async_iter_steps(provider, tools, context, env)
        async for step in stream:
            _take(step, taken, decide)
        return _ran(stream.result, taken)

    return asyncio.run(main())


def _take(step: StepResult, taken: list[StepResult], decide: Any) -> None:
    if step.pending_approval is None:
        taken.append(step)
    elif decide is not None:
        decide(step.pending_approval)


def _agent(stream: bool) -> Callable[..., Ran]:
    def run(
        provider: Any, tools: list[Any], context: Context, config: Any, max_steps: int, env: Any, _decide: Any
    ) -> Ran:
        async def main() -> list[LoopEvent]:
            events = AgentLoop().run(
                (),
                tools=tools,
                provider=provider,
                system_prompt=context.system,
                max_turns=max_steps,
                config=config,
                context=context,
                stream=stream,
                env=env,
            )
            return [event async for event in events]

        events = asyncio.run(main())
        results = [event.data for event in events if event.type is LoopEventType.RESULT]
        assert len(results) == 1
        assert events[-1].data is results[0]
        result: LoopResult = results[0]
        return Ran(result.output, result.success, None if result.success else result.reason, [], [], [], events)

    return run


_DRIVERS: dict[str, Callable[..., Ran]] = {
    "run": _run,
    "iter_steps": _iter_steps,
    "async_iter_steps": _async_iter_steps,
    "agent": _agent(stream=False),
    "agent_streamed": _agent(stream=True),
}
MODES = tuple(_DRIVERS)
STEP_MODES = ("iter_steps", "async_iter_steps")
every_mode = pytest.mark.parametrize("mode", MODES)
step_mode = pytest.mark.parametrize("mode", STEP_MODES)


def tool_texts(messages: Iterable[Message]) -> list[str]:
    return [message.content for message in messages if message.role == "tool"]


def assert_acceptable(messages: Sequence[Message]) -> None:
    """Fail unless a provider would take the conversation: right behind each assistant message stands exactly one tool
    message for each of its calls, and nowhere else does one stand."""
    owed: list[str] = []
    for message in messages:
        if message.role == "tool":
            assert message.call_id in owed, f"nobody asked for {message.call_id}"
            owed.remove(message.call_id or "")
            continue
        assert not owed, f"{owed} are not answered"
        ids = [call.id for call in message.tool_calls]
        assert len(ids) == len(set(ids))
        owed = ids
    assert not owed, f"{owed} are not answered"


def call(name: str = "note", arguments: dict[str, Any] | None = None, call_id: str = "c1") -> ToolCall:
    return ToolCall(call_id, name, arguments or {})


def _attempts(*values: Any) -> Iterator[Callable[[], Any]]:
    """Yield every edit that somebody could think of making to what a seam hands out."""
    for value in values:
        if isinstance(value, list):
            yield from (value.clear, value.reverse, value.pop, partial(value.append, "junk"))
            yield partial(value.__setitem__, 0, "junk")
            yield from _attempts(*value)
        elif isinstance(value, dict):
            yield from (value.clear, value.popitem, partial(value.update, n=666), partial(value.setdefault, "extra", 1))
            yield from _attempts(*value.values())
        elif isinstance(value, tuple):
            yield from _attempts(*value)
        elif hasattr(value, "__dataclass_fields__"):
            for name in value.__dataclass_fields__:
                yield from _attempts(getattr(value, name))
                yield partial(setattr, value, name, "junk")


def edits(*values: Any) -> None:
    """Try every edit that somebody could think of."""
    for attempt in list(_attempts(*values)):
        with contextlib.suppress(TypeError, AttributeError, IndexError, KeyError):
            attempt()
