"""One asynchronous client for each event loop that uses a provider, closed before its loop goes away."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any, Generic, TypeVar

__all__ = ["LoopClients"]

Client = TypeVar("Client")


@dataclass(slots=True)
class _Entry(Generic[Client]):
    """A client with what closes it: an asynchronous generator that waits in its `try`.

    Such a generator is the one thing that a loop closes before it ends (`asyncio.run` and other runners see to it).
    """

    client: Client
    loop: asyncio.AbstractEventLoop
    keeper: AsyncGenerator[None, None] | None = None
    closing: asyncio.Task[None] | None = None


# A generator that nobody holds is closed by a task, which the end of a loop cancels half-way. So they are held here.
_entries: dict[int, _Entry[Any]] = {}


class LoopClients(Generic[Client]):
    """Makes a client the first time an event loop asks for one, and gives the same one to that loop again.

    Connections belong to the loop that opened them, so clients are not shared between loops. A client is closed when
    its loop ends, when this object is dropped, or by `aclose`, whichever comes first. May be used from several threads.
    """

    def __init__(self, make: Callable[[], Client], close: Callable[[Client], Awaitable[None]]) -> None:
        self._make, self._close = make, close
        self._own: dict[asyncio.AbstractEventLoop, _Entry[Client]] = {}
        self._lock = Lock()
        weakref.finalize(self, _dismiss, self._own).atexit = False

    async def get(self) -> Client:
        """Return the client of the running loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            known = self._own.get(loop)
        return known.client if known is not None else await self._open(loop)

    async def aclose(self) -> None:
        """Close the client of the running loop; the next `get` makes a new one."""
        with self._lock:
            known = self._own.get(asyncio.get_running_loop())
        if known is not None and known.keeper is not None:
            await known.keeper.aclose()

    async def _open(self, loop: asyncio.AbstractEventLoop) -> Client:
        entry = _Entry(self._make(), loop)
        entry.keeper = _keep(entry, self._close, self._own)
        with self._lock:
            _forget_ended_loops(self._own)
            self._own[loop] = _entries[id(entry)] = entry
        await anext(entry.keeper)
        return entry.client


async def _keep(
    entry: _Entry[Client],
    close: Callable[[Client], Awaitable[None]],
    owned: dict[asyncio.AbstractEventLoop, _Entry[Client]],
) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        owned.pop(entry.loop, None)
        _entries.pop(id(entry), None)
        await close(entry.client)


def _forget_ended_loops(owned: dict[asyncio.AbstractEventLoop, _Entry[Client]]) -> None:
    """Let go of loops that were closed without closing their generators; nothing can be closed on them any more."""
    for entry in [entry for entry in list(_entries.values()) if entry.loop.is_closed()]:
        _entries.pop(id(entry), None)
        owned.pop(entry.loop, None)


def _dismiss(owned: dict[asyncio.AbstractEventLoop, _Entry[Client]]) -> None:
    for loop, entry in list(owned.items()):
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(_start_closing, entry)


def _start_closing(entry: _Entry[Client]) -> None:
    entry.closing = entry.loop.create_task(_close_keeper(entry))


async def _close_keeper(entry: _Entry[Client]) -> None:
    if entry.keeper is not None:
        await entry.keeper.aclose()
