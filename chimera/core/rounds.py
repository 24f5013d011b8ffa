"""Sharing an event loop: however many runs are busy on it, everybody else has their turn every few milliseconds.

An event loop looks at timers, sockets and keys once a round, after all that was ready has run. When the answers for
many runs arrive together, each of them would take its next step within the same round, which could last for seconds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from time import perf_counter
from weakref import WeakKeyDictionary

__all__ = ["Rounds", "rounds_of"]

_SECONDS = 0.004  # of a round, for all runs together
_MOST = 16  # so many steps are worth a round of their own


class Rounds:
    """The rounds of one event loop, and the runs that wait for one with time. Belongs to the thread of that loop."""

    def __init__(self) -> None:
        self._began: float | None = None  # when the first run of this round had its turn
        self._number = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._fit = 1  # how many of those that wait have their turn in one round

    async def turn(self, last: int = -1) -> int:
        """Return in a round that has time for the caller: this one, or a later one, in order of arrival.

        The number of that round is the result. Whoever had a turn in this round already, the `last` one, goes on.
        """
        if last != self._number and self._is_over():
            mine = asyncio.get_running_loop().create_future()
            self._waiting.append(mine)
            await mine
        return self._number

    def _is_over(self) -> bool:
        if self._began is None:
            self._begin()
            return False
        return bool(self._waiting) or perf_counter() - self._began > _SECONDS

    def _begin(self) -> None:
        self._began = perf_counter()
        asyncio.get_running_loop().call_soon(self._next, self._began)  # that is, in the round that follows

    def _next(self, began: float) -> None:
        """Begin the next round for those who wait, or leave that to the first one who comes."""
        self._number += 1
        self._began = None
        if not self._waiting:
            return
        if perf_counter() - began > _SECONDS:
            self._fit = max(1, self._fit // 2)
        elif self._fit < _MOST:
            self._fit += 1
        woken = 0
        while self._waiting and woken < self._fit:
            first = self._waiting.popleft()
            if not first.done():  # whoever gave up waiting takes nobody's place
                first.set_result(None)
                woken += 1
        self._begin()


_known: WeakKeyDictionary[asyncio.AbstractEventLoop, Rounds] = WeakKeyDictionary()


def rounds_of(loop: asyncio.AbstractEventLoop) -> Rounds:
    """Return the one `Rounds` of `loop`."""
    rounds = _known.get(loop)
    if rounds is None:
        rounds = _known[loop] = Rounds()
    return rounds
