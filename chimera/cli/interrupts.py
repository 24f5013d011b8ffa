"""Ctrl-C and SIGTERM while a turn runs: the first one asks it to end, the next ones insist."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

from chimera.cli.exits import HUNG_UP, INTERRUPTED, TERMINATED
from chimera.hooks import process as hooks
from chimera.tools import _process as commands

__all__ = ["Interrupts", "raising"]

_CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED, signal.SIGHUP: HUNG_UP}
_PATIENT = 2
"""How many signals are requests."""


class Interrupts:
    """Turns signals into calls of `stop`, which must be quick and safe in a signal handler.

    The first signal calls `stop`, so that the turn ends by itself and leaves the conversation whole. One more cancels
    the task that entered `watching`: for work that does not listen. A third one kills the commands and hooks that
    still run and ends the process at once; so does SIGHUP, for nobody is there any more to see a turn end. Where SIGHUP
    is ignored (`nohup`) it stays so.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._count = 0
        self._acts: list[Callable[[], object]] = []
        self.exit_code: int | None = None
        """What to exit with once a signal came; None before that."""

    @contextmanager
    def held(self) -> Iterator[None]:
        """Handle signals while the block runs, in the main thread. It encloses the event loop: to end that is to wait
        for the threads that tools run in, and a signal in that time must count too."""
        handlers: dict[signal.Signals, Any] = dict.fromkeys(_CODES, self._handle)
        if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
            del handlers[signal.SIGHUP]
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Let signals stop the work of the block, inside a task of an event loop that runs within `held`."""
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        self._acts = [partial(loop.call_soon_threadsafe, act) for act in (self._stop, task.cancel)]
        if self.exit_code is not None:  # before there was anything to stop
            task.cancel()
        try:
            yield
        finally:
            self._acts = []

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self.exit_code = _CODES[signal.Signals(number)]
        self._count += 1
        if self._count > _PATIENT or number == signal.SIGHUP:
            hooks.kill_all()
            commands.kill_all()
            os._exit(self.exit_code)  # whatever else ends a process waits for threads
        if self._acts:
            self._acts[self._count - 1]()


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
