"""Running the turns of one agent in a thread of its own, so that neither it nor the screen waits for the other."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from queue import SimpleQueue
from threading import Thread
from typing import Any

from chimera.assembly.scrubbing import scrubbed, scrubbed_text
from chimera.tui.asking import Asking
from chimera.tui.inbox import Inbox, TurnEnded

__all__ = ["LaneThread"]


class LaneThread:
    """One agent (an `AgentDriver`) in one thread, with one event loop. Its events go into `inbox`.

    Methods are called from the thread of the screen and return at once. A turn that was cancelled and does not end by
    itself ends when it is cancelled again.
    """

    def __init__(self, name: str, agent: Any, inbox: Inbox, asking: Asking) -> None:
        self.name, self.agent = name, agent
        self._inbox = inbox
        self._asking = asking
        self._work: SimpleQueue[str | None] = SimpleQueue()
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._cancelled = False
        self._thread = Thread(target=self._run, name=f"chimera-lane-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def send(self, text: str) -> None:
        """Start a turn; when one runs, after it."""
        self._cancelled = False
        self._work.put(text)

    def steer(self, text: str) -> bool:
        """Say something to the turn that runs; False where the loop takes nothing before it ends."""
        if getattr(self.agent.agent, "loop", None) is not None:
            return False
        self.agent.steer(text)
        return True

    def cancel(self) -> None:
        again, self._cancelled = self._cancelled, True
        self.agent.cancel()
        self._asking.give_up(self.name)
        loop, task = self._loop, self._task
        if again and loop is not None and task is not None:
            loop.call_soon_threadsafe(task.cancel)

    def close(self, seconds: float = 5.0) -> bool:
        """Cancel what runs and end the thread; False when it has not ended after `seconds`."""
        self._work.put(None)
        if self._thread.is_alive():
            self.cancel()
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            while (text := self._work.get()) is not None:
                failure = ""
                try:
                    runner.run(self._turn(text))
                except asyncio.CancelledError:
                    failure = "interrupted"
                except Exception as problem:  # the person learns of it, and can go on
                    failure = scrubbed_text(f"{type(problem).__name__}: {problem}")
                finally:
                    self._task = None
                self._inbox.put(self.name, TurnEnded(failure))

    async def _turn(self, text: str) -> None:
        self._task = asyncio.current_task()
        async with aclosing(self.agent.send(text)) as turn:
            async for event in turn:
                self._asking.rewrites.see(event)
                self._inbox.put(self.name, scrubbed(event))
