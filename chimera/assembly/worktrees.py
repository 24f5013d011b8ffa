"""Private copies of a project, each for one lane: work trees of git, or plain copies where there is no git."""

from __future__ import annotations

import difflib
import hashlib
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from chimera.assembly.edits import Edit, carry_over
from chimera.assembly.git import Git, find_git
from chimera.assembly.races import RaceFolder
from chimera.errors import OutsideError, ToolError

__all__ = ["Workspace", "Worktrees"]


class Workspace(ABC):
    """One private copy of the project; `root` is its project folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @abstractmethod
    def edits(self) -> list[Edit]:
        """Return what is different from the project as it was at the start; ignored files do not count."""

    @abstractmethod
    def diff(self) -> str:
        """Return the difference from the start in unified form; empty where there is none."""


class Worktrees:
    """The copies of one race. They hold the project as it is when this is made, changes that nobody committed included,
    and without what its ignore rules leave out. The project itself is not touched until `apply`.

    `folder` is where races keep their copies, by default in the user's cache folder. What races that did not end
    cleanly left there is removed first; a race that still runs is left alone. Raises `OutsideError` when the copies
    cannot be made. `close` removes them all.
    """

    def __init__(self, project: Path, folder: Path | None = None) -> None:
        self.project = project.resolve()
        git = find_git(self.project)
        self._race = RaceFolder(self.project, git.common if git else None, folder)
        try:
            self._source = _source(git, self.project, self._race.path)
        except BaseException as problem:
            self.close()
            if isinstance(problem, OSError):
                raise OutsideError(f"the project cannot be copied: {problem}") from problem
            raise

    @property
    def uses_git(self) -> bool:
        return isinstance(self._source, _GitSource)

    def add(self) -> Workspace:
        """Make another copy."""
        try:
            return self._source.copy(self._race.new_folder())
        except OSError as problem:
            raise OutsideError(f"the project cannot be copied: {problem}") from problem

    def changed(self) -> list[str]:
        """Return the files of the project itself that are no longer what they were at the start."""
        return [edit.path for edit in self._source.changed()]

    def apply(self, workspace: Workspace) -> list[Edit]:
        """Carry what was done in a copy over to the project, all of it or none, and return what that was.

        Raises `OutsideError` when the project changed since the start, or cannot be written to.
        """
        edits = workspace.edits()
        changed = self.changed()
        if changed:
            names = ", ".join(changed[:5]) + (f" and {len(changed) - 5} more" if len(changed) > 5 else "")
            raise OutsideError(f"the project changed since the race began ({names}); nothing was applied")
        carry_over(edits, workspace.root, self.project)
        return edits

    def close(self) -> None:
        """Remove all copies. Closing twice does nothing."""
        self._race.close()


class _Source(ABC):
    """The project as it was at the start."""

    @abstractmethod
    def copy(self, folder: Path) -> Workspace:
        """Make a copy of it in the empty folder."""

    @abstractmethod
    def changed(self) -> list[Edit]:
        """Return what is different in the project now."""


def _source(git: Git | None, project: Path, folder: Path) -> _Source:
    if git is not None:
        source = _GitSource(git, project, folder)
        if not git.has_modules(source.tree):
            return source
    return _CopySource(project, folder)


class _GitSource(_Source):
    def __init__(self, git: Git, project: Path, folder: Path) -> None:
        self.git, self.folder = git, folder
        prefix = project.relative_to(git.top).as_posix()
        self.prefix = "" if prefix == "." else prefix
        self._index = folder / "index"
        if git.own_index().is_file():
            shutil.copyfile(git.own_index(), self._index)
        self.tree = git.tree_of(git.top, self._index)
        self._commit = git.commit(self.tree)

    def copy(self, folder: Path) -> Workspace:
        path = folder / self.git.top.name
        self.git.add_worktree(path, self._commit)
        root = path / self.prefix
        root.mkdir(parents=True, exist_ok=True)
        return _GitWorkspace(root, path, folder / "index", self)

    def changed(self) -> list[Edit]:
        return self.git.edits(self.tree, self.git.tree_of(self.git.top, self._index), self.prefix)


class _GitWorkspace(Workspace):
    def __init__(self, root: Path, top: Path, index: Path, source: _GitSource) -> None:
        super().__init__(root)
        self._top, self._index, self._source = top, index, source

    def edits(self) -> list[Edit]:
        return self._source.git.edits(self._source.tree, self._now(), self._source.prefix)

    def diff(self) -> str:
        return self._source.git.diff(self._source.tree, self._now(), self._source.prefix)

    def _now(self) -> str:
        return self._source.git.tree_of(self._top, self._index)


class _Print(NamedTuple):
    """What tells one state of a file from another: `kind` is file, program or link."""

    kind: str
    digest: bytes


class _CopySource(_Source):
    def __init__(self, project: Path, folder: Path) -> None:
        self._project = project
        self.start = folder / "start"
        _copy(project, self.start)
        self.prints = _prints(self.start)

    def copy(self, folder: Path) -> Workspace:
        root = folder / self._project.name
        _copy(self.start, root)
        return _CopyWorkspace(root, self)

    def changed(self) -> list[Edit]:
        return _difference(self.prints, _prints(self._project))


class _CopyWorkspace(Workspace):
    def __init__(self, root: Path, source: _CopySource) -> None:
        super().__init__(root)
        self._source = source

    def edits(self) -> list[Edit]:
        return _difference(self._source.prints, _prints(self.root))

    def diff(self) -> str:
        parts = (_file_diff(edit.path, self._source.start / edit.path, self.root / edit.path) for edit in self.edits())
        return "".join(parts)


def _entries(root: Path) -> Iterator[tuple[str, Path, str]]:
    """Yield path, place and kind of what is below `root` and not ignored; of folders, the empty ones."""
    from chimera.tools._paths import Place
    from chimera.tools._walk import walk

    try:
        for entry in walk(Place(root, ())):
            path = "/".join(entry.place.parts)
            if entry.kind != "unreadable":
                yield path, root / path, entry.kind
            elif _is_barred(root / path):
                raise OutsideError(f"the folder {path!r} cannot be read, so the project cannot be copied")
    except ToolError as problem:
        raise OutsideError(str(problem)) from problem


def _is_barred(folder: Path) -> bool:
    """Tell whether a folder keeps us out; one that vanished while it was looked at does not."""
    try:
        os.scandir(folder).close()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return False


def _copy(source: Path, target: Path) -> None:
    target.mkdir(parents=True)
    for path, place, kind in _entries(source):
        copy = target / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        if kind == "folder":
            copy.mkdir()
        elif kind == "link" or place.is_file():  # what is neither (a socket, a pipe) is nobody's work
            with suppress(FileNotFoundError):  # it has vanished meanwhile
                shutil.copy2(place, copy, follow_symlinks=False)


def _prints(root: Path) -> dict[str, _Print]:
    found = {}
    for path, place, kind in _entries(root):
        with suppress(FileNotFoundError):  # it has vanished meanwhile: somebody works there
            if kind == "link":
                found[path] = _Print("link", os.fsencode(place.readlink()))
            elif kind == "file" and place.is_file():
                found[path] = _print(place)
    return found


def _print(place: Path) -> _Print:
    with place.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").digest()
        program = os.fstat(file.fileno()).st_mode & 0o100
    return _Print("program" if program else "file", digest)


def _difference(before: dict[str, _Print], after: dict[str, _Print]) -> list[Edit]:
    edits = [Edit(path, "deleted") for path in before.keys() - after.keys()]
    edits += [Edit(path, "added") for path in after.keys() - before.keys()]
    edits += [Edit(path, "modified") for path in before.keys() & after.keys() if before[path] != after[path]]
    return sorted(edits)


def _file_diff(path: str, before: Path, after: Path) -> str:
    old, new = _lines(before), _lines(after)
    head = f"diff --git a/{path} b/{path}\n"
    if old is None or new is None:
        return f"{head}Binary files a/{path} and b/{path} differ\n"
    from_name = f"a/{path}" if os.path.lexists(before) else "/dev/null"
    to_name = f"b/{path}" if os.path.lexists(after) else "/dev/null"
    changed = difflib.unified_diff(old, new, from_name, to_name)
    whole = (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in changed)
    return head + "".join(whole)


def _lines(place: Path) -> list[str] | None:
    """Return the lines of a file, or of what a link names; none for what is not there, None for what is no text."""
    try:
        if place.is_symlink():
            return [str(place.readlink())]
        data = place.read_bytes()
    except FileNotFoundError:
        return []
    return None if b"\0" in data else data.decode("utf-8", "replace").splitlines(keepends=True)
