"""Ctrl-C and SIGTERM while a turn runs: the first one asks it to end, the next ones insist."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from chimera.cli.exits import INTERRUPTED, TERMINATED

__all__ = ["Interrupts", "raising"]

_CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}


class Interrupts:
    """Turns signals into calls of `stop`, which must be quick and safe in a signal handler.

    The first signal calls `stop`, so that the turn ends by itself and leaves the conversation whole. One more cancels
    the task that entered `watching`: for work that does not listen. A third one ends the process.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self.exit_code: int | None = None
        """What to exit with once a signal came; None before that."""

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch while the block runs, inside a task of a running event loop on the main thread."""
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None

        def handle(number: int, _frame: FrameType | None) -> None:
            again = self.exit_code is not None
            self.exit_code = _CODES[signal.Signals(number)]
            loop.call_soon_threadsafe(task.cancel if again else self._stop)
            if again:
                for each in _CODES:
                    signal.signal(each, signal.SIG_DFL)

        before: dict[signal.Signals, Any] = {number: signal.signal(number, handle) for number in _CODES}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def raising() -> Iterator[None]:
    """Let Ctrl-C raise `KeyboardInterrupt`, and SIGTERM end the process, while the block waits for a line.

    Nothing else goes on meanwhile, and the event loop cannot: it would learn of a signal only after the answer.
    """
    if threading.current_thread() is not threading.main_thread():  # where signals are none of its business
        yield
        return
    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler),
        signal.SIGTERM: signal.signal(signal.SIGTERM, signal.SIG_DFL),
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
