"""Waiting on an event loop: no longer than until a run is cancelled, and until there is time for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from chimera.core.cancellation import CancellationToken
from chimera.core.rounds import Rounds
from chimera.errors import RunCancelled

__all__ = ["Home"]

T = TypeVar("T")
_POLL_SECONDS = 0.02


class Home:
    """The event loop that a run lives on: where it waits, no longer than until it is cancelled, beside others."""

    def __init__(self, rounds: Rounds) -> None:
        self._rounds, self._round = rounds, -1  # the last one in which the run went on
        self._cancellation: CancellationToken | None = None
        self._watcher: asyncio.Future[None] | None = None

    def leave(self) -> None:
        if self._watcher is not None:
            self._watcher.cancel()

    async def begin(self, run: Any) -> None:
        run.home = asyncio.get_running_loop()
        self._cancellation = run.signal
        if self._cancellation is not None and self._cancellation.needs_polling:
            self._watcher = asyncio.ensure_future(self._poll(self._cancellation))

    async def wait_for_round(self) -> None:
        rounds = self._rounds
        if self._round != rounds.number:
            if rounds.is_over():
                await self.up_to(rounds.wait())
            self._round = rounds.number

    def up_to(self, awaitable: Awaitable[T]) -> Awaitable[T]:
        """Await, unless the run is cancelled first: then the awaited work is cancelled and `RunCancelled` raised."""
        return awaitable if self._cancellation is None else _watched(awaitable, self._cancellation)

    @staticmethod
    async def _poll(cancellation: CancellationToken) -> None:
        """Look at a token that tells nobody of its cancellation by itself."""
        while not cancellation.cancelled:  # noqa: ASYNC110 - a foreign event has only is_set to look at
            await asyncio.sleep(_POLL_SECONDS)


async def _watched(awaitable: Awaitable[T], cancellation: CancellationToken) -> T:
    """The method of `asyncio.timeout`: the running task cancels itself and takes the cancellation back."""
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    before, fired = task.cancelling(), False

    def interrupt() -> None:
        nonlocal fired
        if not fired and not finished:
            fired = True
            task.cancel()

    finished = False

    def wake() -> None:
        loop.call_soon_threadsafe(interrupt)

    forget = cancellation.on_cancel(wake)
    try:
        result = await awaitable
    except asyncio.CancelledError:
        if fired and task.uncancel() <= before:
            raise RunCancelled from None
        raise
    except Exception as exc:
        if fired:  # what was given up made a failure of its own of that
            task.uncancel()
            raise RunCancelled from exc
        raise
    finally:
        finished = True
        forget()
    if fired:  # the work was done, or did not let itself be cancelled
        task.uncancel()
    return result
