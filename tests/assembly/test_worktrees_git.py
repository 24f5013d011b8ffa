"""Worktrees under git: what the person sees of git stays as it is, whatever state it is in."""

from __future__ import annotations

from pathlib import Path

import pytest

from chimera.assembly.edits import Edit
from chimera.assembly.worktrees import Worktrees
from chimera.errors import OutsideError
from tests.assembly.copies import WORK, trees_of, work_in
from tests.assembly.repositories import contents, git, new_repository, state_of, write_project


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


def test_a_repository_that_git_cannot_read_is_told(repository: Path) -> None:
    (repository / ".git" / "index").write_text("none")
    with pytest.raises(OutsideError, match=r"git .* failed: "):
        Worktrees(repository, repository.parent / "races")
    assert list((repository.parent / "races").iterdir()) == []


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
