"""Lanes that race on the screen: each with its own copy of the project, questions one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chimera.assembly.driver import AgentDriver
from chimera.assembly.lanes import Lane, parse_lanes
from chimera.assembly.settings import Settings
from chimera.permissions import RuleSet, policy_for_mode
from chimera.providers.faux import FauxProvider
from chimera.tui.app import ChimeraApp
from chimera.tui.approval_screen import ApprovalScreen
from chimera.tui.diff_screen import DiffScreen
from chimera.tui.racing import Course
from chimera.tui.state import AppState
from tests.tui.desk import CHECK, Wait, typed, wait_for

SIZE = (100, 34)
EDIT = {"name": "edit_file", "arguments": {"path": "a.py", "old_string": "1", "new_string": "2"}}
SCRIPTS: dict[str, list[Any]] = {
    "editor": [{"tool_calls": [EDIT]}, {"tool_calls": [CHECK]}, "Edited."],
    "waiter": [{"tool_calls": [{"name": "wait"}]}, "Waited."],
    "talker": ["I only talk."],
    "asker": [{"tool_calls": [CHECK]}, "Asked."],
    "broken": [{"error": "no wire"}],
}


@pytest.fixture(autouse=True)
def copies_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Races keep their copies in a folder of the test, and leave none."""
    monkeypatch.setenv("CHIMERA_RACE_DIR", str(tmp_path / "races"))
    yield
    left = list((tmp_path / "races").glob("*")) if (tmp_path / "races").exists() else []
    assert left == []


class Race:
    """An app with lanes over scripted models, in a project with one file."""

    def __init__(self, tmp_path: Path, lanes: str, check: str | None = None) -> None:
        self.project = tmp_path / "shop"
        self.project.mkdir()
        (self.project / "a.py").write_text("x = 1\n")
        self.waits: dict[str, Wait] = {}
        self.agents: dict[str, AgentDriver] = {}
        self.app = ChimeraApp(AppState(), course=Course(parse_lanes(lanes), self.made, check), utc=True, reaction=0.0)
        opened = SimpleNamespace(
            manager=SimpleNamespace(plugins={}, components=SimpleNamespace(commands={})),
            settings=Settings(), mode="ask", project=self.project, options=SimpleNamespace(plugins=()),
        )  # fmt: skip
        self.app.lanes.attach(opened)

    def made(self, lane: Lane, bus: Any, ask: Any) -> Any:
        wait = self.waits[lane.name] = Wait()
        agent = AgentDriver(
            provider=FauxProvider(SCRIPTS[lane.spec.model.partition("#")[0]], model=lane.spec.model),
            project_dir=lane.root,
            permissions=policy_for_mode("ask", RuleSet(allow=["Edit"], root=lane.root), root=lane.root),
            permission_callback=ask,
            event_bus=bus,
            extra_tools=[wait],
            lane=lane.name,
        )
        self.agents[lane.name] = agent
        return _Closing(agent)

    def waiting(self, *lanes: str) -> bool:
        return all(lane in self.waits and self.waits[lane].begun.is_set() for lane in lanes)

    @property
    def ended(self) -> bool:
        scores = self.app.state.scores()
        return bool(scores) and all(score.ended for score in scores) and not self.app.state.running

    def texts(self) -> str:
        return "\n".join(getattr(entry, "text", "") for entry in self.app.state.lane.entries)


class _Closing:
    """An `AgentDriver` with the `close` of a session."""

    def __init__(self, driver: AgentDriver) -> None:
        self.send, self.cancel, self.steer, self.agent = driver.send, driver.cancel, driver.steer, driver.agent

    def close(self) -> None:
        self.cancel()


async def test_a_race_from_task_to_apply(tmp_path: Path) -> None:
    race = Race(tmp_path, "editor,talker", check="grep -q 2 a.py")
    app = race.app
    async with app.run_test(size=SIZE) as pilot:
        await typed(pilot, "make it 2", "enter")
        await wait_for(pilot, lambda: isinstance(app.screen, ApprovalScreen))
        assert "in editor" in str(app.screen.query_one("#approval-title").render())
        await pilot.press("y")
        await wait_for(pilot, lambda: race.ended)
        board = str(app.query_one("#scoreboard").render())
        assert [line.split()[:4] for line in board.splitlines()[1:]] == [
            ["▶★", "1", "editor", "finished"], ["2", "talker", "finished", "failed"]
        ]  # fmt: skip
        assert (race.project / "a.py").read_text() == "x = 1\n"
        await pilot.press("ctrl+n")
        assert app.state.current == "talker"
        await pilot.press("ctrl+g")
        await wait_for(pilot, lambda: isinstance(app.screen, DiffScreen))
        assert "It changed nothing" in str(app.screen.query_one("#diff-text").render())
        await pilot.press("escape")
        await typed(pilot, "/diff 1", "enter")
        await wait_for(pilot, lambda: isinstance(app.screen, DiffScreen))
        assert "+ x = 2" in str(app.screen.query_one("#diff-text").render())
        await pilot.press("escape")
        await typed(pilot, "/apply 7", "enter")
        assert "there is no lane '7'" in race.texts()
        await typed(pilot, "/apply editor", "enter")
        await wait_for(pilot, lambda: "editor was applied to the project: a.py" in race.texts())
    assert app.lanes.close()
    assert (race.project / "a.py").read_text() == "x = 2\n"


async def test_a_project_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    race = Race(tmp_path, "editor")
    async with race.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "make it 2", "enter")
        await wait_for(pilot, lambda: isinstance(race.app.screen, ApprovalScreen))
        await pilot.press("y")
        await wait_for(pilot, lambda: race.ended)
        (race.project / "a.py").write_text("x = 3\n")
        await typed(pilot, "/apply", "enter")
        await wait_for(pilot, lambda: "changed" in race.texts())
    assert race.app.lanes.close()
    assert (race.project / "a.py").read_text() == "x = 3\n"


async def test_questions_of_lanes_come_one_at_a_time_and_hold_up_their_lane_alone(tmp_path: Path) -> None:
    race = Race(tmp_path, "asker,asker,talker")
    app = race.app
    async with app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, lambda: len(app.state.questions) == 2)
        await wait_for(pilot, lambda: not app.state.lanes["talker"].running)
        first = app.screen
        assert isinstance(first, ApprovalScreen)
        assert "1 more waiting" in str(first.query_one("#approval-hint").render())
        assert len([screen for screen in app.screen_stack if isinstance(screen, ApprovalScreen)]) == 1
        await pilot.press("y")
        await wait_for(pilot, lambda: isinstance(app.screen, ApprovalScreen) and app.screen is not first)
        await pilot.press("n", *"no", "enter")
        await wait_for(pilot, lambda: race.ended)
        assert [item.verdict for item in app.state.timeline.decisions] == ["approved", "denied"]
        assert {item.lane for item in app.state.timeline.decisions} == {"asker", "asker#2"}
    assert app.lanes.close()


async def test_one_lane_is_steered_and_cancelled_and_another_breaks(tmp_path: Path) -> None:
    race = Race(tmp_path, "waiter,broken,waiter")
    app = race.app
    async with app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, lambda: race.waiting("waiter", "waiter#2"))
        await wait_for(pilot, lambda: not app.state.lanes["broken"].running)
        await typed(pilot, "hurry", "enter")
        await wait_for(pilot, lambda: app.state.lane.waiting == ["hurry"])
        await pilot.press("ctrl+p", "escape")
        await wait_for(pilot, lambda: not app.state.lanes["waiter#2"].running)
        await typed(pilot, "too late", "enter")
        assert "this lane has ended" in race.texts()
        race.waits["waiter"].go_on.set()
        await wait_for(pilot, lambda: race.ended)
        states = {score.name: score.state for score in app.state.scores()}
        assert states == {"waiter": "finished", "broken": "failed", "waiter#2": "cancelled"}
        assert any("hurry" in message.content for message in race.agents["waiter"].history)
    assert app.lanes.close()


async def test_ctrl_c_cancels_all_lanes_and_a_new_task_is_a_new_race(tmp_path: Path) -> None:
    race = Race(tmp_path, "waiter,waiter")
    app = race.app
    async with app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, lambda: race.waiting("waiter", "waiter#2"))
        await pilot.press("ctrl+c")
        await wait_for(pilot, lambda: race.ended)
        assert {score.state for score in app.state.scores()} == {"cancelled"}
        await wait_for(pilot, lambda: not app.lanes._runner.is_alive())  # type: ignore[attr-defined]
        race.waits.clear()
        await typed(pilot, "again", "enter")
        await wait_for(pilot, lambda: race.waiting("waiter", "waiter#2"))
        for wait in race.waits.values():
            wait.go_on.set()
        await wait_for(pilot, lambda: race.ended and {score.state for score in app.state.scores()} == {"finished"})
    assert app.lanes.close()


async def test_leaving_in_the_middle_leaves_nothing_behind(tmp_path: Path) -> None:
    race = Race(tmp_path, "asker,waiter")
    async with race.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, lambda: isinstance(race.app.screen, ApprovalScreen))
        race.app.leave(0)
    assert race.app.lanes.close()


async def test_a_race_that_cannot_begin_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    race = Race(tmp_path, "talker")
    monkeypatch.setenv("CHIMERA_RACE_DIR", str(race.project / "inside"))
    async with race.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "/diff", "enter")
        assert "there was no race yet" in race.texts()
        for command in ("/model", "/compact", "/clear"):
            await typed(pilot, command, "escape", "enter")
        assert race.texts().count("this is for one agent, and here several race") == 3
        await typed(pilot, "go", "enter")
        await wait_for(pilot, lambda: "cannot lie in the project itself" in race.texts())
        assert not race.app.state.running
    assert race.app.lanes.close()
    monkeypatch.setenv("CHIMERA_RACE_DIR", str(tmp_path / "races"))
