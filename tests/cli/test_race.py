"""Races on the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from chimera.assembly.journal import latest_session, list_sessions, read_session
from chimera.assembly.scoreboard import Check, LaneScore
from chimera.cli.code import run_code
from chimera.cli.exits import FAILED, INTERRUPTED, OK, TERMINATED, USAGE
from chimera.cli.options import LATEST, CodeOptions, Mode, Output
from chimera.cli.race import score_table
from chimera.errors import ConfigError
from tests.assembly.repositories import contents, git, new_repository
from tests.cli.child import chimera, command, environment
from tests.cli.consoles import recorded


def write(path: str, content: str) -> dict[str, Any]:
    return {"name": "write_file", "arguments": {"path": path, "content": content}}


def bash(text: str) -> dict[str, Any]:
    return {"name": "bash", "arguments": {"command": text}}


GOOD = [{"tool_calls": [write("result.txt", "good\n")], "usage": {"input_tokens": 70}}, "Did it."]
BAD = [{"text": "Trying.", "tool_calls": [write("result.txt", "bad\n"), bash("rm -rf src")]}, "Did something."]
CHECK = "grep -q good result.txt"
Race = Callable[..., "Done"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = new_repository(tmp_path / "project")
    for name, steps in (("good", GOOD), ("bad", BAD)):
        (tmp_path / f"{name}.json").write_text(json.dumps(steps))
    return project


LANES = "faux:../bad.json,faux:../good.json"


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def race(project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Race:
    """A race in this process."""
    monkeypatch.chdir(project)

    def run(**options: Any) -> Done:
        chosen = CodeOptions(**{"lanes": LANES, "check": CHECK, **options})
        return Done(run_code(chosen, "make a result"), *capsys.readouterr())

    return run


def test_the_best_lane_is_applied(project: Path, race: Race) -> None:
    before = contents(project)
    done = race(apply="best")
    assert done.returncode == OK, done.stderr
    assert contents(project) == before | {"result.txt": "- good\n"}
    assert "[1] > write_file" in done.stderr
    assert "[1] ! bash: Permission denied" in done.stderr
    assert "[2] ~ the check passed" in done.stderr
    assert "lane 2 was applied: 1 file" in done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[2:]]
    assert [(row[0], row[1], row[3]) for row in rows] == [
        ("2", "faux:../good.json", "passed"),
        ("1", "faux:../bad.json", "failed"),
    ]
    assert rows[1][-2:] == ["1", "1"]
    assert git(project, "worktree", "list").count("\n") == 1


@pytest.mark.parametrize("lane", ["1", "faux:../bad.json"])
def test_any_lane_may_be_applied(project: Path, race: Race, lane: str) -> None:
    assert race(apply=lane).returncode == OK
    assert (project / "result.txt").read_text() == "bad\n"


def test_without_apply_the_project_stays_and_the_work_is_shown(project: Path, race: Race) -> None:
    before = contents(project)
    done = race()
    assert done.returncode == OK
    assert contents(project) == before
    assert "+++ b/result.txt" in done.stdout
    assert "+good" in done.stdout
    assert "nothing was applied; this is what lane 2 did" in done.stderr


def test_without_a_winner_nothing_is_applied(project: Path, race: Race) -> None:
    done = race(check="false", apply="best", output=Output.JSON)
    assert done.returncode == FAILED
    result = json.loads(done.stdout)
    assert (result["best"], result["applied"]) == (None, None)
    assert result["problem"] == "no lane succeeded, so none was applied"
    assert not (project / "result.txt").exists()


def test_a_project_that_changed_meanwhile_is_left_alone(project: Path, race: Race) -> None:
    done = race(check=f"echo meanwhile > {project}/readme.md", apply="best")
    assert done.returncode == FAILED
    assert "the project changed since the race began (readme.md); nothing was applied" in done.stderr
    assert not (project / "result.txt").exists()


def test_json_tells_of_every_lane(race: Race) -> None:
    done = race(output=Output.JSON, lanes="faux:../good.json,faux:../good.json:tot")
    assert done.stderr == ""
    result = json.loads(done.stdout)
    lanes = {lane["loop"]: lane for lane in result["lanes"]}
    assert lanes.keys() == {None, "tot"}
    assert result["best"] == result["lanes"][0]["name"]
    first = lanes[None]
    assert first["check"] == {"passed": True, "exit_code": 0, "output": ""}
    assert (first["state"], first["won"], first["input_tokens"], first["files"]) == ("finished", True, 70, 1)
    assert "+good" in first["diff"]


@pytest.mark.parametrize("output", Output)
def test_no_output_holds_the_secrets_of_reasons(tmp_path: Path, race: Race, output: Output) -> None:
    key = "sk-" + "a1B2c3D4" * 3
    (tmp_path / "bad.json").write_text(json.dumps([{"error": f"the service refuses {key}"}]))
    done = race(output=output)
    assert key not in done.stdout + done.stderr
    assert "refuses [redacted]" in done.stdout + done.stderr


def test_stream_json_names_the_lane_of_each_event(race: Race) -> None:
    done = race(output=Output.STREAM_JSON, apply="2")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert {event["lane"] for event in events[:-1]} == {"faux:../bad.json", "faux:../good.json"}
    assert [event["type"] for event in events].count("result") == 2
    assert (events[-1]["type"], events[-1]["applied"]) == ("race", "faux:../good.json")


def test_rules_and_plugins_hold_in_every_lane(project: Path, race: Race) -> None:
    """A rule that names the project by its whole path holds in the copies of it."""
    (project / ".chimera").mkdir()
    (project / ".chimera" / "config.toml").write_text(f'[permissions]\ndeny = ["Edit(/{project}/result.txt)"]\n')
    lanes = "faux:../good.json,faux:../good.json:reflexion"
    denied = json.loads(race(output=Output.JSON, mode=Mode.YOLO, lanes=lanes).stdout)
    assert [(lane["files"], lane["blocks"]) for lane in denied["lanes"]] == [(0, 1), (0, 1)]
    (project / ".chimera" / "config.toml").unlink()
    gated = json.loads(race(output=Output.JSON, mode=Mode.YOLO, plugins=("plan-gate",), lanes=lanes).stdout)
    assert [(lane["files"], lane["blocks"]) for lane in gated["lanes"]] == [(0, 1), (0, 1)]


def test_lanes_are_recorded_and_never_the_latest_session(project: Path, race: Race) -> None:
    race()
    assert {info.lane for info in list_sessions(project=project)} == {"faux:../bad.json", "faux:../good.json"}
    assert all(read_session(info.path).turns for info in list_sessions())
    assert latest_session(project) is None
    race(records=False)
    assert len(list_sessions()) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"model": "faux"}, "--model is for one agent"),
        ({"loop": "tot"}, "--loop is for one agent"),
        ({"resume": LATEST}, "--resume is for one agent"),
        ({"lanes": "faux,"}, "MODEL or MODEL:LOOP"),
        ({"lanes": "faux,faux:nowhere.json"}, "nowhere.json"),
        ({"lanes": "faux", "apply": "3"}, "there is no lane '3' to apply; say best, a number, or one of faux"),
        ({"lanes": None}, "--check is for a race"),
        ({"lanes": None, "check": None, "apply": "best"}, "--apply is for a race"),
    ],
)
def test_what_is_wrong_is_told_before_anything_begins(
    project: Path, race: Race, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        race(**options)
    assert git(project, "worktree", "list").count("\n") == 1
    assert list_sessions() == []


def test_it_is_told_in_a_line(project: Path) -> None:
    done = chimera("code", "-p", "x", "--models", "faux", "--apply", "3", cwd=project)
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert done.stderr == "chimera: there is no lane '3' to apply; say best, a number, or one of faux\n"


class Slow:
    """A race in the middle of commands that would take a minute."""

    def __init__(self, project: Path) -> None:
        begun = project.parent / "begun"
        slow = [{"tool_calls": [bash(f"echo $$ >> {begun}; exec sleep 60")]}, "Slept."]
        (project.parent / "slow.json").write_text(json.dumps(slow))
        words = ("code", "-p", "wait", "--yolo", "--models", "faux:../slow.json,faux:../slow.json")
        self.process = subprocess.Popen(
            command(*words), cwd=project, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        while not begun.exists() or len(begun.read_text().split()) < 2:
            assert self.process.poll() is None
        self.commands = [int(word) for word in begun.read_text().split()]

    def running(self) -> list[int]:
        return [pid for pid in self.commands if Path(f"/proc/{pid}").exists()]


def test_ctrl_c_ends_all_lanes_and_leaves_nothing(project: Path) -> None:
    slow = Slow(project)
    assert git(project, "worktree", "list").count("\n") == 3
    slow.process.send_signal(signal.SIGINT)
    _, err = slow.process.communicate(timeout=30)
    assert slow.process.returncode == INTERRUPTED
    assert "Traceback" not in err
    assert slow.running() == []
    assert git(project, "worktree", "list").count("\n") == 1


def test_signals_end_the_race_in_this_process_too(project: Path, race: Race) -> None:
    """The second one ends a race that does not listen; the copies are removed all the same."""
    kill = f"kill -INT {os.getpid()}; kill -TERM {os.getpid()}; sleep 60"
    (project.parent / "slow.json").write_text(json.dumps([{"tool_calls": [bash(kill)]}]))
    done = race(lanes="faux:../slow.json", mode=Mode.YOLO)
    assert done.returncode == TERMINATED
    assert "interrupted" in done.stderr
    assert git(project, "worktree", "list").count("\n") == 1


def test_more_lanes_than_the_machine_has_threads_run_at_once(project: Path, race: Race) -> None:
    """Each lane waits for all others."""
    meet = project.parent / "meet"
    meet.mkdir()
    wait = f"touch {meet}/$$; until [ $(ls {meet} | wc -l) -ge 12 ]; do sleep 0.05; done"
    (project.parent / "meet.json").write_text(json.dumps([{"tool_calls": [bash(wait)]}, "Met."]))
    done = race(lanes=",".join(["faux:../meet.json"] * 12), mode=Mode.YOLO, check=None, output=Output.JSON)
    assert [lane["state"] for lane in json.loads(done.stdout)["lanes"]] == ["finished"] * 12


def test_where_no_session_can_be_written_a_race_is_run(
    race: Race, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CHIMERA_SESSION_DIR", "/dev/null/sessions")
    assert race().returncode == OK
    assert "no session can be recorded in" in caplog.text


def test_a_killed_race_is_cleaned_up_by_the_next_start(project: Path) -> None:
    slow = Slow(project)
    slow.process.kill()
    slow.process.communicate(timeout=30)
    for pid in slow.running():
        subprocess.run(["kill", "-9", str(pid)], check=False)
    assert git(project, "worktree", "list").count("\n") == 3
    done = chimera("code", "-p", "again", "--model", "faux", cwd=project)
    assert done.returncode == OK
    assert git(project, "worktree", "list").count("\n") == 1


def test_the_table_fits_on_a_small_terminal() -> None:
    scores = [
        LaneScore("a-provider/with-a-very-long-model-name-2026-11-30:plan-execute", "m", "plan-execute", "finished"),
        LaneScore("b", "m", None, "failed", "error: ProviderError: the service is down for maintenance"),
        LaneScore("c", "m", None, "cancelled", check=Check(False, 1), input_tokens=1_234_567, cost_usd=12.5, blocks=3),
        LaneScore("d", "m"),
    ]
    console, out = recorded(80)
    console.print(score_table(scores, {score.name: number for number, score in enumerate(scores, 1)}))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    text = " ".join(out.getvalue().split())
    for word in ("1,234,567", "$12.5000", "cancelled", "waiting", "failed"):
        assert word in text
