"""However a lane ends, it ends with one result, and nothing in it holds the event loop."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from chimera.assembly.loop_adapter import adapt_loop
from chimera.core.cancellation import CancellationToken
from chimera.core.context import Context
from chimera.core.loop import Loop
from chimera.core.loop_config import LoopConfig
from chimera.core.loop_events import LoopEvent, LoopEventType
from chimera.providers.faux import FauxProvider
from chimera.types import Message, ToolResult
from tests.assembly.lanes import (
    PLUGIN_LOOPS,
    every_lane,
    load_loop,
    of_type,
    prepared,
    result_of,
    run_lane,
)
from tests.core.loops.marks import marking, tool_messages
from tests.core.loops.scenes import Probe, calls

T = LoopEventType


@every_lane
def test_a_lane_that_fails_ends_with_an_error_and_a_result(name: str) -> None:
    if name in PLUGIN_LOOPS:
        load_loop(name)
    script = (
        [calls(), {"error": "the service is down"}]
        if name != "tot"
        else [*[calls()] * 3, {"error": "the service is down"}]
    )
    events = run_lane(name, FauxProvider(script), [Probe()], interceptors=marking())
    assert of_type(events, T.ERROR) == ["ProviderError: the service is down"]
    result = result_of(events)
    assert result.reason == "error: ProviderError: the service is down"
    assert [message.role for message in result.messages][-2:] == ["assistant", "tool"]


@every_lane
def test_a_lane_that_was_cancelled_before_it_began_sends_nothing(name: str) -> None:
    token = CancellationToken()
    token.cancel()
    provider = prepared(name)
    events = run_lane(name, provider, [Probe()], abort_signal=token)
    assert (result_of(events).reason, provider.requests) == ("aborted", [])


@every_lane
@pytest.mark.parametrize("kind", [CancellationToken, threading.Event, asyncio.Event])
def test_no_step_begins_after_a_cancellation(name: str, kind: Any) -> None:
    signal = kind()
    turn_off = signal.cancel if isinstance(signal, CancellationToken) else signal.set

    class Stop(Probe):
        def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
            turn_off()
            return super().execute(args, env)

    provider, tool = prepared(name), Stop()
    events = run_lane(name, provider, [tool], abort_signal=signal)
    assert result_of(events).reason == "aborted"
    assert len(tool.entered) == 1
    asked = len(provider.requests)
    assert asked < len(provider._steps)
    messages = result_of(events).messages
    assert [call.id for message in messages for call in message.tool_calls] == [
        message.call_id for message in messages if message.role == "tool"
    ]


@every_lane
def test_a_cancelled_task_is_cancelled_and_its_tools_are_told(name: str) -> None:
    class Wait(Probe):
        def __init__(self) -> None:
            super().__init__()
            self.started, self.told = threading.Event(), threading.Event()

        def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
            env.on_cancel(self.told.set)
            self.started.set()
            return ToolResult("told" if self.told.wait(10) else "forgotten")

    tool = Wait()
    context = Context()

    async def main() -> list[LoopEvent]:
        seen: list[LoopEvent] = []

        async def iterate() -> None:
            stream = adapt_loop(
                name,
                provider=prepared(name),
                tools=[tool],
                system_prompt=None,
                messages=[Message.user("x")],
                context=context,
            )
            async for event in stream:
                seen.append(event)

        task = asyncio.ensure_future(iterate())
        await asyncio.to_thread(tool.started.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(tool.told.wait, 10)
        return seen

    events = asyncio.run(main())
    assert not of_type(events, T.RESULT)
    assert context.messages[0] == Message.user("x")


@every_lane
def test_what_blocks_does_not_hold_the_event_loop(name: str) -> None:
    """Model and tool wait for the event loop: were they to hold it, nobody would ever go on."""

    class Waiting:
        """A provider that can only be called synchronously."""

        model_name = "waiting"

        def __init__(self, inner: Any, loop: asyncio.AbstractEventLoop) -> None:
            self.inner, self.loop = inner, loop

        def complete(self, messages: Any, tools: Any = None, **options: Any) -> Any:
            _meet(self.loop)
            return self.inner.complete(messages, tools, **options)

    class WaitingTool(Probe):
        def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
            _meet(loops[0])
            return super().execute(args, env)

    loops: list[asyncio.AbstractEventLoop] = []

    async def main() -> list[LoopEvent]:
        loops.append(asyncio.get_running_loop())
        provider = Waiting(prepared(name), loops[0])
        stream = adapt_loop(
            name, provider=provider, tools=[WaitingTool()], system_prompt=None, messages=[Message.user("x")]
        )
        return [event async for event in stream]

    assert result_of(asyncio.run(main())).reason == "completed"


def _meet(loop: asyncio.AbstractEventLoop) -> None:
    reached = threading.Event()
    loop.call_soon_threadsafe(reached.set)
    if not reached.wait(10):
        raise TimeoutError("the event loop is held")


@every_lane
def test_steps_are_bounded(name: str) -> None:
    if name in PLUGIN_LOOPS:
        load_loop(name)
    provider = FauxProvider([calls()], on_exhausted="repeat")
    result = result_of(run_lane(name, provider, [Probe()], max_steps=4, interceptors=marking()))
    assert not result.success
    limit = 9 if name in ("forgetful", "wrapped") else 4
    assert len(tool_messages(result.messages)) == limit


def broken_factory(config: LoopConfig | None = None) -> Loop:
    raise OSError("no memory")


@pytest.mark.parametrize(
    ("factory", "words"),
    [(broken_factory, "OSError: no memory"), (lambda config: object(), "object, which has no iter_steps")],
)
def test_a_loop_that_cannot_be_made_ends_the_lane(factory: Any, words: str) -> None:
    load_loop("broken", factory)
    events = run_lane("broken", FauxProvider("x"), interceptors=marking())
    assert [event.type for event in events] == [T.ERROR, T.RESULT]
    assert words in events[0].data
    assert result_of(events).messages == [Message.user("Do the task.")]
