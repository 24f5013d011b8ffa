"""Cancelling from anywhere: what stops, what is said about it, and whose switch was turned."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from chimera.core.agent_loop import AgentLoop
from chimera.core.cancellation import CancellationToken, RunToken, as_token
from chimera.core.context import Context
from chimera.core.decisions import Interceptors
from chimera.core.loop import ReAct, async_drain_steps
from chimera.core.loop_config import LoopConfig
from chimera.core.loop_events import LoopResult
from chimera.core.tool import BaseTool
from chimera.permissions.base import PermissionAction, PermissionPolicy
from chimera.providers.base import Response, StreamChunk
from chimera.providers.faux import FauxProvider
from chimera.types import Message, ToolResult
from tests.core.driving import MODES, Note, assert_acceptable, calling, drive, every_mode, held, tool_texts

UNDER_WAY = "The run was cancelled while this call was under way; it may have taken effect."
ASYNC_MODES = pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in ("run", "iter_steps")])


class TestTokens:
    def test_a_token_is_turned_once(self) -> None:
        token, calls = CancellationToken(), []
        token.on_cancel(lambda: calls.append("a"))
        forget = token.on_cancel(lambda: calls.append("b"))
        forget()
        assert not token.cancelled
        token.cancel()
        token.cancel()
        assert (token.cancelled, token.is_set(), calls) == (True, True, ["a"])
        token.on_cancel(lambda: calls.append("late"))()
        assert calls == ["a", "late"]

    def test_the_same_callback_twice_is_two_registrations(self) -> None:
        token, calls = CancellationToken(), []

        def fn() -> None:
            calls.append(1)

        token.on_cancel(fn)
        token.on_cancel(fn)()
        token.cancel()
        assert calls == [1]

    def test_a_callback_that_raises_keeps_no_other_from_being_called(self, caplog: pytest.LogCaptureFixture) -> None:
        token, calls = CancellationToken(), []

        def broken() -> None:
            raise ValueError("broken")

        token.on_cancel(broken)
        token.on_cancel(lambda: calls.append(1))
        with caplog.at_level(logging.WARNING):
            token.cancel()
        assert calls == [1]
        assert "a callback of a cancellation raised" in caplog.text

    def test_a_runs_token_follows_and_does_not_lead(self) -> None:
        first, second = CancellationToken(), CancellationToken()
        run, calls = RunToken(first, None, second), []
        run.on_cancel(lambda: calls.append(1))
        run.on_cancel(lambda: calls.append(2))()
        second.cancel()
        first.cancel()
        run.cancel()
        assert (run.cancelled, calls) == (True, [1])
        leader = CancellationToken()
        follower = RunToken(leader)
        follower.cancel()
        assert (follower.cancelled, leader.cancelled) == (True, False)
        assert (RunToken().followed, follower.followed) == (False, True)

    def test_a_run_that_is_over_leaves_nothing_with_the_token_it_followed(self) -> None:
        token = CancellationToken()
        for _ in range(3):
            drive("async_iter_steps", [calling("note"), "done"], [Note()], held(cancellation=token))
            drive("agent", [calling("note"), "done"], [Note()], held(cancellation=token))
        assert token._callbacks == []

    def test_callbacks_from_many_threads_run_once_each(self) -> None:
        token, count, lock = CancellationToken(), [0], threading.Lock()

        def fn() -> None:
            with lock:
                count[0] += 1

        threads = [threading.Thread(target=token.on_cancel, args=(fn,)) for _ in range(20)]
        threads[10:10] = [threading.Thread(target=token.cancel)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert count == [20]

    @pytest.mark.parametrize("event", [threading.Event, asyncio.Event])
    def test_foreign_events_are_followed(self, event: Any) -> None:
        signal = event()
        token = as_token(signal)
        assert token is not None
        calls: list[int] = []
        token.on_cancel(lambda: calls.append(1))
        assert (token.needs_polling, token.is_set(), RunToken(token).needs_polling) == (True, False, True)
        signal.set()
        assert (token.is_set(), token.needs_polling, calls) == (True, False, [1])

    def test_tokens_pass_as_they_are_and_junk_is_refused(self) -> None:
        token = CancellationToken()
        assert as_token(token) is token
        assert as_token(None) is None
        for junk in (1, "x", object()):
            with pytest.raises(TypeError, match="an abort signal is"):
                as_token(junk)
            with pytest.raises(TypeError, match="an abort signal is"):
                LoopConfig(cancellation=junk)  # type: ignore[arg-type]


class AskAll(PermissionPolicy):
    def evaluate(self, tool_name: str, args: Any) -> PermissionAction:
        return PermissionAction.ASK


class Waits(BaseTool):
    """Waits until its run is cancelled, in the way that `kind` says."""

    def __init__(self, kind: str, started: threading.Event) -> None:
        self.name = kind
        self.started = started
        self.is_concurrency_safe = kind.startswith("safe")
        self.told = 0
        self.over = threading.Event()
        if "async" in kind:
            self.async_execute = self._wait  # type: ignore[method-assign]

    def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        stop = threading.Event()
        env.on_cancel(stop.set)
        self.started.set()
        assert stop.wait(10)
        self.told += env.cancelled
        self.over.set()
        return ToolResult("stopped")

    async def _wait(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        self.started.set()
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            self.told += 1
            self.over.set()
            raise
        return ToolResult("never")


KINDS = ("thread", "async", "safe thread", "safe async")


def cancel_when(started: threading.Event, token: Any) -> None:
    def wait() -> None:
        assert started.wait(10)
        token.set() if hasattr(token, "set") else token.cancel()

    threading.Thread(target=wait).start()


def expect_aborted(mode: str, ran: Any) -> None:
    assert not ran.success
    assert ran.reason == ("aborted" if mode.startswith("agent") else "the run was cancelled")
    assert_acceptable(ran.messages)


@pytest.mark.parametrize(
    ("mode", "kind", "make"),
    [
        (mode, kind, make)
        for mode in MODES
        for kind in KINDS
        for make in (CancellationToken, threading.Event)
        # Nothing looks at a foreign event, and nothing interrupts a coroutine, while the only thread is busy.
        if mode not in ("run", "iter_steps") or ("async" not in kind and make is CancellationToken)
    ],
)
def test_a_tool_that_runs_is_told_and_the_run_ends(mode: str, kind: str, make: Any) -> None:
    started, token = threading.Event(), make()
    waits = Waits(kind, started)
    cancel_when(started, token)
    script = [calling(kind, kind, "note"), "never"]
    note = Note()
    ran = drive(mode, script, [waits, note], held(cancellation=token))
    expect_aborted(mode, ran)
    assert waits.over.wait(5)
    assert waits.told >= 1
    assert note.entered == []
    assert len(ran.requests) == 1
    assert ran.answers[-1] == "The run was cancelled before this call was started."


@ASYNC_MODES
@pytest.mark.parametrize("make", [CancellationToken, threading.Event, asyncio.Event])
def test_a_provider_call_that_waits_is_given_up(mode: str, make: Any) -> None:
    started, token, gone = threading.Event(), make(), []

    class Slow(FauxProvider):
        async def async_complete(self, *_: Any, **__: Any) -> Response:
            await self._hang()
            return Response("never")

        async def async_stream(self, *_: Any, **__: Any) -> Any:
            yield StreamChunk("so f")
            await self._hang()

        async def _hang(self) -> None:
            started.set()
            try:
                await asyncio.sleep(10)
            finally:
                gone.append(1)

    if make is asyncio.Event:
        started.set()
    cancel_when(started, token)
    ran = drive(mode, Slow(), [], held(cancellation=token))
    expect_aborted(mode, ran)
    assert gone == [1] or make is asyncio.Event


@every_mode
def test_a_run_that_is_cancelled_before_it_begins_calls_nobody(mode: str) -> None:
    token = CancellationToken()
    token.cancel()
    ran = drive(mode, ["never"], [], held(cancellation=token))
    expect_aborted(mode, ran)
    assert ran.requests == []


@every_mode
@pytest.mark.parametrize("place", ["tool_call", "tool_result", "tool"])
def test_cancelling_from_within_the_run_stops_it_at_the_next_door(mode: str, place: str) -> None:
    token = CancellationToken()
    chain: list[Any] = [lambda *_: token.cancel()]

    class Cancels(BaseTool):
        name = "cancels"

        def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
            if place == "tool":
                token.cancel()
            return ToolResult("ran")

    chains = None if place == "tool" else Interceptors(**{place: chain})
    ran = drive(mode, [calling("cancels", "note"), "never"], [Cancels(), Note()], held(chains, cancellation=token))
    expect_aborted(mode, ran)
    assert len(ran.requests) == 1
    assert ran.answers[1] == "The run was cancelled before this call was started."


class TestAgentLoop:
    async def run(self, provider: Any, tools: Any = None, **options: Any) -> tuple[list[Any], LoopResult]:
        run = AgentLoop().run([Message.user("go")], tools=tools, provider=provider, system_prompt=None, **options)
        events = [event async for event in run]
        return events, events[-1].data

    @pytest.mark.parametrize("make", [CancellationToken, threading.Event, asyncio.Event])
    @pytest.mark.parametrize("stream", [False, True])
    async def test_an_abort_signal_ends_the_run_with_a_result(self, make: Any, stream: bool) -> None:
        signal = make()
        asyncio.get_running_loop().call_later(0.03, signal.set if hasattr(signal, "set") else signal.cancel)
        events, result = await self.run(FauxProvider("never", delay=10), abort_signal=signal, stream=stream)
        assert (result.reason, result.success) == ("aborted", False)
        assert [event.type for event in events].count("error") == 0

    async def test_an_abort_signal_and_a_token_of_the_configuration_both_count(self) -> None:
        for which in range(2):
            tokens = CancellationToken(), CancellationToken()
            asyncio.get_running_loop().call_later(0.02, tokens[which].cancel)
            config = held(cancellation=tokens[1])
            _, result = await self.run(FauxProvider("never", delay=10), abort_signal=tokens[0], config=config)
            assert result.reason == "aborted"
            assert not tokens[1 - which].cancelled

    async def test_a_cancelled_task_ends_the_stream_and_tells_the_tools(self) -> None:
        started = threading.Event()
        waits, context = Waits("thread", started), Context(None, [Message.user("go")])
        provider = FauxProvider([calling("thread"), "never"])
        events = AgentLoop().run((), tools=[waits], provider=provider, system_prompt=None, context=context)
        task = asyncio.ensure_future(_exhaust(events))
        await asyncio.to_thread(started.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert tool_texts(context.messages) == [UNDER_WAY]
        await asyncio.to_thread(waits.over.wait, 5)
        assert waits.told == 1

    async def test_a_time_limit_around_a_run_is_a_time_limit(self) -> None:
        context = Context(None, [Message.user("go")])
        stream = ReAct(config=held(cancellation=CancellationToken())).async_iter_steps(
            FauxProvider("never", delay=10), [], context
        )
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(async_drain_steps(stream), 0.02)

    async def test_an_answer_that_comes_with_the_cancellation_is_no_mishap(self) -> None:
        """The signal and the answer at the same moment: the run ends, and the task is not left half cancelled."""
        for _ in range(20):
            token = CancellationToken()

            class Last(FauxProvider):
                def __init__(self, token: CancellationToken) -> None:
                    super().__init__()
                    self.token = token

                async def async_complete(self, *_: Any, **__: Any) -> Response:
                    self.token.cancel()
                    return Response("just in time")

            _, result = await self.run(Last(token), abort_signal=token)
            assert result.reason in ("completed", "aborted")
            await asyncio.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    async def test_work_that_swallows_its_cancellation_does_not_hold_the_run_for_ever(self) -> None:
        class Stubborn(BaseTool):
            name = "stubborn"

            async def async_execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
                try:
                    await asyncio.sleep(10)
                except asyncio.CancelledError:
                    return ToolResult("I do not mind")
                return ToolResult("never")

        token = CancellationToken()
        asyncio.get_running_loop().call_later(0.02, token.cancel)
        events, result = await self.run(FauxProvider([calling("stubborn")] * 3), [Stubborn()], abort_signal=token)
        assert result.reason == "aborted"
        assert tool_texts(result.messages) == ["I do not mind"]
        task = asyncio.current_task()
        assert task is not None
        assert (task.cancelling(), len(events) > 0) == (0, True)


async def _exhaust(events: Any) -> None:
    async for _ in events:
        pass


@ASYNC_MODES
@pytest.mark.parametrize("place", ["provider", "callback"])
@pytest.mark.parametrize("blocking", [False, True])
def test_a_cancellation_inside_what_is_awaited_is_its_failure_and_not_the_end_of_the_task(
    mode: str, place: str, blocking: bool
) -> None:
    def cancelled(*_: Any, **__: Any) -> Any:
        raise asyncio.CancelledError

    async def cancelled_later(*_: Any, **__: Any) -> Any:
        raise asyncio.CancelledError

    if place == "callback":
        config = LoopConfig(AskAll(), permission_callback=cancelled if blocking else cancelled_later)
        ran = drive(mode, [calling("note"), "done"], [Note()], config)
        assert "asking failed: RuntimeError" in ran.answers[0]
        return
    provider = FauxProvider()
    provider.complete = cancelled  # type: ignore[method-assign]
    provider.async_complete = provider.async_stream = None if blocking else cancelled_later  # type: ignore[method-assign, assignment]
    if mode.startswith("agent"):
        assert str(drive(mode, provider, [], held()).reason).startswith("error: ")
    else:
        with pytest.raises(RuntimeError):
            drive(mode, provider, [], held())
