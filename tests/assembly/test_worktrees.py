"""Worktrees: private copies of a project, and carrying the work in one of them over, all or nothing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from chimera.assembly.edits import Edit
from chimera.assembly.worktrees import Worktrees
from chimera.errors import ConfigError, OutsideError
from tests.assembly.copies import WORK, trees_of, work_in
from tests.assembly.disks import files_at_most
from tests.assembly.repositories import contents, new_repository, write_project

KINDS: dict[str, Callable[[Path], Path]] = {"git": new_repository, "copy": write_project}


@pytest.fixture(params=KINDS)
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return KINDS[request.param](tmp_path / "project")


def test_a_copy_is_the_project_as_it_stands(project: Path) -> None:
    before = contents(project)
    with trees_of(project) as trees:
        one, other = trees.add(), trees.add()
        expected = {path: text for path, text in before.items() if not path.endswith(".log")}
        assert contents(one.root) == contents(other.root) == expected
        assert one.edits() == []
        assert one.diff() == ""
        assert trees.changed() == []
        assert trees.uses_git == (project / ".git").is_dir()
    assert contents(project) == before


def test_copies_do_not_see_each_other_or_the_project(project: Path) -> None:
    before = contents(project)
    with trees_of(project) as trees:
        one, other = trees.add(), trees.add()
        untouched = contents(other.root)
        work_in(one)
        assert one.edits() == WORK
        assert other.edits() == []
        assert contents(other.root) == untouched
        assert contents(project) == before
        assert trees.changed() == []


def test_the_work_is_applied_whole(project: Path) -> None:
    with trees_of(project) as trees:
        lane = trees.add()
        work_in(lane)
        assert trees.apply(lane) == WORK
        ignored = {"debug.log": "- ignored\n"}
        expected = {path: text for path, text in contents(lane.root).items() if not path.endswith(".log")}
        assert contents(project) == expected | ignored


def test_the_difference_is_in_unified_form(project: Path) -> None:
    with trees_of(project) as trees:
        lane = trees.add()
        (lane.root / "readme.md").write_text("by the lane, no line end")
        (lane.root / "new file.txt").write_text("fresh\n")
        (lane.root / "blob").write_bytes(b"\0\0")
        diff = lane.diff()
    assert "diff --git a/readme.md b/readme.md\n" in diff
    assert "+by the lane, no line end\n\\ No newline at end of file\n" in diff
    assert "--- /dev/null\n+++ b/new file.txt" in diff
    assert "+fresh\n" in diff
    assert "Binary files" in diff


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "readme.md").write_text("meanwhile\n"),
        lambda root: (root / "added.txt").write_text("meanwhile\n"),
        lambda root: (root / "run.sh").unlink(),
        lambda root: (root / "run.sh").chmod(0o644),
        lambda root: ((root / "link").unlink(), (root / "link").symlink_to("elsewhere")),
    ],
)
def test_nothing_is_applied_once_the_project_changed(project: Path, change: Callable[[Path], object]) -> None:
    with trees_of(project) as trees:
        lane = trees.add()
        work_in(lane)
        change(project)
        before = contents(project)
        (changed,) = trees.changed()
        with pytest.raises(OutsideError, match=rf"changed since the race began \({changed}\); nothing was applied"):
            trees.apply(lane)
        assert contents(project) == before


def test_a_change_of_what_is_ignored_is_none(project: Path) -> None:
    with trees_of(project) as trees:
        lane = trees.add()
        (lane.root / "added.txt").write_text("x")
        (project / "debug.log").write_text("grown\n")
        (project / "build").mkdir()
        (project / "build" / "out").write_text("built\n")
        assert trees.apply(lane) == [Edit("added.txt", "added")]


def test_what_is_ignored_and_there_is_not_written_over(project: Path) -> None:
    with trees_of(project) as trees:
        lane = trees.add()
        (lane.root / ".gitignore").write_text("")
        (lane.root / "debug.log").write_text("by the lane\n")
        before = contents(project)
        with pytest.raises(OutsideError, match=r"'debug\.log' is there already; nothing was changed"):
            trees.apply(lane)
        assert contents(project) == before


def test_the_mode_of_a_file_is_kept(project: Path) -> None:
    (project / "readme.md").chmod(0o600)
    with trees_of(project) as trees:
        lane = trees.add()
        (lane.root / "readme.md").write_text("private still\n")
        trees.apply(lane)
    assert (project / "readme.md").stat().st_mode & 0o777 == 0o600


def test_nothing_is_left_when_it_is_closed(project: Path) -> None:
    trees = Worktrees(project, project.parent / "races")
    lane = trees.add()
    (lane.root / "locked").mkdir()
    (lane.root / "locked" / "file").touch()
    (lane.root / "locked").chmod(0o500)
    trees.close()
    trees.close()
    assert list((project.parent / "races").iterdir()) == []


def test_copies_cannot_lie_in_the_project(project: Path) -> None:
    with pytest.raises(ConfigError, match="cannot lie in the project itself"):
        Worktrees(project, project / "races")


def test_names_that_are_hard_to_write(project: Path) -> None:
    names = ["with space", "new\nline", "-dash", "ümlaut", ":(top)magic", "quo'te\"", os.fsdecode(b"no-\xff-text")]
    for name in names[::2]:
        (project / name).write_text("x\n")
    with trees_of(project) as trees:
        lane = trees.add()
        for name in names:
            (lane.root / name).write_text("by the lane\n")
        kinds = {edit.path: edit.kind for edit in trees.apply(lane)}
    assert kinds == {name: "added" if index % 2 else "modified" for index, name in enumerate(names)}
    assert all((project / name).read_text() == "by the lane\n" for name in names)


def test_a_copy_in_which_somebody_works_can_be_looked_at(project: Path) -> None:
    """Files come and go all the time while it is looked at."""
    work = (
        "while :; do mkdir -p d; for i in 1 2 3; do echo x > d/$i; done; rm -rf d; echo y > e; rm e; done 2>/dev/null"
    )
    with trees_of(project) as trees:
        lane = trees.add()
        busy = subprocess.Popen(["bash", "-c", work], cwd=lane.root)
        try:
            for _ in range(15):
                assert {edit.kind for edit in lane.edits()} <= {"added"}
                lane.diff()
        finally:
            busy.kill()
            busy.wait()


def test_a_full_disk_at_the_start_leaves_nothing(project: Path) -> None:
    (project / "large.bin").write_bytes(os.urandom(20_000))
    with files_at_most(8192), pytest.raises(OutsideError):
        Worktrees(project, project.parent / "races")
    assert list((project.parent / "races").iterdir()) == []


def test_a_full_disk_later_is_told(tmp_path: Path) -> None:
    project = write_project(tmp_path / "project")
    (project / "large.bin").write_bytes(os.urandom(20_000))
    with trees_of(project) as trees:
        with files_at_most(8192), pytest.raises(OutsideError, match=r"the project cannot be copied: .*File too large"):
            trees.add()
        assert trees.add().edits() == []


def test_pipes_and_empty_folders(project: Path) -> None:
    os.mkfifo(project / "pipe")
    (project / "empty").mkdir()
    with trees_of(project) as trees:
        lane = trees.add()
        assert not (lane.root / "pipe").exists()
        assert lane.edits() == []
        assert trees.changed() == []
