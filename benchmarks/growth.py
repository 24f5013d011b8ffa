"""Whether a step costs more the longer the conversation is: 5,000 steps, the three packs loaded, results of 2 kB."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from statistics import median

from benchmarks._kit import Echo, Row, Scripted, config, conversation, report
from chimera.core import Interceptors, ReAct
from chimera.core.interception import merge_interceptors
from chimera.plugins.packs import DelegateSpawnerPlugin, PlanGatePlugin, RedactorPlugin

_STEPS, _FROM = 5000, 1000
_WINDOW = 200
_OUTPUT = ("x = compute(alpha, beta)  # nothing to hide here\n" * 60)[:2000]


def packs() -> Interceptors | None:
    plugins = (PlanGatePlugin(), RedactorPlugin(), DelegateSpawnerPlugin())
    return merge_interceptors(*(plugin.interceptors() for plugin in plugins))


def step_times() -> list[float]:
    """Return the processor time of each step, in seconds."""
    loop = ReAct(_STEPS + 1, config(packs()))
    found, before = [], time.thread_time()
    for _ in loop.iter_steps(Scripted(_STEPS, output=_OUTPUT), [Echo()], conversation()):
        now = time.thread_time()
        found.append(now - before)
        before = now
    return found


def peak() -> int:
    """Return the most memory that a run holds at once, in bytes; its script is there before."""
    provider, context, loop = Scripted(_STEPS, output=_OUTPUT), conversation(), ReAct(_STEPS + 1, config(packs()))
    tracemalloc.start()
    try:
        loop.run(provider, [Echo()], context)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def rows() -> Iterator[Row]:
    runs = [step_times() for _ in range(3)]
    times = [median(steps) for steps in zip(*runs, strict=True)]
    start, early, late = (median(times[at : at + _WINDOW]) * 1e6 for at in (0, _FROM, len(times) - _WINDOW))
    slope = (late - early) / (2 * (_STEPS - _WINDOW - _FROM))
    yield Row("a step at the start", f"{start:.0f} µs")
    yield Row(f"a step at N = {_FROM}", f"{early:.0f} µs")
    yield Row(f"a step at N = {_STEPS}", f"{late:.0f} µs, {late / start:.1f} × the start")
    yield Row("more for each message held", f"{slope:.3f} µs", "0.05 µs", slope <= 0.05)
    yield Row("peak memory", f"{peak() / 1e6:.1f} MB for {2 * _STEPS + 2:,} messages")


def main() -> None:
    report("Growth: N = 5,000, three packs, results of 2 kB", rows())


if __name__ == "__main__":
    main()
