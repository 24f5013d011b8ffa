"""Asking a person from wherever a run happens to be."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

from chimera.core.cancellation import CancellationToken
from chimera.types import PendingApproval

__all__ = ["AtHome", "is_asynchronous", "running_loop"]


class AtHome:
    """A coroutine function that belongs to one event loop, callable from other threads: it is awaited on its own loop.

    The caller waits for the answer. Cancelling `cancellation` gives the question up.
    """

    def __init__(self, fn: Any, home: asyncio.AbstractEventLoop, cancellation: CancellationToken) -> None:
        self._fn, self._home, self._cancellation = fn, home, cancellation

    def __call__(self, approval: PendingApproval) -> Any:
        if running_loop() is self._home:
            return self._fn(approval)
        question = asyncio.run_coroutine_threadsafe(self._fn(approval), self._home)

        def give_up() -> None:
            question.cancel()

        forget = self._cancellation.on_cancel(give_up)
        try:
            return question.result()
        finally:
            forget()


def is_asynchronous(fn: Any) -> bool:
    """Tell whether calling `fn` returns a coroutine, as far as can be seen without calling it."""
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None))  # noqa: B004


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in this thread, or None."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
