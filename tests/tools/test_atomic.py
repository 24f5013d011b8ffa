"""A file is the old one or the new one, and several change together or not at all, whatever breaks in between."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from chimera.errors import ToolError
from chimera.tools import _atomic
from chimera.tools._atomic import Change, commit, is_leftover
from chimera.tools._files import look
from chimera.tools._paths import Place, Project
from tests.tools.support import tree


def change(root: Path, name: str, data: bytes | None, *, executable: bool | None = None) -> Change:
    """The change that makes `name`, as it is now, into `data`."""
    place = Project(root).locate(name)
    mark = look(place)
    old = (root / name).read_bytes() if mark else None
    return Change(place, mark, data, old, executable=executable)


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


def test_create_change_and_delete_at_once(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"old")
    (tmp_path / "c").write_bytes(b"old")
    commit([change(tmp_path, "new/a", b"a"), change(tmp_path, "b", b"b"), change(tmp_path, "c", None)])
    assert tree(tmp_path) == {"b": b"b", "new": None, "new/a": b"a"}


@pytest.mark.usefixtures("umask")
def test_modes(tmp_path: Path) -> None:
    for name, mode in {"private": 0o600, "script": 0o750, "plain": 0o664}.items():
        (tmp_path / name).write_bytes(b"old")
        (tmp_path / name).chmod(mode)
        commit([change(tmp_path, name, b"new")])
        assert (tmp_path / name).stat().st_mode & 0o777 == mode
    commit([change(tmp_path, "fresh", b""), change(tmp_path, "run.sh", b"", executable=True)])
    assert (tmp_path / "fresh").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "run.sh").stat().st_mode & 0o777 == 0o750
    commit([change(tmp_path, "script", b"x", executable=False)])
    assert (tmp_path / "script").stat().st_mode & 0o777 == 0o640


def test_a_new_file_can_be_like_another(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "a").chmod(0o600)
    like = look(Project(tmp_path).locate("a"))
    commit([Change(Project(tmp_path).locate("b"), None, b"y", like=like)])
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o600


def test_other_names_of_the_file_keep_the_old_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    commit([change(tmp_path, "a", b"new")])
    assert (tmp_path / "b").read_bytes() == b"old"


@pytest.mark.parametrize("before", [b"first", None])
def test_a_file_that_changed_meanwhile_is_not_overwritten(tmp_path: Path, before: bytes | None) -> None:
    if before:
        (tmp_path / "x").write_bytes(before)
    planned = [change(tmp_path, "other", b"new"), change(tmp_path, "x", b"mine")]
    (tmp_path / "x").write_bytes(b"theirs")
    with pytest.raises(ToolError, match="'x' was changed by somebody else meanwhile; read it again"):
        commit(planned)
    assert tree(tmp_path) == {"x": b"theirs"}


def test_a_file_that_vanished_meanwhile_does_not_come_back(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"first")
    planned = change(tmp_path, "x", b"mine")
    (tmp_path / "x").unlink()
    with pytest.raises(ToolError):
        commit([planned])
    assert tree(tmp_path) == {}


class Failing:
    """Lets the first calls of a system function through and fails the one after them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, passes: int, error: BaseException) -> None:
        self.real, self.passes, self.error = getattr(os, name), passes, error
        monkeypatch.setattr(os, name, self)

    def __call__(self, *args: object, **kwargs: object) -> object:
        self.passes -= 1
        if self.passes == -1:
            raise self.error
        return self.real(*args, **kwargs)


@pytest.mark.parametrize("function", ["replace", "unlink", "fsync", "write", "open", "mkdir"])
@pytest.mark.parametrize("passes", range(14))
@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["disk", "interrupt"]
)
def test_a_failure_at_any_step_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, passes: int, error: BaseException
) -> None:
    (tmp_path / "b").write_bytes(b"old b")
    (tmp_path / "c").write_bytes(b"old c")
    before = tree(tmp_path)
    planned = [
        change(tmp_path, "new/deep/a", b"a"),
        change(tmp_path, "b", b"b"),
        change(tmp_path, "c", None),
        change(tmp_path, "new/d", b"d"),
    ]
    with monkeypatch.context() as patch:
        failing = Failing(patch, function, passes, error)
        try:
            commit(planned)
        except (ToolError, KeyboardInterrupt):
            failed = True
        else:
            failed = False
    after = {name: data for name, data in tree(tmp_path).items() if not is_leftover(name.rpartition("/")[2])}
    wanted = {"b": b"b", "new": None, "new/deep": None, "new/deep/a": b"a", "new/d": b"d"}
    assert after == wanted if not failed else after in (before, wanted)
    if failed and not (function == "unlink" and isinstance(error, KeyboardInterrupt)):  # it may come while tidying up
        assert after == before
    assert failed or failing.passes >= 0 or function == "unlink"


def test_what_cannot_be_put_back_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "ab":
        (tmp_path / name).write_bytes(b"old")
    planned = [change(tmp_path, "a", b"new"), change(tmp_path, "b", b"new")]
    real = os.replace

    def replace(source: str, target: str, **kwargs: int) -> None:
        if target == "a" and (tmp_path / "a").read_bytes() == b"old":
            return real(source, target, **kwargs)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(ToolError, match=r"'b': input/output error; and these files could not be put back: a"):
        commit(planned)


def test_read_only_files_stay(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"old")
    (tmp_path / "x").chmod(0o444)
    for data in (b"new", None):
        with pytest.raises(ToolError, match=r"read-only \(mode 0444\)"):
            commit([change(tmp_path, "x", data)])
    assert (tmp_path / "x").read_bytes() == b"old"


def test_files_that_are_not_ours_to_write_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda *args, **kwargs: False)  # the tests may run as root, who may do anything
    with pytest.raises(ToolError, match="permission denied"):
        commit([change(tmp_path, "x", b"new")])


@pytest.mark.parametrize("name", [".git/hooks/pre-commit", ".git/config", "sub/.git/config", ".GIT/config"])
def test_what_belongs_to_git_is_left_to_git(tmp_path: Path, name: str) -> None:
    with pytest.raises(ToolError, match="belongs to git itself"):
        commit([change(tmp_path, name, b"#!/bin/sh\n")])
    assert tree(tmp_path) == {}


def test_gitignore_is_a_file_like_any_other(tmp_path: Path) -> None:
    commit([change(tmp_path, ".gitignore", b"*.pyc\n"), change(tmp_path, ".github/x.yml", b"")])
    assert (tmp_path / ".gitignore").exists()


def test_leftovers_of_killed_processes_are_swept_when_they_are_old(tmp_path: Path) -> None:
    old, young, other = ".chimera-0123456789ab.tmp", ".chimera-ba9876543210.tmp", ".chimera-keep"
    for name in (old, young, other):
        (tmp_path / name).touch()
    an_hour_ago = time.time() - 3600
    for name in (old, other):
        os.utime(tmp_path / name, (an_hour_ago, an_hour_ago))
    (tmp_path / ".chimera-folder.tmp").mkdir()
    os.utime(tmp_path / ".chimera-folder.tmp", (an_hour_ago, an_hour_ago))
    commit([change(tmp_path, "x", b"")])
    assert sorted(tree(tmp_path)) == sorted([young, other, ".chimera-folder.tmp", "x"])
    assert is_leftover(young)
    assert not is_leftover(other)


def test_two_writers_of_one_file_cannot_both_win(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"old")
    first, second = change(tmp_path, "x", b"first"), change(tmp_path, "x", b"second")
    commit([first])
    with pytest.raises(ToolError, match="changed by somebody else"):
        commit([second])
    assert (tmp_path / "x").read_bytes() == b"first"


def test_the_folder_that_is_written_to_is_forced_to_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_mode)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    commit([change(tmp_path, "x", b"data")])
    assert [mode >> 12 for mode in synced] == [0o10, 0o4]


def test_places_of_a_rolled_back_change_keep_what_others_put_there(tmp_path: Path) -> None:
    made = [Place(tmp_path.resolve(), ("new",))]
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "theirs").touch()
    _atomic._remove_folders(made)
    assert (tmp_path / "new" / "theirs").exists()
