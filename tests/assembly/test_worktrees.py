"""Worktrees: private copies of a project, and carrying the work in one of them over, all or nothing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chimera.assembly.edits import Edit
from chimera.assembly.worktrees import Workspace, Worktrees
from chimera.errors import ConfigError, OutsideError
from tests.assembly.repositories import contents, git, new_repository, state_of, write_project

KINDS: dict[str, Callable[[Path], Path]] = {"git": new_repository, "copy": write_project}


@contextmanager
def trees_of(project: Path) -> Iterator[Worktrees]:
    trees = Worktrees(project, project.parent / "races")
    try:
        yield trees
    finally:
        trees.close()


@pytest.fixture(params=KINDS)
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return KINDS[request.param](tmp_path / "project")


def work_in(workspace: Workspace) -> None:
    """Change, add, delete, make executable, point elsewhere, replace a file by a folder and a folder by a file."""
    root = workspace.root
    (root / "readme.md").write_text("by the lane\n")
    (root / "deep" / "er").mkdir(parents=True)
    (root / "deep" / "er" / "added.bin").write_bytes(b"\0\xff\n")
    (root / "run.sh").chmod(0o644)
    (root / "link").unlink()
    (root / "link").symlink_to("run.sh")
    (root / "src" / "main.py").unlink()
    (root / "src").rmdir()
    (root / "src").write_text("a file now\n")
    (root / "more.log").write_text("ignored\n")


WORK = [
    Edit("deep/er/added.bin", "added"),
    Edit("link", "modified"),
    Edit("readme.md", "modified"),
    Edit("run.sh", "modified"),
    Edit("src", "added"),
    Edit("src/main.py", "deleted"),
]


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


# What is true of git alone.


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "project")


def test_git_looks_as_before_at_every_moment(repository: Path) -> None:
    before = state_of(repository)
    with trees_of(repository) as trees:
        lane = trees.add()
        assert state_of(repository)[:-1] == before[:-1]
        work_in(lane)
        lane.diff()
        assert state_of(repository)[:-1] == before[:-1]
    assert state_of(repository) == before


def test_hooks_of_the_repository_do_not_run(repository: Path) -> None:
    for hook in ("post-checkout", "post-index-change", "pre-commit", "reference-transaction"):
        path = repository / ".git" / "hooks" / hook
        path.write_text(f"#!/bin/sh\ntouch {repository.parent}/ran-{hook}\n")
        path.chmod(0o755)
    with trees_of(repository) as trees:
        trees.add().diff()
    assert not list(repository.parent.glob("ran-*"))


def test_a_folder_inside_a_repository_is_the_project(repository: Path) -> None:
    with trees_of(repository / "src") as trees:
        lane = trees.add()
        assert contents(lane.root) == {"main.py": "- print('one')\n"}
        (lane.root / "main.py").write_text("two\n")
        (lane.root / "added.py").write_text("new\n")
        (lane.root.parent / "readme.md").write_text("outside of the project\n")
        (repository / "readme.md").write_text("the person works on\n")
        assert "a/main.py" in lane.diff()
        assert "outside" not in lane.diff()
        assert trees.apply(lane) == [Edit("added.py", "added"), Edit("main.py", "modified")]
    assert (repository / "src" / "main.py").read_text() == "two\n"
    assert (repository / "readme.md").read_text() == "the person works on\n"


def test_a_repository_without_commits(tmp_path: Path) -> None:
    project = write_project(tmp_path / "project")
    git(project, "init", "-q")
    with trees_of(project) as trees:
        assert trees.uses_git
        lane = trees.add()
        work_in(lane)
        assert trees.apply(lane) == WORK


@pytest.mark.parametrize("empty", [True, False])
def test_an_empty_folder(tmp_path: Path, empty: bool) -> None:
    project = tmp_path / "project"
    project.mkdir()
    if empty:
        git(project, "init", "-q")
    with trees_of(project) as trees:
        lane = trees.add()
        (lane.root / "first.txt").write_text("x")
        assert trees.apply(lane) == [Edit("first.txt", "added")]
    assert (project / "first.txt").read_text() == "x"


def test_a_work_tree_of_the_persons_own(repository: Path) -> None:
    own = repository.parent / "own"
    git(repository, "worktree", "add", "-q", "-b", "side", str(own))
    (own / "readme.md").write_text("on the side\n")
    with trees_of(own) as trees:
        lane = trees.add()
        assert (lane.root / "readme.md").read_text() == "on the side\n"
        (lane.root / "readme.md").write_text("by the lane\n")
        trees.apply(lane)
    assert (own / "readme.md").read_text() == "by the lane\n"
    assert git(repository, "worktree", "list").count("\n") == 2
    assert git(own, "status", "--porcelain") == " M readme.md\n"


def test_a_project_that_its_repository_ignores_is_copied(repository: Path) -> None:
    inner = write_project(repository / "build" / "project")
    races = repository.parent / "races"
    trees = Worktrees(inner, races)
    try:
        assert not trees.uses_git
        assert "readme.md" in contents(trees.add().root)
    finally:
        trees.close()


def test_a_repository_with_others_inside_is_copied(repository: Path) -> None:
    inner = repository / "module"
    write_project(inner)
    git(inner, "init", "-q")
    git(inner, "add", ".")
    git(inner, "commit", "-q", "-m", "Inside")
    with trees_of(repository) as trees:
        assert not trees.uses_git
        lane = trees.add()
        (lane.root / "module" / "readme.md").write_text("by the lane\n")
        assert trees.apply(lane) == [Edit("module/readme.md", "modified")]


def test_what_an_agent_does_to_git_in_its_copy_changes_nothing(repository: Path) -> None:
    with trees_of(repository) as trees:
        lane = trees.add()
        (lane.root / "readme.md").write_text("by the lane\n")
        git(lane.root, "commit", "-q", "-a", "-m", "On the way")
        (lane.root / ".git").unlink()
        assert lane.edits() == [Edit("readme.md", "modified")]
        trees.apply(lane)
    assert git(repository, "log", "--format=%s") == "First\n"
    assert git(repository, "worktree", "list").count("\n") == 1


def test_the_environment_of_a_hook_does_not_mislead(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    monkeypatch.setenv("GIT_WORK_TREE", "/nowhere")
    with trees_of(repository) as trees:
        assert trees.uses_git
        assert (trees.add().root / "new.txt").is_file()


def test_without_git_on_the_path_the_project_is_copied(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository.parent))
    with trees_of(repository) as trees:
        assert not trees.uses_git
        lane = trees.add()
        assert not (lane.root / ".git").exists()
        (lane.root / "readme.md").write_text("by the lane\n")
        assert trees.apply(lane) == [Edit("readme.md", "modified")]


def test_line_ends_that_git_translates_stay_as_they_are(repository: Path) -> None:
    git(repository, "config", "core.autocrlf", "true")
    git(repository, "config", "core.safecrlf", "true")
    (repository / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    with trees_of(repository) as trees:
        lane = trees.add()
        assert lane.edits() == []
        (lane.root / "dos.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
        trees.apply(lane)
    assert (repository / "dos.txt").read_bytes() == b"one\r\ntwo\r\nthree\r\n"


def test_a_conflict_in_the_index_is_no_obstacle(repository: Path) -> None:
    git(repository, "commit", "-q", "-a", "-m", "Second")
    git(repository, "checkout", "-q", "-b", "side", "HEAD~1")
    (repository / "readme.md").write_text("another\n")
    git(repository, "commit", "-q", "-a", "-m", "Aside")
    with pytest.raises(Exception, match="merge"):
        git(repository, "merge", "-q", "main")
    with trees_of(repository) as trees:
        lane = trees.add()
        assert "<<<<<<<" in (lane.root / "readme.md").read_text()
        assert trees.changed() == []
