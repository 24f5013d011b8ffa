"""Cancelling a run from anywhere: another task, another thread, a signal handler."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Lock
from typing import Any

__all__ = ["CancellationToken", "RunToken", "as_token"]

_log = logging.getLogger("chimera.core")


class CancellationToken:
    """A switch that is turned once. `is_set` makes it usable where an event is expected."""

    def __init__(self) -> None:
        self._cancelled = False
        self._callbacks: list[Callable[[], None]] = []
        self._lock = Lock()

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    @property
    def needs_polling(self) -> bool:
        """True when the token notices a cancellation only by being looked at; whoever waits looks now and then."""
        return False

    def is_set(self) -> bool:
        return self.cancelled

    def cancel(self) -> None:
        """Cancel. Callbacks run in the calling thread, once each; later calls do nothing.

        A callback that raises is logged and keeps no other one from being called.
        """
        with self._lock:
            if self._cancelled:
                return
            self._cancelled = True
            callbacks, self._callbacks = self._callbacks, []
        for fn in callbacks:
            try:
                fn()
            except Exception:
                _log.warning("a callback of a cancellation raised", exc_info=True)

    def on_cancel(self, fn: Callable[[], None]) -> Callable[[], None]:
        """Call `fn` when the token is cancelled, at once when it already is. Returns a function that takes it back."""
        entry = _Once(fn)
        with self._lock:
            if not self._cancelled:
                self._callbacks.append(entry)
                return lambda: self._forget(entry)
        entry()
        return _nothing

    def _forget(self, entry: Callable[[], None]) -> None:
        with self._lock:
            self._callbacks = [item for item in self._callbacks if item is not entry]


class RunToken(CancellationToken):
    """The token of one run: cancelled with any of those that it follows, without ever cancelling one of them."""

    def __init__(self, *followed: CancellationToken | None) -> None:
        super().__init__()
        self._followed = tuple(token for token in followed if token is not None)
        self.followed = bool(self._followed)
        """True when somebody else can cancel the run."""

    @property
    def cancelled(self) -> bool:
        return self._cancelled or (self.followed and any(token.cancelled for token in self._followed))

    @property
    def needs_polling(self) -> bool:
        return any(token.needs_polling for token in self._followed)

    def on_cancel(self, fn: Callable[[], None]) -> Callable[[], None]:
        once = _Once(fn)
        undos = [super().on_cancel(once), *(token.on_cancel(once) for token in self._followed)]

        def undo() -> None:
            for one in undos:
                one()

        return undo


def as_token(signal: Any) -> CancellationToken | None:
    """Return `signal` when it is a token or None; raises `TypeError` for anything without `is_set`."""
    if signal is None or isinstance(signal, CancellationToken):
        return signal
    if not callable(getattr(signal, "is_set", None)):
        raise TypeError("an abort signal is a CancellationToken or an event with is_set()")
    return _Follower(signal)


class _Follower(CancellationToken):
    """A token that follows somebody else's event, which tells nobody that it was set."""

    def __init__(self, signal: Any) -> None:
        super().__init__()
        self._signal = signal

    @property
    def cancelled(self) -> bool:
        if not self._cancelled and self._signal.is_set():
            self.cancel()
        return self._cancelled

    @property
    def needs_polling(self) -> bool:
        return not self._cancelled


class _Once:
    """A callback that several tokens may call and that runs once."""

    __slots__ = ("_fn", "_taken")

    def __init__(self, fn: Callable[[], None]) -> None:
        self._fn = fn
        self._taken = Lock()

    def __call__(self) -> None:
        if self._taken.acquire(blocking=False):
            self._fn()


def _nothing() -> None:
    """Take back what has already happened."""
