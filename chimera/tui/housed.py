"""An agent in a thread of its own, for whoever drives it from an event loop that must not wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from threading import Thread
from typing import Any

from chimera.core.loop_events import LoopEvent

__all__ = ["Housed"]

_End = BaseException | None


class Housed:
    """Runs the turns of `agent`, an `AgentDriver`, elsewhere: a question that blocks there blocks nobody else.

    `on_event` is called in that thread with each event, `on_cancel` by whoever cancels.
    """

    def __init__(self, agent: Any, on_event: Callable[[LoopEvent], None], on_cancel: Callable[[], None]) -> None:
        self.inner = agent
        self._on_event = on_event
        self._on_cancel = on_cancel

    async def send(self, text: str) -> AsyncGenerator[LoopEvent, None]:
        """Start a turn and yield its events. Giving the generator up cancels the turn and waits for its end."""
        home = asyncio.get_running_loop()
        queue: asyncio.Queue[LoopEvent | tuple[_End]] = asyncio.Queue()

        def tell(item: LoopEvent | tuple[_End]) -> None:
            home.call_soon_threadsafe(queue.put_nowait, item)

        thread = Thread(target=self._run, args=(text, tell), name="chimera-lane", daemon=True)
        thread.start()
        ended = False
        try:
            while True:
                item = await queue.get()
                if isinstance(item, tuple):
                    ended = True
                    if item[0] is not None:
                        raise item[0]
                    return
                yield item
        finally:
            if not ended:
                self.cancel()
                while not isinstance(await queue.get(), tuple):
                    pass

    def cancel(self) -> None:
        self.inner.cancel()
        self._on_cancel()

    def steer(self, text: str) -> bool:
        """Say something to the turn that runs; False where the loop takes nothing before it ends."""
        if self.inner.agent.loop is not None:
            return False
        self.inner.steer(text)
        return True

    def close(self) -> None:
        self.inner.close()

    def _run(self, text: str, tell: Callable[[LoopEvent | tuple[_End]], None]) -> None:
        end: _End = None
        try:
            asyncio.run(self._drive(text, tell))
        except Exception as problem:
            end = problem
        finally:
            tell((end,))

    async def _drive(self, text: str, tell: Callable[[LoopEvent | tuple[_End]], None]) -> None:
        async with aclosing(self.inner.send(text)) as turn:
            async for event in turn:
                self._on_event(event)
                tell(event)
