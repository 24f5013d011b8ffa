"""Many AgentLoop conversations at once in one process, with a model that takes 20 ms for every answer."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks._kit import POLICY, Echo, Row, Scripted, report
from chimera.core import AgentLoop
from chimera.providers.base import Response
from chimera.types import Message

_LANES = (1, 10, 100, 1000)
_STEPS = 20
_SLEEP = 0.020
_TICK = 0.001


class Slow(Scripted):
    """The scripted model, 20 ms away."""

    async def async_complete(self, messages: list[Message], tools: Any = None, **kwargs: Any) -> Response:
        await asyncio.sleep(_SLEEP)
        return self.complete(messages, tools)


class Measured(NamedTuple):
    share: float
    lag: float


async def lane() -> None:
    events = AgentLoop().run(
        [Message.user("Go.")], tools=[Echo()], provider=Slow(_STEPS), system_prompt="You help.", interceptors=POLICY
    )
    async for _ in events:
        pass


async def measure(lanes: int) -> Measured:
    """Return the throughput as a share of what the sleeps alone allow, and the lag at the 99th percentile in ms."""
    late: list[float] = []

    async def watch() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(_TICK)
            late.append((time.perf_counter() - before - _TICK) * 1000)

    watcher = asyncio.ensure_future(watch())
    start = time.perf_counter()
    await asyncio.gather(*(lane() for _ in range(lanes)))
    spent = time.perf_counter() - start
    watcher.cancel()
    return Measured((_STEPS + 1) * _SLEEP / spent, sorted(late)[int(len(late) * 0.99)])


async def memory(lanes: int) -> float:
    """Return how much a conversation that is under way holds beside its messages, in bytes."""
    gc.collect()
    tracemalloc.start()
    try:
        tasks = [asyncio.ensure_future(lane()) for _ in range(lanes)]
        await asyncio.sleep(_SLEEP * 2)
        held = tracemalloc.get_traced_memory()[0]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return held / lanes
    finally:
        tracemalloc.stop()


def rows() -> Iterator[Row]:
    for lanes in _LANES:
        found = sorted((asyncio.run(measure(lanes)) for _ in range(3)), key=lambda one: one.share)[1]
        most = lanes == _LANES[-1]
        yield Row(
            f"{lanes} conversations, throughput",
            f"{found.share:.0%} of the ideal",
            "85 %" if most else "",
            found.share >= 0.85 if most else None,
        )
        yield Row(
            f"{lanes} conversations, lag of the event loop (p99)",
            f"{found.lag:.1f} ms",
            "25 ms" if most else "",
            found.lag <= 25 if most else None,
        )
    held = asyncio.run(memory(_LANES[-1])) / 1000
    yield Row("memory of a conversation under way", f"{held:.0f} kB", "150 kB", held <= 150)


def main() -> None:
    report("Lanes: 20 ms for each of 21 answers", rows())


if __name__ == "__main__":
    main()
