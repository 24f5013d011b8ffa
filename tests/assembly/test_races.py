"""What races leave behind when their process is killed, and who removes it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from chimera.assembly.races import RaceFolder, races_folder, sweep
from chimera.assembly.worktrees import Worktrees
from chimera.errors import OutsideError
from tests.assembly.repositories import contents, git, new_repository, state_of, write_project

HOLD = """
import sys, time
from pathlib import Path
from chimera.assembly.worktrees import Worktrees
trees = Worktrees(Path(sys.argv[1]), Path(sys.argv[2]))
for _ in range(2):
    root = trees.add().root
    (root / "work.txt").write_text("work")
print(root, flush=True)
time.sleep(60)
"""


class Holder:
    """A process that holds a race."""

    def __init__(self, project: Path, races: Path) -> None:
        path = os.pathsep.join((str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")))
        command = [sys.executable, "-c", HOLD, str(project), str(races)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}, text=True
        )
        assert self.process.stdout is not None
        self.root = Path(self.process.stdout.readline().strip())

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        self.process.send_signal(number)
        self.process.communicate(timeout=30)


@pytest.fixture(params=["git", "copy"])
def holder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Holder]:
    make = new_repository if request.param == "git" else write_project
    holder = Holder(make(tmp_path / "project"), tmp_path / "races")
    yield holder
    if holder.process.poll() is None:
        holder.end()


def test_the_next_race_removes_what_a_killed_one_left(holder: Holder, tmp_path: Path) -> None:
    project, races = tmp_path / "project", tmp_path / "races"
    under_git = (project / ".git").is_dir()
    assert (holder.root / "work.txt").is_file()
    if under_git:
        assert git(project, "worktree", "list").count("\n") == 3
    holder.end()
    assert (holder.root / "work.txt").is_file()
    Worktrees(project, races).close()
    assert list(races.iterdir()) == []
    if under_git:
        assert git(project, "worktree", "list").count("\n") == 1
        assert not list((project / ".git" / "worktrees").glob("*"))


def test_a_race_that_runs_is_left_alone(holder: Holder, tmp_path: Path) -> None:
    races = tmp_path / "races"
    assert sweep(races) == []
    Worktrees(tmp_path / "project", races).close()
    assert (holder.root / "work.txt").is_file()
    assert len(list(races.glob("*.json"))) == 1


def test_a_race_of_this_very_process_is_left_alone(tmp_path: Path) -> None:
    project = new_repository(tmp_path / "project")
    first = Worktrees(project, tmp_path / "races")
    root = first.add().root
    Worktrees(project, tmp_path / "races").close()
    assert root.is_dir()
    first.close()
    assert not root.exists()


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    project = new_repository(tmp_path / "project")
    code = HOLD.replace("print", "import contextlib\nwith contextlib.closing(trees):\n    print")
    code = code.replace("time.sleep", "    time.sleep")
    before = state_of(project)
    path = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", code, str(project), str(tmp_path / "races")]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert list((tmp_path / "races").iterdir()) == []
    assert state_of(project) == before


def test_a_repository_that_is_gone_is_no_obstacle(tmp_path: Path) -> None:
    project = new_repository(tmp_path / "project")
    holder = Holder(project, tmp_path / "races")
    holder.end()
    (project / ".git").rename(tmp_path / "elsewhere")
    assert len(sweep(tmp_path / "races")) == 1
    assert list((tmp_path / "races").iterdir()) == []


def test_work_trees_of_the_person_are_left_alone(tmp_path: Path) -> None:
    """One whose folder is missing just now (on a disk that is not plugged in, say) too."""
    project = new_repository(tmp_path / "project")
    git(project, "worktree", "add", "-q", "--detach", str(tmp_path / "own"))
    (tmp_path / "own").rename(tmp_path / "unplugged")
    holder = Holder(project, tmp_path / "races")
    holder.end()
    sweep(tmp_path / "races")
    assert str(tmp_path / "own") in git(project, "worktree", "list")


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"version": 2, "pid": 1, "repository": null}'])
def test_for_a_record_that_is_none_nothing_is_removed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    (tmp_path / "race-x-1.json").write_text(text)
    (tmp_path / "race-x-1").mkdir()
    assert sweep(tmp_path) == []
    assert "could not be removed" in caplog.text
    assert len(list(tmp_path.iterdir())) == 2


def test_what_is_not_of_races_is_left_alone(tmp_path: Path) -> None:
    """The folder may be one that holds other things as well."""
    write_project(tmp_path / "package")
    (tmp_path / "package.json").write_text('{"version": 1, "pid": 1, "repository": null}')
    before = contents(tmp_path)
    assert sweep(tmp_path) == []
    assert contents(tmp_path) == before


def test_records_that_never_got_their_name_go_after_a_while(tmp_path: Path) -> None:
    for name, age in ((".race-a-1.new", 3600), (".race-b-1.new", 0)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    sweep(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".race-b-1.new"]


def test_the_record_names_the_process(tmp_path: Path) -> None:
    race = RaceFolder(tmp_path / "project", tmp_path / "repository", tmp_path / "races")
    (record,) = (tmp_path / "races").glob("*.json")
    about = json.loads(record.read_text())
    assert (about["version"], about["pid"], about["project"]) == (1, os.getpid(), str(tmp_path / "project"))
    assert race.path == record.with_suffix("")
    race.close()


def test_where_races_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert races_folder() == Path(os.environ["XDG_CACHE_HOME"], "chimera", "races").resolve()
    monkeypatch.setenv("CHIMERA_RACE_DIR", str(tmp_path / "variable"))
    assert races_folder() == tmp_path / "variable"
    assert races_folder(tmp_path / "argument") == tmp_path / "argument"
    (tmp_path / "file").touch()
    with pytest.raises(OutsideError, match="no race can be held in"):
        RaceFolder(tmp_path / "project", None, tmp_path / "file" / "races")
