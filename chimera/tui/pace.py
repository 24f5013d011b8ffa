"""When to repaint what streams: often enough to be followed, and never so that keys have to wait."""

from __future__ import annotations

__all__ = ["REPAINTS_PER_SECOND", "Pace"]

REPAINTS_PER_SECOND = 15
_SHARE = 0.25
"""Of the time, for repaints; the rest is for keys."""
_TYPING = 0.1
_LONGEST = 0.5


class Pace:
    """At most `REPAINTS_PER_SECOND`, fewer where they are slow, and few while somebody types. Times are in seconds."""

    def __init__(self) -> None:
        self._began = self._next = self._typed = float("-inf")

    def due(self, now: float) -> bool:
        """Tell whether it is time to repaint; then `painted` is to be called when that is done."""
        waiting = now - self._began
        if now < self._next or (now - self._typed < _TYPING and waiting < _LONGEST):
            return False
        self._began, self._next = now, now + 1 / REPAINTS_PER_SECOND
        return True

    def typed(self, now: float) -> None:
        """A key was pressed."""
        self._typed = now

    def painted(self, now: float) -> None:
        """The screen shows what `due` was asked for."""
        spent = now - self._began
        self._next = max(self._next, now + min(_LONGEST, spent * (1 - _SHARE) / _SHARE))
