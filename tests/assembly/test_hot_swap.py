"""Swapping a policy under load: every turn is held to one version on all seams, and nothing is left of the others."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import weakref
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from chimera.assembly import CodingAgent
from chimera.core.interception import SEAMS
from chimera.plugins import PluginExtensionRegistry, PluginManager
from chimera.providers.faux import FauxProvider

RELOADS = 500
SETTLED = 50
LANES_LOOPS = (None, None, None, None, None, None, "reflexion", "plan-execute")
LANES = len(LANES_LOOPS)

PLUGIN = """\
import hot_swap_sink
from chimera.core.interception import InterceptDecision, current_run
from chimera.plugins import BasePlugin

class Stamp(BasePlugin):
    name = "stamp"

    def __init__(self):
        hot_swap_sink.made(self)

    def register_interceptors(self, registry):
        for seam in {seams!r}:
            registry.register_interceptor(seam, getattr(self, seam))

    def context(self, messages):
        hot_swap_sink.seen(current_run().run_id, "context", {version})
        return InterceptDecision.replace(messages)

    def provider_request(self, request):
        hot_swap_sink.seen(current_run().run_id, "provider_request", {version})

    def tool_call(self, call):
        hot_swap_sink.seen(current_run().run_id, "tool_call", {version})

    def tool_result(self, call, result):
        hot_swap_sink.seen(current_run().run_id, "tool_result", {version})
"""


@dataclass
class Sink:
    """What the versions wrote. Of runs only the last ones are kept, so that memory tells of the swaps alone."""

    runs: OrderedDict[str, int] = field(default_factory=OrderedDict)
    mixed: set[str] = field(default_factory=set)
    seams: set[str] = field(default_factory=set)
    versions: set[int] = field(default_factory=set)
    in_force: int = 0
    late: int = 0
    plugins: list[weakref.ref[Any]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def seen(self, run: str, seam: str, version: int) -> None:
        with self.lock:
            if self.runs.setdefault(run, version) != version:
                self.mixed.add(run)
            self.seams.add(seam)
            self.versions.add(version)
            self.late += version < self.in_force
            if len(self.runs) > 20 * LANES:
                self.runs.popitem(last=False)

    def made(self, plugin: Any) -> None:
        self.plugins.append(weakref.ref(plugin))

    def alive(self) -> int:
        gc.collect()
        return sum(ref() is not None for ref in self.plugins)


@pytest.fixture
def sink() -> Iterator[Sink]:
    sink, module = Sink(), ModuleType("hot_swap_sink")
    vars(module).update(seen=sink.seen, made=sink.made)
    sys.modules["hot_swap_sink"] = module
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    yield sink
    sys.setswitchinterval(interval)
    del sys.modules["hot_swap_sink"]


def write(folder: Path, version: int) -> None:
    (folder / "stamp.py").write_text(PLUGIN.format(version=version, seams=SEAMS))


@contextmanager
def lanes_running(folder: Path) -> Iterator[Counter[tuple[str, int]]]:
    """Let lanes take turn after turn, without a pause, until the block ends. Yields how many turns ended in which way,
    and under how many versions."""
    stop, ended = threading.Event(), Counter[tuple[str, int]]()
    call: dict[str, Any] = {"tool_calls": [{"name": "list_files", "arguments": {}}]}

    async def turns(loop: str | None) -> None:
        while not stop.is_set():
            provider = FauxProvider([call, "Done."] * 6)
            result = await CodingAgent(provider=provider, project_dir=folder, preset="explore", loop=loop).run("go")
            ended[result.reason, len(result.policies)] += 1

    async def all_turns() -> None:
        await asyncio.gather(*map(turns, LANES_LOOPS))

    thread = threading.Thread(target=asyncio.run, args=(all_turns(),))
    thread.start()
    try:
        yield ended
    finally:
        stop.set()
        thread.join()


def resident_kib() -> int:
    """Return the memory that this process uses now; 0 on a system that does not tell."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0)


def test_500_swaps_under_8_lanes(tmp_path: Path, sink: Sink) -> None:
    write(tmp_path, 0)
    manager = PluginManager([tmp_path])
    manager.load("stamp")
    modules = set(sys.modules)
    settled = turns = 0
    with lanes_running(tmp_path) as ended:
        for version in range(1, RELOADS + 1):
            write(tmp_path, version)
            manager.reload("stamp")
            sink.in_force = version
            bundle = PluginExtensionRegistry.get_all_interceptors()
            assert [len(getattr(bundle, seam)) for seam in SEAMS] == [1, 1, 1, 1]
            if version == SETTLED:
                gc.collect()
                settled, turns = resident_kib(), ended.total()
        grown = resident_kib()
    assert ended.keys() == {("completed", 1)}
    assert ended.total() > turns + LANES
    assert sink.mixed == set()
    assert sink.seams == set(SEAMS)
    assert len(sink.versions) > 10
    assert sink.late > 10, "turns that began under an old version ended under it"
    assert manager.versions["stamp"].startswith(f"stamp@{RELOADS + 1}-")
    assert {name for name in sys.modules if name.startswith("chimera_plugin_")} <= modules
    assert sink.alive() <= 2
    assert grown <= settled * 1.1


TOOL_AND_CHAIN = """\
from chimera.core import tool
from chimera.plugins import BasePlugin

class Both(BasePlugin):
    name = "both"

    def register_tools(self, registry):
        @tool(name="tool_{version}", effect="read")
        def run() -> str:
            "A tool."
            return "x"
        registry.register_tool(run)

    def register_interceptors(self, registry):
        registry.register_interceptor("context", lambda messages: None)
"""


class SwappedBetween(PluginManager):
    """Swaps its plugin in another thread while somebody reads what it holds."""

    def __init__(self, folder: Path) -> None:
        super().__init__([folder])
        self.thread = threading.Thread(target=self.reload, args=("both",))

    @property
    def tools(self) -> list[Any]:
        found = super().tools
        if self.thread.ident is None:
            self.thread.start()
            self.thread.join(0.5)
        return found


@pytest.mark.parametrize("loop", [None, "reflexion"])
async def test_tools_and_chains_of_a_turn_are_of_one_version(tmp_path: Path, loop: str | None) -> None:
    (tmp_path / "both.py").write_text(TOOL_AND_CHAIN.format(version=1))
    manager = SwappedBetween(tmp_path)
    manager.load("both")
    (tmp_path / "both.py").write_text(TOOL_AND_CHAIN.format(version=2))
    for version in (1, 2):
        provider = FauxProvider(["Done."] * 6)
        agent = CodingAgent(provider=provider, project_dir=tmp_path, tools_override=[], manager=manager, loop=loop)
        result = await agent.run("go")
        assert [schema["function"]["name"] for schema in provider.requests[0].tools or ()] == [f"tool_{version}"]
        assert [policy.partition("-")[0] for policy in result.policies] == [f"both@{version}"]
        manager.thread.join()
