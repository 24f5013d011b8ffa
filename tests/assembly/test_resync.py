"""Resync: between two turns an agent is brought in line with what is on disk, and told what became of what."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chimera.assembly import CodingAgent
from chimera.assembly.driver import AgentDriver
from chimera.assembly.journal import Journal
from chimera.assembly.resync import Changes, ResyncReport, resync_agent
from chimera.core import tool
from chimera.core.interception import InterceptDecision
from chimera.errors import MisuseError
from chimera.plugins import BasePlugin, PluginExtensionRegistry, PluginManager
from chimera.providers.faux import FauxProvider
from chimera.tools.delegate import DelegateTool
from chimera.types import Message

PLUGIN = """\
from chimera.core import tool
from chimera.core.interception import InterceptDecision
from chimera.plugins import BasePlugin, Skill

class Gate(BasePlugin):
    name = {name!r}

    def __init__(self, word="no"):
        self.word = word

    def register_tools(self, registry):
        @tool(effect="read")
        def {tool}() -> str:
            "A tool."
            return "x"
        registry.register_tool({tool})

    def register_skills(self, registry):
        registry.register_skill(Skill("{tool}-skill"))

    def register_interceptors(self, registry):
        for seam in {seams!r}:
            registry.register_interceptor(seam, self.{method})

    def {method}(self, *args):
        return InterceptDecision.block({version!r} + self.word)
"""


def plugin(
    name: str = "gate", *, tool: str = "one", seams: Any = ("tool_call",), method: str = "gate", version: str = "v1 "
) -> str:
    return PLUGIN.format(name=name, tool=tool, seams=seams, method=method, version=version)


def bash(command: str = "true") -> dict[str, Any]:
    return {"tool_calls": [{"name": "bash", "arguments": {"command": command}}]}


def agent(tmp_path: Path, script: Any = (), **kwargs: Any) -> CodingAgent:
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    return CodingAgent(provider=FauxProvider(list(script)), project_dir=work, manager=managed(tmp_path), **kwargs)


def managed(tmp_path: Path) -> PluginManager:
    folder = tmp_path / "plugins"
    folder.mkdir(exist_ok=True)
    (folder / "gate.py").write_text(plugin())
    (folder / "other.py").write_text(plugin("other", tool="two", seams=()))
    return PluginManager([folder])


def test_what_changed_is_told_for_each_kind(tmp_path: Path) -> None:
    one = agent(tmp_path)
    one.manager.load("gate")
    one.manager.load("other")
    text = plugin(tool="three", seams=("tool_call", "context"), version="v2 ")
    (tmp_path / "plugins/gate.py").write_text(text)
    (tmp_path / "plugins/other.py").write_text("1 / 0\n")
    report = resync_agent(one)
    (name, reason), *_ = report.plugins.failed
    assert name == "other"
    assert "other.py, line 1: ZeroDivisionError" in reason
    failed = (("other", reason),)
    assert report.plugins == Changes(refreshed=("gate",), failed=failed)
    assert report.interceptors == {
        "context": Changes(added=("gate: Gate.gate",)),
        "provider_request": Changes(),
        "tool_call": Changes(refreshed=("gate: Gate.gate",)),
        "tool_result": Changes(),
    }
    assert report.tools == Changes(added=("three",), removed=("one",), failed=(("two", reason),))
    assert report.skills == Changes(added=("three-skill",), removed=("one-skill",), failed=(("two-skill", reason),))
    assert not report.success
    assert report.lines()[0] == f"plugins: refreshed gate; failed other ({reason})"
    assert report.lines()[1] == "context: added gate: Gate.gate"


async def test_the_next_turn_is_held_to_the_new_source(tmp_path: Path) -> None:
    driver = AgentDriver(
        provider=FauxProvider([bash(), "a", bash(), "b"]), project_dir=tmp_path, manager=managed(tmp_path)
    )
    driver.agent.manager.load("gate")
    first = await driver.send("go")
    (tmp_path / "plugins/gate.py").write_text(plugin(seams=()))
    assert resync_agent(driver).success
    second = await driver.send("again")
    texts = [message.content for message in second.messages if message.role == "tool"]
    assert texts[0].endswith("Blocked by interceptor: v1 no")
    assert "Blocked" not in texts[1]
    assert [result.policies for result in (first, second)] == [(first.policies[0],), ()]
    assert first.policies[0].startswith("gate@1-")


async def test_the_record_says_which_versions_decided(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "sessions", project=tmp_path, model="faux")
    provider = FauxProvider([bash(), "a", "b"])
    driver = AgentDriver(provider=provider, project_dir=tmp_path, manager=managed(tmp_path), journal=journal)
    driver.agent.manager.load("gate")
    await driver.send("go")
    first = driver.agent.manager.versions["gate"]
    (tmp_path / "plugins/gate.py").write_text(plugin(version="v2 "))
    assert resync_agent(driver).success
    await driver.send("again")
    second = driver.agent.manager.versions["gate"]
    journal.close()
    records = [json.loads(line) for line in journal.path.read_text().splitlines()]
    assert [record["version"] for record in records if record["type"] == "decision"] == [first]
    assert [record["policies"] for record in records if record["type"] == "turn"] == [[first], [second]]
    assert first != second


def test_the_wanted_plugins_are_loaded_unloaded_and_given_new_options(tmp_path: Path) -> None:
    one = agent(tmp_path)
    one.manager.load("gate")
    report = resync_agent(one, {"gate": {"word": "stop"}, "other": {}, "missing": {}})
    assert report.plugins.added == ("other",)
    assert report.plugins.refreshed == ("gate",)
    ((name, reason),) = report.plugins.failed
    assert (name, "there is no plugin 'missing'" in reason) == ("missing", True)
    assert one.manager.named == {"gate": {"word": "stop"}, "other": {}}
    assert resync_agent(one, {"other": {}}).plugins == Changes(removed=("gate",), refreshed=("other",))
    assert resync_agent(one, {}).tools == Changes(removed=("two",))


def test_options_are_found_by_the_name_that_a_plugin_was_loaded_by(tmp_path: Path) -> None:
    one = agent(tmp_path)
    (tmp_path / "plugins/file_name.py").write_text(plugin("own-name", tool="three"))
    one.manager.load("file_name")
    report = resync_agent(one, {"file_name": {"word": "stop"}})
    assert report.plugins == Changes(refreshed=("own-name",))
    assert one.manager.named == {"file_name": {"word": "stop"}}


def test_refused_options_leave_the_plugin_as_it_was(tmp_path: Path) -> None:
    one = agent(tmp_path)
    before = one.manager.load("gate")
    report = resync_agent(one, {"gate": {"worm": "x"}})
    assert "did you mean 'word'" in report.plugins.failed[0][1]
    assert one.manager.plugins == {"gate": before}


def test_warnings_are_told(tmp_path: Path) -> None:
    one = agent(tmp_path)
    states = plugin() + "\n    def export_state(self):\n        return 1\n"
    (tmp_path / "plugins/gate.py").write_text(states)
    one.manager.load("gate")
    assert resync_agent(one).notes == ("gate: the new version takes no state and starts afresh",)
    (tmp_path / "plugins/gate.py").write_text(states + "\n    def deactivate(self):\n        raise OSError('held')\n")
    assert resync_agent(one).success
    (note,) = resync_agent(one, {}).notes
    assert "its deactivate raised" in note


def test_nothing_to_do_is_told_too(tmp_path: Path) -> None:
    bare = CodingAgent(provider=FauxProvider(), project_dir=tmp_path)
    assert resync_agent(bare).lines()[0] == "nothing changed"
    assert "manager=" in resync_agent(bare).notes[0]
    report = resync_agent(agent(tmp_path))
    assert (report.success, report.lines()) == (True, ["nothing changed"])


def during_a_turn(tmp_path: Path, act: Callable[[Any], object], *, driver: bool) -> list[Any]:
    """Run `act` with the agent inside a tool of its own turn, and return what became of it."""
    became: list[Any] = []

    @tool(effect="read")
    def probe() -> str:
        """Try it."""
        try:
            became.append(act(used))
        except MisuseError as exc:
            became.append(exc)
        return "done"

    script: list[Any] = [{"tool_calls": [{"name": "probe", "arguments": {}}]}, "end"]
    kwargs: dict[str, Any] = {"provider": FauxProvider(script), "project_dir": tmp_path, "extra_tools": [probe]}
    kwargs["manager"] = managed(tmp_path)
    used: Any = AgentDriver(**kwargs) if driver else CodingAgent(**kwargs)
    asyncio.run(_finish(used.send("go") if driver else used.run("go")))
    became.append(act(used))
    return became


async def _finish(turn: Any) -> None:
    await turn


@pytest.mark.parametrize("driver", [True, False])
def test_it_refuses_while_a_turn_runs(tmp_path: Path, driver: bool) -> None:
    def act(used: Any) -> ResyncReport:
        return resync_agent(used, {"gate": {}})

    refused, done = during_a_turn(tmp_path, act, driver=driver)
    assert isinstance(refused, MisuseError)
    assert "while a turn of the agent runs" in str(refused)
    assert done.plugins == Changes(added=("gate",))


async def test_an_abandoned_or_failed_turn_leaves_the_agent_at_rest(tmp_path: Path) -> None:
    one = agent(tmp_path, [bash(), "x"])
    turn = one.run("go")
    await anext(aiter(turn))
    assert one.running
    await turn.aclose()
    assert not one.running
    one.loop = "no such loop"
    with pytest.raises(MisuseError):
        await one.run("go")
    assert not one.running


async def test_a_sub_agent_is_held_to_the_version_that_its_turn_began_with(tmp_path: Path) -> None:
    """A swap in the middle of a turn: the sub-agent that starts after it sees the old chains once, the next turn the
    new ones, and nobody both."""
    folder = tmp_path / "plugins"
    outer = agent(tmp_path)
    sub = CodingAgent(provider=FauxProvider([bash(), "sub"]), project_dir=tmp_path, manager=outer.manager)
    outer.manager.load("gate")

    @tool(effect="read")
    def swap() -> str:
        """Swap the policy."""
        (folder / "gate.py").write_text(plugin(version="v2 ", seams=("context",)))
        outer.manager.reload("gate")
        PluginExtensionRegistry.register_interceptor("context", late)
        return "swapped"

    def late(messages: list[Message]) -> None:
        seen.append(messages[-1].content)

    seen: list[str] = []
    (folder / "gate.py").write_text(
        plugin(seams=("tool_call", "tool_result")).replace("def gate(self, *args):", ONLY_BASH)
    )
    outer.manager.reload("gate")
    outer._tools += [swap, DelegateTool(sub_agent=sub)]
    names = [{"name": "swap", "arguments": {}}], [{"name": "delegate", "arguments": {"task": "do it"}}]
    outer.provider = FauxProvider([*({"tool_calls": calls} for calls in names), "end"])
    events = [event.data async for event in outer.run("go")]
    decided = {event.version.partition("-")[0] for event in events if hasattr(event, "seam")}
    assert decided == {"gate@2"}
    assert seen == ["do it", "Blocked by interceptor: v1 no"], (
        "what was not there when the turn began has a say in what begins later"
    )
    result = await sub.run("again")
    assert result.reason == "interceptor_blocked: v2 no"
    assert [policy.partition("-")[0] for policy in result.policies] == ["gate@3"]


ONLY_BASH = """def gate(self, *args):
        if args[0].name != "bash":
            return None"""


def test_the_programs_own_chains_are_no_plugins(tmp_path: Path) -> None:
    def mine(call: Any) -> InterceptDecision | None:
        return None

    class Local(BasePlugin):
        name = "local"

    one = agent(tmp_path)
    one.manager.load_plugin(Local())
    PluginExtensionRegistry.register_interceptor("tool_call", mine)
    PluginExtensionRegistry.register_interceptor("tool_call", mine)
    report = resync_agent(one, {})
    assert report.interceptors["tool_call"] == Changes()
    assert "cannot be imported again" in report.plugins.failed[0][1]
    assert list(one.manager.plugins) == ["local"]


def test_agents_in_other_threads_may_run_meanwhile(tmp_path: Path) -> None:
    one, other = agent(tmp_path), agent(tmp_path, ["x"] * 200)
    one.manager.load("gate")
    stop, failures = threading.Event(), []

    async def turns() -> None:
        while not stop.is_set():
            result = await other.run("go")
            if not result.success:
                failures.append(result)

    thread = threading.Thread(target=asyncio.run, args=(turns(),))
    thread.start()
    try:
        for _ in range(5):
            assert resync_agent(one).plugins == Changes(refreshed=("gate",))
    finally:
        stop.set()
        thread.join()
    assert failures == []
