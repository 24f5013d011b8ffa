"""A scripted session that goes on until somebody stops it; run as a program, it is killed again and again."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chimera.assembly.driver import AgentDriver
from chimera.assembly.journal import Journal
from chimera.compaction import DropOldest
from chimera.core.tool import BaseTool
from chimera.providers.faux import FauxProvider
from chimera.types import ToolResult

__all__ = ["driver_of", "path_of", "records_of", "run_turns"]

LONG = "what it found, in many words, é 🜨 " * 60
DIFFERING = ("at", "created", "id", "duration_ms", "project")
CALLS = [{"name": "probe", "arguments": {"text": f"{number} ü"}} for number in range(2)]
STEPS: list[Any] = [{"text": "Looking.", "tool_calls": CALLS}, {"tool_calls": CALLS[:1]}, "Done with this."]


class Probe(BaseTool):
    """Answers at length, and has something said while it works."""

    name = "probe"

    def __init__(self) -> None:
        self.count = 0
        self.say: Callable[[str], object] = str

    def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        self.count += 1
        if self.count % 4 == 0:
            self.say(f"steered {self.count}")
        return ToolResult(LONG)


def driver_of(journal: Journal) -> AgentDriver:
    """Return a driver that is recorded, steered by its tool, and compacted now and then."""
    probe = Probe()
    driver = AgentDriver(
        provider=FauxProvider(STEPS, on_exhausted="repeat", record=False, context_window=9000),
        tools_override=[probe],
        compaction=DropOldest(),
        journal=journal,
        system_prompt="Look around.",
    )
    probe.say = driver.steer
    return driver


def run_turns(driver: AgentDriver, turns: range, seen: Callable[[], object]) -> None:
    """Run turns to their ends; `seen` is called after each event."""

    async def turn(number: int) -> None:
        async for _ in driver.send(f"turn {number}"):
            seen()

    for number in turns:
        asyncio.run(turn(number))


def path_of(driver: AgentDriver) -> Path:
    """Return the file that the driver is recorded in."""
    assert driver.journal is not None
    return driver.journal.path


def records_of(path: Path) -> list[dict[str, Any]]:
    """Return the whole records of a file, without what differs from run to run."""
    whole = path.read_bytes().rpartition(b"\n")[0]
    records = [json.loads(line) for line in whole.split(b"\n")] if whole else []
    return [{key: value for key, value in record.items() if key not in DIFFERING} for record in records]


def be_killed(folder: Path, number: int, seconds: float) -> int:
    """Run a session in a process of its own, kill it, and return how many events it had seen by then."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        journal = Journal.create(folder, project=folder, model="faux", session_id=f"killed-{number}")
        run_turns(driver_of(journal), range(10_000), lambda: os.write(writer, b"."))
        os._exit(1)
    os.close(writer)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    seen = 0
    while piece := os.read(reader, 1 << 16):
        seen += len(piece)
    os.close(reader)
    return seen


if __name__ == "__main__":
    place, times, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    moments = random.Random(seed)
    print(json.dumps([be_killed(place, number, moments.uniform(0.01, 0.15)) for number in range(times)]))  # noqa: T201
