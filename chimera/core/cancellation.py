"""Cancelling a run from anywhere: another task, another thread, a signal handler."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

__all__ = ["CancellationToken"]


class CancellationToken:
    """A switch that is turned once. `is_set` makes it usable where an event is expected."""

    def __init__(self) -> None:
        self._cancelled = False
        self._callbacks: list[Callable[[], None]] = []
        self._lock = Lock()

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def is_set(self) -> bool:
        return self._cancelled

    def cancel(self) -> None:
        """Cancel. Callbacks run in the calling thread, once each; later calls do nothing."""
        with self._lock:
            if self._cancelled:
                return
            self._cancelled = True
            callbacks, self._callbacks = self._callbacks, []
        for fn in callbacks:
            fn()

    def on_cancel(self, fn: Callable[[], None]) -> Callable[[], None]:
        """Call `fn` when the token is cancelled, at once when it already is. Returns a function that takes it back."""
        with self._lock:
            if not self._cancelled:
                self._callbacks.append(fn)
                return lambda: self._forget(fn)
        fn()
        return lambda: None

    def _forget(self, fn: Callable[[], None]) -> None:
        with self._lock:
            self._callbacks = [item for item in self._callbacks if item is not fn]


def as_token(signal: Any) -> CancellationToken | None:
    """Return `signal` when it is a token or None; raises `TypeError` for anything without `is_set`."""
    if signal is None or isinstance(signal, CancellationToken):
        return signal
    if not callable(getattr(signal, "is_set", None)):
        raise TypeError("an abort signal is a CancellationToken or an event with is_set()")
    return _Follower(signal)


class _Follower(CancellationToken):
    """A token that follows somebody else's event; whoever drives the run calls `poll` now and then."""

    def __init__(self, signal: Any) -> None:
        super().__init__()
        self._signal = signal

    @property
    def cancelled(self) -> bool:
        self.poll()
        return self._cancelled

    def is_set(self) -> bool:
        return self.cancelled

    def poll(self) -> None:
        if not self._cancelled and self._signal.is_set():
            self.cancel()
