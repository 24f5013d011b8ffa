from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from chimera.providers.loop_clients import LoopClients


class Client:
    """Knows on which loop it was made and closed."""

    def __init__(self) -> None:
        self.made_on = asyncio.get_running_loop()
        self.closed_on: asyncio.AbstractEventLoop | None = None

    async def close(self) -> None:
        await asyncio.sleep(0)  # as a real client does: a cancelled close would stop here
        self.closed_on = asyncio.get_running_loop()


@pytest.fixture
def clients() -> Iterator[LoopClients[Client]]:
    yield LoopClients(Client, Client.close)
    gc.collect()


async def use(clients: LoopClients[Client]) -> Client:
    client = await clients.get()
    assert await clients.get() is client
    assert client.made_on is asyncio.get_running_loop()
    assert client.closed_on is None
    return client


def test_each_loop_has_a_client_that_is_closed_at_its_end(clients: LoopClients[Client]) -> None:
    first, second = asyncio.run(use(clients)), asyncio.run(use(clients))
    assert first is not second
    assert first.closed_on is first.made_on
    assert second.closed_on is second.made_on


def test_loops_in_threads_do_not_share(clients: LoopClients[Client]) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: asyncio.run(use(clients)), range(40)))
    assert len({id(client) for client in found}) == 40
    assert all(client.closed_on is client.made_on for client in found)


async def test_tasks_of_one_loop_share(clients: LoopClients[Client]) -> None:
    found = await asyncio.gather(*(use(clients) for _ in range(20)))
    assert len({id(client) for client in found}) == 1


async def test_closing_early(clients: LoopClients[Client]) -> None:
    await clients.aclose()
    first = await use(clients)
    await clients.aclose()
    assert first.closed_on is first.made_on
    assert await use(clients) is not first


async def test_a_dropped_owner_closes_its_clients() -> None:
    client = await use(LoopClients(Client, Client.close))
    gc.collect()
    for _ in range(5):
        await asyncio.sleep(0)
    assert client.closed_on is client.made_on


def test_an_owner_dropped_at_the_very_end_closes_its_clients() -> None:
    """The end of a loop cancels the task that would close the client; it must be closed all the same."""

    async def run() -> Client:
        return await use(LoopClients(Client, Client.close))

    client = asyncio.run(run())
    gc.collect()
    assert client.closed_on is client.made_on


def test_a_loop_that_ended_badly_is_forgotten(clients: LoopClients[Client]) -> None:
    loop = asyncio.new_event_loop()
    lost = loop.run_until_complete(use(clients))
    loop.close()
    assert asyncio.run(use(clients)) is not lost
    assert lost.closed_on is None
    reference = weakref.ref(lost)
    del loop, lost
    gc.collect()
    assert reference() is None


def test_an_owner_may_outlive_its_loops_and_be_dropped_after_them() -> None:
    clients = LoopClients(Client, Client.close)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(use(clients))
    loop.close()
    del clients
    gc.collect()
