"""Loops that drive themselves: run in a worker, step by step, below a run that holds them to the lane's chains."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

from chimera.core.cancellation import CancellationToken, RunToken
from chimera.core.context import Context
from chimera.core.env import root_of
from chimera.core.loop_config import LoopConfig
from chimera.core.loop_events import LoopEvent, LoopEventType, LoopResult
from chimera.core.run import Run, enclosing
from chimera.errors import ProviderCallBlocked, RunCancelled
from chimera.types import AgentResult, StepResult

__all__ = ["below", "host_run", "steps_as_events"]

T = TypeVar("T")
_BLOCKED = str(ProviderCallBlocked("", ""))


def host_run(
    name: str,
    config: LoopConfig | None,
    provider: Any,
    tools: Any,
    context: Context,
    env: Any,
    token: CancellationToken | None,
    *,
    lane: str,
    listening: bool,
) -> Run:
    """Return a run that makes no calls of its own: whatever starts below it is held to `config` and heard by it."""
    run = Run(
        config,
        provider,
        tools,
        conversation_id=context.conversation_id,
        loop=name,
        lane=lane,
        root=root_of(env),
        listening=listening,
    )
    run.cancellation = RunToken(token, run.cancellation)
    return run


@contextmanager
def below(run: Run) -> Iterator[None]:
    """Let runs that start inside the block be held to what `run` is held to."""
    token = enclosing.set(run)
    try:
        yield
    finally:
        enclosing.reset(token)


async def steps_as_events(loop: Any, host: Run, context: Context, env: Any) -> AsyncGenerator[LoopEvent, None]:
    """Drive `loop.iter_steps` in a thread of its own and yield its steps as events, ending with exactly one `result`.

    Nothing is begun once `host` is cancelled; a step that is under way is finished first, and its tools are told.
    """
    worker = _Worker(loop, host, context, env)
    reason, cost, turn, output = "", 0.0, 0, ""
    try:
        while True:
            if host.cancellation.cancelled:
                await worker.finish()
                reason = RunCancelled().reason
                break
            item = await worker.next_item()
            while host.notes:
                yield host.notes.popleft()
            if isinstance(item, AgentResult):
                reason, cost, output = _reason_of(item, host), item.cost, item.output
                break
            turn, cost = item.step or turn, cost + item.cost
            for event in _events_of(item, turn):
                yield event
    except Exception as exc:
        while host.notes:
            yield host.notes.popleft()
        reason = f"error: {type(exc).__name__}: {exc}"
        yield LoopEvent(LoopEventType.ERROR, reason.removeprefix("error: "), turn)
    except BaseException:
        host.cancellation.cancel()
        raise
    finally:
        worker.close()
    seconds = perf_counter() - host.started
    ended = LoopResult(reason, list(context.messages), {}, cost, seconds * 1000, turn, output, host.policies)
    yield LoopEvent(LoopEventType.RESULT, ended, turn)


class _Worker:
    """One thread in which a generator of steps lives; it is closed there too, after whatever it is doing."""

    def __init__(self, loop: Any, host: Run, context: Context, env: Any) -> None:
        self._start = partial(loop.iter_steps, host.provider, list(host.tools.values()), context, env)
        self._host = host
        self._steps: Generator[StepResult, None, AgentResult] | None = None
        self._pool = ThreadPoolExecutor(1, "chimera-lane")
        self._context = copy_context()

    async def next_item(self) -> StepResult | AgentResult:
        return await asyncio.wrap_future(self._submit(self._advance))

    async def finish(self) -> None:
        await asyncio.wrap_future(self._submit(self._finish))

    def close(self) -> None:
        """Let go of the thread; should a step be under way, the generator is closed after it."""
        self._submit(self._finish)
        self._pool.shutdown(wait=False)

    def _submit(self, fn: Callable[[], T]) -> Future[T]:
        return self._pool.submit(self._context.run, fn)

    def _advance(self) -> StepResult | AgentResult:
        with below(self._host):
            if self._steps is None:
                self._steps = self._start()
            try:
                item: Any = next(self._steps)
            except StopIteration as stop:
                if isinstance(stop.value, AgentResult):
                    return stop.value
                kind = type(stop.value).__name__
                raise TypeError(f"the loop ended with a {kind}, which is no AgentResult") from None
        if isinstance(item, StepResult):
            return item
        raise TypeError(f"the loop took a step that is a {type(item).__name__}, which is no StepResult")

    def _finish(self) -> None:
        close = getattr(self._steps, "close", None)
        if close is not None:
            with below(self._host):
                close()


def _events_of(step: StepResult, turn: int) -> Iterator[LoopEvent]:
    if step.pending_approval is not None:
        return  # the step comes again, with its results, when the call is decided
    if step.message is not None:
        yield LoopEvent(LoopEventType.ASSISTANT, step.message, turn)
    for call, result in zip(step.tool_calls, step.tool_results, strict=False):
        yield LoopEvent(LoopEventType.TOOL_USE, call, turn)
        yield LoopEvent(LoopEventType.TOOL_RESULT, (call, result), turn)


def _reason_of(result: AgentResult, host: Run) -> str:
    if result.success:
        return "completed"
    if host.cancellation.cancelled:
        return RunCancelled().reason
    error = result.error or "the loop did not succeed"
    if error.startswith(_BLOCKED):
        return ProviderCallBlocked(error.removeprefix(_BLOCKED), "").reason
    return f"error: {error}"
