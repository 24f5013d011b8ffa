"""How long a key takes on the full screen while a lane streams, and how memory grows with the conversation."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles
from threading import Event, Thread

from textual import events
from textual.widgets import TextArea

from benchmarks._kit import Row, report
from chimera.core.loop_events import LoopEvent, LoopEventType
from chimera.tui import app as app_module
from chimera.tui.app import ChimeraApp
from chimera.tui.inbox import TurnEnded
from chimera.tui.lane_state import LaneState
from chimera.tui.state import About, AppState
from chimera.types import ToolCall, ToolResult

DELTAS, RESULTS = 10_000, 2_000
SIZE = (120, 40)
STREAM_SECONDS = 12.0
LIMIT_MS = 50.0
LINEAR = 1.3
"""How much more the second half of a conversation may take than the first one."""


def conversation() -> Iterator[list[LoopEvent]]:
    """Yield what a long conversation brings: some deltas, then a call and its result, again and again."""
    each = DELTAS // RESULTS
    for number in range(RESULTS):
        call = ToolCall(f"c{number}", "bash", {"command": f"make part-{number}"})
        text = "a **word** and `code`, " if number % 7 else "\n\n- a point\n\n```py\nx = 1\n```\n\n"
        yield [
            *(LoopEvent(LoopEventType.ASSISTANT_CHUNK, text, 1) for _ in range(each)),
            LoopEvent(LoopEventType.TOOL_USE, call, 1),
            LoopEvent(LoopEventType.TOOL_RESULT, (call, ToolResult(f"line\n{'x' * 60}\nok {number}")), 1),
        ]


class TimedApp(ChimeraApp):
    """Says when a change of the prompt has been painted."""

    CSS_PATH = str(Path(app_module.__file__).with_name("chimera.tcss"))

    def __init__(self, state: AppState) -> None:
        super().__init__(state)
        self.painted = asyncio.Event()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        self.call_after_refresh(self.painted.set)


def new_app() -> TimedApp:
    state = AppState(About("/project", "ask", "coding_agent"))
    app = TimedApp(state)
    lane = LaneState("", "model", 128_000)
    state.add_lane(lane)
    lane.begin("go", time.monotonic())
    app.lanes.start = lambda: None  # type: ignore[method-assign]
    app.lanes.after_turns = lambda: None  # type: ignore[method-assign]
    return app


async def latencies() -> list[float]:
    """Press keys while a thread streams the whole conversation; return how long each took to show, in milliseconds."""
    app, done = new_app(), Event()

    def stream() -> None:
        for number, found in enumerate(conversation()):
            for event in found:
                app.state.inbox.put("", event)
            if number % 10 == 0:
                time.sleep(STREAM_SECONDS * 10 / RESULTS)
        done.set()

    found: list[float] = []
    async with app.run_test(size=SIZE):
        thread = Thread(target=stream)
        thread.start()
        while not done.is_set() or len(app.state.inbox):
            found.append(await one_key(app))
            await asyncio.sleep(0.05)
        thread.join()
    return found


async def one_key(app: TimedApp) -> float:
    if len(app.prompt.text) > 60:
        app.prompt.text = ""
        await asyncio.sleep(0.1)
    app.painted.clear()
    start = time.perf_counter()
    app.post_message(events.Key("x", "x"))
    await app.painted.wait()
    return (time.perf_counter() - start) * 1_000


async def memory() -> list[int]:
    """Return the bytes in use after each quarter of the conversation."""
    app = new_app()
    found: list[int] = []
    async with app.run_test(size=SIZE) as pilot:
        tracemalloc.start()
        for number, group in enumerate(conversation(), 1):
            for event in group:
                app.state.inbox.put("", event)
            if number % 20 == 0:
                app.tick()
                await pilot.pause()
            if number % (RESULTS // 4) == 0:
                gc.collect()
                found.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        app.state.inbox.put("", TurnEnded())
    return found


def main() -> None:
    spent = asyncio.run(latencies())
    cuts = quantiles(spent, n=100)
    quarters = asyncio.run(memory())
    first, second = quarters[1], quarters[3] - quarters[1]
    report(
        f"{DELTAS:,} deltas and {RESULTS:,} tool results in one conversation on the screen",
        [
            Row("keys pressed meanwhile", str(len(spent))),
            Row("a key is painted, median", f"{cuts[49]:.1f} ms"),
            Row("a key is painted, 95th percentile", f"{cuts[94]:.1f} ms", f"{LIMIT_MS:.0f} ms", cuts[94] < LIMIT_MS),
            Row("memory, first half", f"{first / 1e6:.1f} MB"),
            Row("memory, second half", f"{second / 1e6:.1f} MB", f"{LINEAR} of the first", second < LINEAR * first),
        ],
    )


if __name__ == "__main__":
    main()
