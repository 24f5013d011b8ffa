"""Sharing an event loop: however many runs are busy on it, everybody else has their turn every few milliseconds.

An event loop looks at timers, sockets and keys once a round, after all that was ready has run. When the answers for
many runs arrive together, each of them would take its next step within the same round, which could last for seconds.
What a run does between two places where it may wait is not divided, however long it takes.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from time import perf_counter

__all__ = ["Rounds", "rounds_of"]

_SECONDS = 0.001  # of a round, for the steps of all runs together; what they cost around that comes on top


class Rounds:
    """The rounds of one event loop, and the runs that wait for one with time. Belongs to the thread of that loop.

    `spent` is how many seconds runs have worked in the current round; whoever lets them work adds to it. `number` tells
    rounds apart in which runs have work to do.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = weakref.ref(loop)
        self.spent = 0.0
        self.number = 0
        self._under_way = False
        self._began = 0.0
        self._share = _SECONDS  # of the current round, for all runs together
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._again: deque[asyncio.Future[None]] = deque()  # those who were woken and came too late
        self._fit = 1  # how many of those that wait are woken for one round

    def is_over(self) -> bool:
        """Tell whether a run that could go on now has to `wait`."""
        if not self._under_way:
            self._begin()
            return False
        return bool(self._waiting or self._again) or self.spent > self._share

    async def wait(self) -> None:
        """Return in a round that has time for the caller, in order of arrival."""
        queue = self._waiting
        while True:
            mine = asyncio.get_running_loop().create_future()
            queue.append(mine)
            await mine
            if self.spent <= self._share:
                return
            queue = self._again  # the ones before have taken longer than those of the last round

    def _begin(self) -> None:
        asyncio.get_running_loop().call_soon(self._next)  # that is, in the round that follows
        self._under_way, self.spent, self._began = True, 0.0, perf_counter()

    def _next(self) -> None:
        """End a round; begin the next one for those who wait, or leave that to the first one who comes."""
        self._under_way = False
        self.number += 1
        if not self._waiting and not self._again:
            self._share = _SECONDS
            return
        spent, share = self.spent, self._share
        others = max(0.0, perf_counter() - self._began - spent)
        self._share = _SECONDS + others / 8  # beside somebody who works long in each round, more is only fair
        self._fit = max(1, int(self._fit * min(2.0, share / spent))) if spent else self._fit * 2
        self._waiting.extendleft(reversed(self._again))
        self._again.clear()
        woken = 0
        while self._waiting and woken < self._fit:
            first = self._waiting.popleft()
            if not first.done():  # whoever gave up waiting takes nobody's place
                first.set_result(None)
                woken += 1
        self._fit = max(1, woken)
        self._begin()


# By the identity of the loop, and kept alive by the runs on it alone: what waits knows its loop, so that anything else
# would keep a loop that was closed before its runs came to their end.
_known: weakref.WeakValueDictionary[int, Rounds] = weakref.WeakValueDictionary()


def rounds_of(loop: asyncio.AbstractEventLoop) -> Rounds:
    """Return the one `Rounds` of `loop`."""
    rounds = _known.get(id(loop))
    if rounds is None or rounds.loop() is not loop:
        rounds = _known[id(loop)] = Rounds(loop)
    return rounds
