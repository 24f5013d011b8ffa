"""AgentLoop: however a run is left or cut short, it is over then, and nothing comes after its result."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from chimera.core.agent_loop import AgentLoop
from chimera.core.cancellation import CancellationToken
from chimera.core.context import Context
from chimera.core.decisions import Interceptors
from chimera.core.loop_events import LoopEvent
from chimera.errors import RunCancelled
from chimera.providers.base import Response, StreamChunk
from chimera.providers.faux import FauxProvider
from chimera.types import Message, ToolResult
from tests.core.driving import Note, assert_acceptable, calling
from tests.core.test_agent_loop import block, both, events, kinds


async def test_nothing_comes_after_the_result() -> None:
    """Not even from a tool that outlives its run, while whoever listens takes their time over the result."""
    cancelled, told = threading.Event(), threading.Event()

    class Outlives(Note):
        def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
            env.on_cancel(cancelled.set)
            assert cancelled.wait(10)
            assert resulted.wait(10)
            env.run_tool("note", {})
            told.set()
            return ToolResult("late")

    token, resulted, found = CancellationToken(), threading.Event(), []
    run = AgentLoop().run(
        [Message.user("go")],
        tools=[Outlives("outlives"), Note()],
        provider=FauxProvider([calling("outlives"), "never"]),
        system_prompt=None,
        interceptors=Interceptors(tool_call=[lambda call: block("no") if call.name == "note" else None]),
        abort_signal=token,
    )
    async for event in run:
        found.append(event)
        if event.type == "tool_use":
            asyncio.get_running_loop().call_later(0.05, token.cancel)
        if event.type == "result":
            resulted.set()
            assert await asyncio.to_thread(told.wait, 10)
    assert kinds(found)[-1] == "result"
    assert kinds(found).count("interceptor") == 0


class CannotClose(FauxProvider):
    """A provider whose stream fails when it is closed."""

    async def async_stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[StreamChunk, None]:
        try:
            yield StreamChunk("a")
            yield StreamChunk(response=Response("a"))
        finally:
            raise ConnectionError("closing failed")


def streamed(provider: Any, context: Context) -> AsyncGenerator[LoopEvent, None]:
    return AgentLoop().run(
        [Message.user("go")], tools=None, provider=provider, system_prompt=None, context=context, stream=True
    )


async def first_chunk(run: AsyncGenerator[LoopEvent, None]) -> None:
    async for event in run:
        if event.type == "assistant_chunk":
            return


async def test_a_stream_that_fails_to_close_keeps_nobody_from_leaving() -> None:
    context = Context()
    run = streamed(CannotClose("never"), context)
    await first_chunk(run)
    await run.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(run)
    assert_acceptable(context.messages)


class SlowToClose(FauxProvider):
    """A provider whose stream takes its time to close."""

    async def async_stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[StreamChunk, None]:
        try:
            yield StreamChunk("a")
            yield StreamChunk(response=Response("a"))
        finally:
            await asyncio.sleep(10)


async def test_leaving_a_stream_can_be_cancelled() -> None:
    run = streamed(SlowToClose("never"), Context())
    await first_chunk(run)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await run.aclose()


@pytest.mark.parametrize("thrown", [KeyError("mine"), asyncio.CancelledError("mine"), RunCancelled("mine")])
async def test_what_is_thrown_in_at_a_chunk_comes_out_and_closes_the_run(thrown: BaseException) -> None:
    context = Context()
    run = streamed(FauxProvider("a long answer"), context)
    await first_chunk(run)
    with pytest.raises(type(thrown), match="mine"):
        await run.athrow(thrown)
    with pytest.raises(StopAsyncIteration):
        await anext(run)
    assert_acceptable(context.messages)


class Translates(FauxProvider):
    """A provider that makes a failure of its own of being cancelled."""

    async def async_complete(self, *args: Any, **kwargs: Any) -> Response:
        try:
            return await super().async_complete(*args, **kwargs)
        except asyncio.CancelledError:
            raise ConnectionError("closed by us") from None

    async def async_stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[StreamChunk, None]:
        yield StreamChunk(response=await self.async_complete(*args, **kwargs))


@both
async def test_a_failure_that_a_provider_makes_of_an_abort_does_not_hide_it(stream: bool) -> None:
    """And leaves the task as it was: a timeout around the run is still one."""
    token, task = CancellationToken(), asyncio.current_task()
    assert task is not None

    async def run_and_wait() -> None:
        asyncio.get_running_loop().call_later(0.02, token.cancel)
        found = await events(Translates("never", delay=10), abort_signal=token, stream=stream)
        assert (found[-1].data.reason, task.cancelling()) == ("aborted", 0)
        await asyncio.sleep(5)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await run_and_wait()
