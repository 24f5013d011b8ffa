"""Many AgentLoop conversations at once in one process, with a model that takes 20 ms for every answer.

The ideal is that nothing but the model takes time. A thousand conversations then ask for 50,000 answers a second, of
one thread: what the event loop itself needs for that stands beside it, measured with tasks that only wait.
"""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Callable, Coroutine, Iterator
from statistics import median
from typing import Any, NamedTuple

from benchmarks._kit import POLICY, Echo, Row, Scripted, report
from chimera.core import AgentLoop
from chimera.providers.base import Response
from chimera.types import Message

_LANES = (1, 10, 100, 1000)
_STEPS = 50
_SLEEP = 0.020
_TICK = 0.001


class Slow(Scripted):
    """The scripted model, 20 ms away."""

    async def async_complete(self, messages: list[Message], tools: Any = None, **kwargs: Any) -> Response:
        await asyncio.sleep(_SLEEP)
        return self.complete(messages, tools)


class Measured(NamedTuple):
    """Seconds that all conversations took, processor time a step in microseconds, and the lag (p99) in milliseconds."""

    spent: float
    step: float
    lag: float


async def bare() -> None:
    """The floor of a conversation: nothing but the answers of the model."""
    model = Slow(_STEPS)
    for _ in range(_STEPS + 1):
        await model.async_complete([])


async def lane() -> None:
    events = AgentLoop().run(
        [Message.user("Go.")], tools=[Echo()], provider=Slow(_STEPS), system_prompt="You help.", interceptors=POLICY
    )
    async for _ in events:
        pass


async def measure(conversation: Callable[[], Coroutine[Any, Any, None]], lanes: int) -> Measured:
    late: list[float] = []

    async def watch() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(_TICK)
            late.append((time.perf_counter() - before - _TICK) * 1000)

    watcher = asyncio.ensure_future(watch())
    start, used = time.perf_counter(), time.thread_time()
    await asyncio.gather(*(conversation() for _ in range(lanes)))
    spent, used = time.perf_counter() - start, time.thread_time() - used
    watcher.cancel()
    return Measured(spent, used / lanes / (_STEPS + 1) * 1e6, sorted(late)[int(len(late) * 0.99)])


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
    ideal = (_STEPS + 1) * _SLEEP
    for lanes in _LANES:
        found, floor = _middle(lane, lanes), _middle(bare, lanes)
        most = lanes == _LANES[-1]
        share = ideal / found.spent
        yield Row(
            f"{lanes} conversations, throughput",
            f"{share:.0%} of the ideal (tasks that only wait for the model: {ideal / floor.spent:.0%})",
            "85 %" if most else "",
            share >= 0.85 if most else None,
        )
        if lanes >= 100:  # with fewer, it is the watch over the lag that is measured
            used = f"{found.step:.0f} µs (only waiting: {floor.step:.0f})"
            yield Row(f"{lanes} conversations, processor time a step", used)
        yield Row(
            f"{lanes} conversations, lag of the event loop (p99)",
            f"{found.lag:.1f} ms (only waiting: {floor.lag:.1f})",
            "25 ms" if most else "",
            found.lag <= 25 if most else None,
        )
    held = asyncio.run(memory(_LANES[-1])) / 1000
    yield Row("memory of a conversation under way", f"{held:.0f} kB", "150 kB", held <= 150)


def _middle(conversation: Callable[[], Coroutine[Any, Any, None]], lanes: int) -> Measured:
    runs = [asyncio.run(measure(conversation, lanes)) for _ in range(3)]
    return Measured(*(median(values) for values in zip(*runs, strict=True)))


def main() -> None:
    report(f"Lanes: 20 ms for each of {_STEPS + 1} answers", rows())


if __name__ == "__main__":
    main()
