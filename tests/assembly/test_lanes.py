"""Races: several agents at one task, apart from each other, and one of them applied."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chimera.assembly.driver import AgentDriver
from chimera.assembly.edits import Edit
from chimera.assembly.lanes import Lane, LaneEvent, LaneSpec, Race, parse_lanes
from chimera.core.decisions import InterceptDecision
from chimera.core.loop_events import LoopEventType
from chimera.errors import ConfigError, MisuseError, OutsideError
from chimera.plugins import BasePlugin, PluginExtensionRegistry, PluginManager
from chimera.providers.faux import FauxProvider
from chimera.tools import default_tools
from chimera.types import ToolCall
from tests.assembly.lanes import load_loop
from tests.assembly.repositories import contents, git, new_repository, write_project


def write(path: str, content: str) -> dict[str, Any]:
    return {"name": "write_file", "arguments": {"path": path, "content": content}}


def run(command: str) -> dict[str, Any]:
    return {"name": "bash", "arguments": {"command": command}}


GOOD: list[Any] = [
    {"tool_calls": [write("result.txt", "good\n")], "usage": {"input_tokens": 70, "output_tokens": 7}},
    "Did it.",
]
BAD: list[Any] = [{"tool_calls": [write("result.txt", "bad\n"), run("echo more > extra.txt")]}, "Did something."]
IDLE: list[Any] = ["I would rather not."]
BROKEN: list[Any] = [{"tool_calls": [write("result.txt", "half\n")]}, {"error": "the service is down"}]
SLOW: list[Any] = [{"tool_calls": [run("touch begun; sleep 60")]}, "Slept well."]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "project")


def race_of(project: Path, scripts: dict[str, Any], **options: Any) -> Race:
    """Return a race in which each lane follows its script; the scripts are named like models."""

    def make(lane: Lane) -> AgentDriver:
        provider = FauxProvider(scripts[lane.spec.model], usd_per_token=0.001)
        return AgentDriver(provider=provider, project_dir=lane.root, loop=lane.spec.loop, lane=lane.name)

    specs = options.pop("specs", None) or [LaneSpec(model) for model in scripts]
    options.setdefault("make_agent", make)
    return Race("do the task", specs, project, folder=project.parent / "races", **options)


def watch(race: Race, react: Callable[[LaneEvent], object] = lambda event: None) -> list[LaneEvent]:
    """Run the race to its end and return its events; each lane has exactly one result, and it comes last."""

    async def main() -> list[LaneEvent]:
        found = []
        async for event in race:
            react(event)
            found.append(event)
        return found

    events = asyncio.run(main())
    for name in race.lanes:
        kinds = [item.event.type for item in events if item.lane == name]
        assert kinds.count(LoopEventType.RESULT) == 1
        assert kinds[-1] is LoopEventType.RESULT
    return events


def test_the_best_lane_is_applied_and_nothing_is_left(repository: Path) -> None:
    before = contents(repository)
    with race_of(repository, {"idle": IDLE, "bad": BAD, "good": GOOD}, check="grep -q good result.txt") as race:
        watch(race)
        assert contents(repository) == before
        assert race.scoreboard[0].name == race.best == "good"
        assert race.edits("good") == [Edit("result.txt", "added")]
        assert "+good" in race.diff("good")
        assert race.diff("idle") == ""
        assert race.apply("good") == race.edits("good")
        with pytest.raises(OutsideError, match="the project changed since the race began"):
            race.apply("bad")
    assert contents(repository) == before | {"result.txt": "- good\n"}
    assert git(repository, "worktree", "list").count("\n") == 1
    assert list((repository.parent / "races").iterdir()) == []


def test_the_scoreboard_tells_how_each_did(repository: Path) -> None:
    scripts = {"good": GOOD, "bad": BAD, "broken": BROKEN}
    with race_of(repository, scripts, check="cat result.txt; grep -q good result.txt") as race:
        watch(race)
        good, bad, broken = (race.lanes[name].score for name in scripts)
    assert (good.state, good.won, good.reason, good.output) == ("finished", True, "completed", "Did it.")
    assert (good.input_tokens, good.output_tokens, good.steps, good.files) == (70, 7, 2, 1)
    assert good.cost_usd == pytest.approx(0.077)
    assert good.check is not None
    assert (good.check.passed, good.check.exit_code, good.check.output, str(good.check)) == (
        True,
        0,
        "good\n",
        "passed",
    )
    assert bad.check is not None
    assert (bad.state, bad.won, bad.files, str(bad.check)) == ("finished", False, 2, "failed with exit code 1")
    assert (broken.state, broken.won, broken.ended) == ("failed", False, True)
    assert "the service is down" in broken.reason
    assert all(score.seconds > 0 for score in (good, bad, broken))


def test_without_a_check_the_lane_that_did_something_cheaply_is_best(repository: Path) -> None:
    dear = [{**GOOD[0], "usage": {"input_tokens": 5000}}, "Done."]
    with race_of(repository, {"idle": IDLE, "dear": dear, "good": GOOD, "broken": BROKEN}) as race:
        watch(race)
        assert [score.name for score in race.scoreboard] == ["good", "dear", "idle", "broken"]
        assert all(score.check is None for score in race.scoreboard)


def test_lanes_run_at_once_and_apart(tmp_path: Path) -> None:
    """Each waits for what the other one does, which it can see in a common place alone."""
    project, common = write_project(tmp_path / "project"), tmp_path / "common"
    common.mkdir()

    def script(own: str, other: str) -> list[Any]:
        wait = f"touch {common}/{own} mine-{own}; until [ -e {common}/{other} ]; do sleep 0.01; done; ls"
        return [{"tool_calls": [run(wait)]}, "Done."]

    with race_of(project, {"a": script("a", "b"), "b": script("b", "a")}) as race:
        events = watch(race)
        listed = {e.lane: e.event.data[1].output for e in events if e.event.type is LoopEventType.TOOL_RESULT}
        assert race.edits("a") == [Edit("mine-a", "added")]
    assert "mine-a" in listed["a"]
    assert "mine-b" not in listed["a"]


class Crash(AgentDriver):
    def send(self, text: str) -> Any:
        raise RuntimeError("a bug in the lane")


def test_what_one_lane_raises_is_no_concern_of_the_others(repository: Path) -> None:
    def make(lane: Lane) -> AgentDriver:
        kind = Crash if lane.name == "crash" else AgentDriver
        return kind(provider=FauxProvider(GOOD), project_dir=lane.root, lane=lane.name)

    specs = [LaneSpec("crash"), LaneSpec("good")]
    with race_of(repository, {}, specs=specs, make_agent=make) as race:
        events = watch(race)
        assert [e.event.data for e in events if e.event.type is LoopEventType.ERROR] == [
            "RuntimeError: a bug in the lane"
        ]
        assert race.lanes["crash"].score.state == "failed"
        assert race.best == "good"
        race.apply("good")
    assert (repository / "result.txt").read_text() == "good\n"


def test_one_lane_is_cancelled_and_the_others_go_on(repository: Path) -> None:
    with race_of(repository, {"slow": SLOW, "good": GOOD}, check="true") as race:

        def react(item: LaneEvent) -> None:
            if item.lane == "slow" and item.event.type is LoopEventType.TOOL_USE:
                race.cancel("slow")

        watch(race, react)
        slow, good = race.lanes["slow"].score, race.lanes["good"].score
    assert (slow.state, slow.reason, slow.check) == ("cancelled", "aborted", None)
    assert good.won


def test_a_race_that_is_cancelled_ends(repository: Path) -> None:
    with race_of(repository, {"slow": SLOW, "slower": SLOW}) as race:
        watch(race, lambda item: race.cancel() if item.event.type is LoopEventType.TOOL_USE else None)
        assert {score.state for score in race.scoreboard} == {"cancelled"}
        assert race.best is None


def test_a_lane_that_is_cancelled_before_it_begins_does_nothing(repository: Path) -> None:
    with race_of(repository, {"a": GOOD, "b": GOOD}) as race:
        race.cancel("a")
        watch(race)
        assert race.lanes["a"].agent.agent.provider.requests == []
        assert race.lanes["a"].score.state == "cancelled"


def test_a_race_that_nobody_watches_to_its_end_leaves_nothing(repository: Path) -> None:
    async def give_up() -> None:
        async with race_of(repository, {"slow": SLOW, "good": GOOD}) as race:
            events = race.events()
            async for item in events:
                if item.lane == "slow" and item.event.type is LoopEventType.TOOL_USE:
                    break
            await events.aclose()
            assert race.lanes["slow"].score.state == "cancelled"

    asyncio.run(give_up())
    assert list((repository.parent / "races").iterdir()) == []
    assert git(repository, "worktree", "list").count("\n") == 1


def test_a_check_is_stopped_when_its_time_is_over(repository: Path) -> None:
    with race_of(repository, {"good": GOOD}, check="sleep 60", check_seconds=0.05) as race:
        watch(race)
        check = race.lanes["good"].score.check
        assert check is not None
        assert (check.passed, check.exit_code, str(check)) == (False, None, "did not finish")
        assert race.best is None


def test_a_check_is_stopped_with_its_lane(repository: Path) -> None:
    with race_of(repository, {"good": GOOD}, check="sleep 60") as race:
        watch(race, lambda item: race.cancel() if item.event.type is LoopEventType.SYSTEM else None)
        assert not race.lanes["good"].score.won


def test_a_check_may_make_files_that_count(repository: Path) -> None:
    with race_of(repository, {"good": GOOD}, check="echo made > by-check.txt") as race:
        watch(race)
        assert race.edits("good") == [Edit("by-check.txt", "added"), Edit("result.txt", "added")]


class Gate(BasePlugin):
    """No writing of results."""

    name = "gate"

    def register_interceptors(self, registry: Any) -> None:
        PluginExtensionRegistry.register_interceptor("tool_call", self.judge)

    def judge(self, call: ToolCall) -> InterceptDecision | None:
        return InterceptDecision.block("no results") if call.arguments.get("path") == "result.txt" else None


@pytest.mark.parametrize("loop", [None, "reflexion", "plan-execute", "tot"])
def test_every_lane_is_held_to_the_chains_of_plugins(repository: Path, loop: str | None) -> None:
    PluginManager().load_plugin(Gate())
    script = [*GOOD[:1], "VERDICT: PASS"]
    with race_of(repository, {"m": script}, specs=[LaneSpec("m", loop)]) as race:
        watch(race)
        (score,) = race.scoreboard
        assert score.files == 0
        assert score.blocks >= 1


def test_loops_of_plugins_are_lanes_too(repository: Path) -> None:
    load_loop("wrapped")
    with race_of(repository, {"m": GOOD}, specs=[LaneSpec("m", "wrapped")]) as race:
        watch(race)
        assert race.lanes["m:wrapped"].score.won


def test_denials_count_as_blocks(repository: Path) -> None:
    from chimera.permissions import InteractivePolicy

    def make(lane: Lane) -> AgentDriver:
        policy = InteractivePolicy.for_tools(default_tools(lane.root))
        return AgentDriver(provider=FauxProvider(BAD), project_dir=lane.root, permissions=policy)

    with race_of(repository, {}, specs=[LaneSpec("bad")], make_agent=make) as race:
        watch(race)
        assert race.lanes["bad"].score.blocks == 2
        assert race.lanes["bad"].score.files == 0


def test_lanes_that_are_alike_have_names_of_their_own(repository: Path) -> None:
    specs = [LaneSpec("good"), LaneSpec("good"), LaneSpec("good", "tot"), LaneSpec("good")]
    with race_of(repository, {"good": GOOD}, specs=specs) as race:
        assert list(race.lanes) == ["good", "good#2", "good:tot", "good#3"]
        assert len({lane.root for lane in race.lanes.values()}) == 4


def test_a_lane_that_runs_is_not_applied_and_shows_its_work(repository: Path) -> None:
    seen: list[str] = []
    with race_of(repository, {"good": GOOD}) as race:

        def react(item: LaneEvent) -> None:
            if item.event.type is LoopEventType.TOOL_RESULT:
                with pytest.raises(OutsideError, match="has not ended yet"):
                    race.apply("good")
                seen.append(race.diff("good"))

        watch(race, react)
    assert "+good" in seen[0]


def test_a_lane_that_cannot_be_made_leaves_nothing(repository: Path) -> None:
    def make(lane: Lane) -> AgentDriver:
        if lane.name == "b":
            raise ConfigError("no such model")
        return AgentDriver(provider=FauxProvider(GOOD), project_dir=lane.root)

    race = race_of(repository, {"a": GOOD, "b": GOOD}, make_agent=make)
    with pytest.raises(ConfigError, match="no such model"):
        race.open()
    assert list((repository.parent / "races").iterdir()) == []
    assert git(repository, "worktree", "list").count("\n") == 1


def test_by_default_lanes_follow_their_models(repository: Path) -> None:
    path = repository.parent / "script.json"
    path.write_text(json.dumps(GOOD))
    with race_of(repository, {}, specs=[LaneSpec(f"faux:{path}")], make_agent=None) as race:
        watch(race)
        assert race.best == f"faux:{path}"


def test_misuse_is_told(repository: Path) -> None:
    with pytest.raises(MisuseError, match="at least one lane"):
        Race("x", [], repository)
    with pytest.raises(MisuseError, match="does not exist"):
        Race("x", [LaneSpec("m")], repository / "nowhere")
    race = race_of(repository, {"good": GOOD})
    with pytest.raises(MisuseError, match="while it is open"):
        watch(race)
    with race:
        with pytest.raises(MisuseError, match="open already"):
            race.open()
        with pytest.raises(ConfigError, match="there is no lane 'x'; there are good"):
            race.diff("x")
        watch(race)
        with pytest.raises(MisuseError, match="runs once"):
            watch(race)
    with pytest.raises(MisuseError, match="is closed"):
        race.apply("good")
    race.close()


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        ("a", [("a", None)]),
        ("a,b:reflexion,c:tot", [("a", None), ("b", "reflexion"), ("c", "tot")]),
        (" a , b:plan-execute ", [("a", None), ("b", "plan-execute")]),
        ("faux:script.json", [("faux:script.json", None)]),
        ("faux:script.json:tot", [("faux:script.json", "tot")]),
        ("llama3:8b,llama3:8b:reflexion", [("llama3:8b", None), ("llama3:8b", "reflexion")]),
        ("openai:gpt-x:reflection", [("openai:gpt-x:reflection", None)]),
        ("tot", [("tot", None)]),
    ],
)
def test_lanes_are_written_as_models_with_loops(text: str, specs: list[tuple[str, str | None]]) -> None:
    parsed = parse_lanes(text)
    assert parsed == specs
    assert ",".join(map(str, parsed)) == text.replace(" ", "")


@pytest.mark.parametrize("text", ["", ",", "a,", " , b", "a,,b"])
def test_an_empty_lane_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="MODEL or MODEL:LOOP"):
        parse_lanes(text)
