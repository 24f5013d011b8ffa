"""One asynchronous client for each event loop that uses a provider, closed before its loop goes away."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["LoopClients"]

Client = TypeVar("Client")


class LoopClients(Generic[Client]):
    """Makes a client the first time an event loop asks for one, and gives the same one to that loop again.

    Connections belong to the loop that opened them, so clients are not shared between loops. A client is closed when
    its loop shuts its asynchronous generators down (as `asyncio.run` does), when this object is dropped, or by
    `aclose`, whichever comes first. May be used from several threads.
    """

    def __init__(self, make: Callable[[], Client], close: Callable[[Client], Awaitable[None]]) -> None:
        self._make, self._close = make, close
        self._keepers: dict[asyncio.AbstractEventLoop, tuple[AsyncGenerator[Client, None], Client]] = {}
        self._lock = Lock()

    async def get(self) -> Client:
        """Return the client of the running loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            known = self._keepers.get(loop)
        if known is not None:
            return known[1]
        # An asynchronous generator that waits in its `try` is the one thing that a loop closes before it ends.
        keeper = _keep(self._make(), self._close, weakref.ref(self), loop)
        client = await anext(keeper)
        with self._lock:
            for closed in [other for other in self._keepers if other.is_closed()]:
                del self._keepers[closed]
            self._keepers[loop] = (keeper, client)
        return client

    async def aclose(self) -> None:
        """Close the client of the running loop; the next `get` makes a new one."""
        with self._lock:
            known = self._keepers.get(asyncio.get_running_loop())
        if known is not None:
            await known[0].aclose()

    def forget(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            self._keepers.pop(loop, None)


async def _keep(
    client: Client,
    close: Callable[[Client], Awaitable[None]],
    owner: weakref.ref[LoopClients[Client]],
    loop: asyncio.AbstractEventLoop,
) -> AsyncGenerator[Client, None]:
    try:
        yield client
    finally:
        clients = owner()
        if clients is not None:
            clients.forget(loop)
        await close(client)
