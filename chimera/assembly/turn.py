"""One turn of an assembled agent: iterate over it for its events, or await it for its result."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from chimera.core.loop_events import LoopEvent, LoopEventType, LoopResult

__all__ = ["Turn"]

T = TypeVar("T")


class Turn(Coroutine[Any, Any, T], AsyncIterator[LoopEvent], Generic[T]):
    """A turn that starts when somebody iterates or awaits.

    `async for event in turn` yields every `LoopEvent`; `await turn` (or `asyncio.run(turn)`) runs it to its end and
    returns the result that `finish` makes of the events' one `LoopResult`. Both may be combined: awaiting after some
    iteration runs the rest. A turn that nobody starts does nothing.
    """

    def __init__(self, events: AsyncGenerator[LoopEvent, None], finish: Callable[[LoopResult], T]) -> None:
        self._events = events
        self._finish = finish
        self._result: LoopResult | None = None
        self._waiter: Coroutine[Any, Any, T] | None = None

    def __aiter__(self) -> Turn[T]:
        return self

    async def __anext__(self) -> LoopEvent:
        event = await anext(self._events)
        if event.type is LoopEventType.RESULT:
            self._result = event.data
        return event

    async def aclose(self) -> None:
        """Give the turn up; the conversation stays one that a provider accepts."""
        await self._events.aclose()

    def __await__(self) -> Generator[Any, Any, T]:
        return self._drain().__await__()

    def send(self, value: Any) -> Any:
        return self._coroutine().send(value)

    def throw(self, *failure: Any) -> Any:
        return self._coroutine().throw(*failure)

    def close(self) -> None:
        if self._waiter is not None:
            self._waiter.close()

    def _coroutine(self) -> Coroutine[Any, Any, T]:
        if self._waiter is None:
            self._waiter = self._drain()
        return self._waiter

    async def _drain(self) -> T:
        try:
            async for _ in self:
                pass
        finally:
            await self._events.aclose()
        if self._result is None:
            raise RuntimeError("the turn was closed before it had a result")
        return self._finish(self._result)
