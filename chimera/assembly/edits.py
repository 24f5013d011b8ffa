"""Carrying changed files from one folder to another: all of them, or none."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from chimera.errors import OutsideError

__all__ = ["Edit", "carry_over"]

_PREFIX, _SUFFIX = ".chimera-", ".tmp"


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """What happened to one file or symlink. `path` is relative to the project folder, with slashes."""

    path: str
    kind: Literal["added", "modified", "deleted"]


def carry_over(edits: Sequence[Edit], source: Path, target: Path) -> None:
    """Make the files of `target` that the edits name be those of `source`. Missing folders are made, emptied ones go.

    Everything is copied next to its place before the first file is touched. Raises `OutsideError`, with every file as
    it was, when a file cannot be written, when an added one is there already or a changed one is not, or when the way
    to one leads through a symlink.
    """
    for edit in edits:
        _check(edit, target)
    try:
        staging = Path(tempfile.mkdtemp(_SUFFIX, _PREFIX, target))
    except OSError as problem:
        raise OutsideError(f"{target}: {problem.strerror}; nothing was changed") from problem
    try:
        _perform(_stage(edits, source, target, staging), target)
    except OSError as problem:
        if any(staging.glob("*.old")):
            raise OutsideError(f"{problem}; some files could not be put back, they are in {staging}") from problem
        shutil.rmtree(staging, ignore_errors=True)
        raise OutsideError(f"{problem.filename or target}: {problem.strerror}; nothing was changed") from problem
    shutil.rmtree(staging, ignore_errors=True)


def _check(edit: Edit, target: Path) -> None:
    parts = edit.path.split("/")
    if not all(parts) or {".", ".."} & set(parts):
        raise OutsideError(f"{edit.path!r} is no path inside the project")
    place = target
    for part in parts[:-1]:
        place /= part
        if place.is_symlink():
            raise OutsideError(f"{edit.path!r} leads through the symlink {part!r}; nothing was changed")
    place = target / edit.path
    there = place.is_symlink() or (place.exists() and not place.is_dir())
    if there and edit.kind == "added":
        raise OutsideError(f"{edit.path!r} is there already; nothing was changed")
    if not there and edit.kind != "added":
        raise OutsideError(f"{edit.path!r} is not there any more; nothing was changed")


@dataclass(slots=True)
class _Move:
    """One file on its way: the new one waits at `new` (None: it goes), the old one is kept at `old` meanwhile."""

    place: Path
    new: Path | None
    old: Path
    made: list[Path] = field(default_factory=list)
    taken: bool = False
    placed: bool = False

    def take(self) -> None:
        if self.place.is_symlink() or self.place.is_file():
            self.place.rename(self.old)
            self.taken = True

    def put(self) -> None:
        if self.new is None:
            return
        _make_folders(self.place.parent, self.made)
        if self.place.is_dir():
            self.place.rmdir()  # what was in it has been taken; when there is more, it stays, and all goes back
        self.new.rename(self.place)
        self.placed = True

    def undo(self) -> None:
        if self.placed:
            self.place.unlink()
        for folder in reversed(self.made):
            with suppress(OSError):  # somebody else has put something into it
                folder.rmdir()
        if self.taken:
            self.place.parent.mkdir(parents=True, exist_ok=True)
            self.old.rename(self.place)


def _stage(edits: Sequence[Edit], source: Path, target: Path, staging: Path) -> list[_Move]:
    moves = []
    for number, edit in enumerate(edits):
        new, place = None, target / edit.path
        if edit.kind != "deleted":
            new = staging / f"{number}.new"
            shutil.copyfile(source / edit.path, new, follow_symlinks=False)
            _set_mode(new, source / edit.path, place)
        moves.append(_Move(place, new, staging / f"{number}.old"))
    return moves


def _set_mode(new: Path, source: Path, place: Path) -> None:
    """Give the new file the mode of the one in its place, executable as the source is."""
    if new.is_symlink():
        return
    wanted = source.stat().st_mode & 0o777
    if place.is_file() and not place.is_symlink():
        kept = place.stat().st_mode & 0o777
        wanted = kept | (kept & 0o444) >> 2 if wanted & 0o100 else kept & ~0o111
    new.chmod(wanted)


def _perform(moves: Sequence[_Move], target: Path) -> None:
    try:
        for move in moves:
            move.take()
        _remove_empty((move.place.parent for move in moves if move.new is None), target)
        for move in moves:
            move.put()
    except BaseException:
        for move in reversed(moves):
            with suppress(OSError):  # its old file stays where it is, and whoever called says so
                move.undo()
        raise


def _make_folders(folder: Path, made: list[Path]) -> None:
    if not folder.is_dir():
        _make_folders(folder.parent, made)
        folder.mkdir()
        made.append(folder)


def _remove_empty(folders: Iterable[Path], top: Path) -> None:
    """Remove the folders, and those above them up to `top`, as far as they are empty."""
    for folder in folders:
        while folder != top:
            try:
                folder.rmdir()
            except OSError:  # it is not empty, or gone already
                break
            folder = folder.parent
