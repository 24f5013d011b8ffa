"""Where tools may go: places inside the project folder, reached without following a symlink on the way.

`Project.locate` settles once where a path really leads. Whatever is opened afterwards is opened folder by folder from
the root with `O_NOFOLLOW`, so a symlink that appears after the check is an error and no way out. Whoever goes through
many folders does so inside `keeping_folders()`, which opens none of them again for what lies in it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from chimera.errors import ToolError

__all__ = ["MAX_DEPTH", "Place", "Project", "explained", "keeping_folders"]

MAX_DEPTH = 100
"""How many folders deep a folder may lie that a tool makes."""

_FOLDER = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_COMPARED_NAMES = 2000
_KEPT_OPEN = 64
_REASONS = {
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ELOOP: "a symlink appeared on the way; nothing was touched",
    errno.ENOTDIR: "something on the way is a file or a new symlink, and no folder",
    errno.EISDIR: "it is a folder",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ENOSPC: "no space is left on the disk",
    errno.EROFS: "the disk is read-only",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A place below `root`. `parts` are its real folder names and its own name; none for the root itself."""

    root: Path
    parts: tuple[str, ...]

    def __str__(self) -> str:
        """Return the path from the root as it is shown: what is no text in a name is replaced."""
        path = "/".join(self.parts).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return path.replace("\n", "\\n").replace("\r", "\\r") or "."

    def inside(self, name: str) -> Place:
        """Return the place of `name` in this folder."""
        return Place(self.root, (*self.parts, name))

    @property
    def name(self) -> str:
        """The last name. Raises `ToolError` for the root, which no file tool works on."""
        self.above()
        return self.parts[-1]

    def above(self) -> Place:
        """Return the folder that holds it. Raises `ToolError` for the root."""
        if not self.parts:
            raise ToolError("the path is the project folder itself; name a file in it")
        return Place(self.root, self.parts[:-1])

    @contextmanager
    def parent(self, made: list[Place] | None = None) -> Iterator[int]:
        """Open the folder that holds this place and give its descriptor.

        With a list in `made`, missing folders are created and noted there, the outermost first; `ToolError` is raised
        where they would lie too deep.
        """
        with _opened(self.above(), made) as descriptor:
            yield descriptor

    @contextmanager
    def folder(self) -> Iterator[int]:
        """Open this place itself, a folder, and give its descriptor."""
        with _opened(self, None) as descriptor:
            yield descriptor


class Project:
    """The folder that tools work in. Raises `ToolError` when it is no folder."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        if not self.root.is_dir():
            raise ToolError(f"the project folder {root} does not exist")

    def locate(self, path: str) -> Place:
        """Return the place that `path`, relative to the root or absolute, leads to; it need not exist.

        Symlinks are followed as long as they stay inside. Raises `ToolError` for whatever leaves the project.
        """
        if not path or "\0" in path:
            raise ToolError("the path is empty or holds a NUL character; give one relative to the project folder")
        if path == "~" or path.startswith("~/"):
            raise self._outside(path, "is in the home folder")
        try:
            real = (self.root / path).resolve()
        except (OSError, RuntimeError) as error:
            raise ToolError(f"cannot follow {path!r}: {_reason(error)}") from error
        if real.is_relative_to(self.root):
            return Place(self.root, real.relative_to(self.root).parts)
        lexical = Path(os.path.normpath(self.root / path))
        through_link = lexical.is_relative_to(self.root)
        raise self._outside(path, "leads through a symlink out of" if through_link else "is outside")

    def _outside(self, path: str, how: str) -> ToolError:
        allowed = f"relative paths, or absolute ones below {self.root}"
        return ToolError(f"{path!r} {how} the project folder. Only paths inside it are allowed: {allowed}")


@contextmanager
def explained(doing: str, place: Place) -> Iterator[None]:
    """Turn what the operating system refuses into a `ToolError` that says what to do next."""
    try:
        yield
    except FileNotFoundError as error:
        raise ToolError(f"cannot {doing} {str(place)!r}: {_missing(place)}") from error
    except OSError as error:
        raise ToolError(f"cannot {doing} {str(place)!r}: {_reason(error)}") from error


@contextmanager
def keeping_folders() -> Iterator[None]:
    """Keep the folders open that lead to the one that was used last, for this thread and inside the block.

    Going through a tree in order takes time in proportion to its size then, however deep it is.
    """
    kept = _Kept()
    token = _kept.set(kept)
    try:
        yield
    finally:
        _kept.reset(token)
        kept.close()


class _Kept:
    """The folders on the way to `_parts`, of which the innermost are open, each with its depth."""

    def __init__(self) -> None:
        self._root: Path | None = None
        self._parts: tuple[str, ...] = ()
        self._open: list[tuple[int, int]] = []

    def descriptor(self, place: Place) -> int:
        """Open a folder; the descriptor is good until the next one is asked for."""
        self.close(_shared(self._parts, place.parts) if place.root == self._root else -1)
        self._root, self._parts = place.root, place.parts
        if not self._open:
            self._open.append((0, os.open(place.root, os.O_RDONLY | os.O_CLOEXEC)))
        for depth in range(self._open[-1][0], len(place.parts)):
            inner = os.open(place.parts[depth], _FOLDER, dir_fd=self._open[-1][1])
            self._open.append((depth + 1, inner))
            if len(self._open) > _KEPT_OPEN:
                os.close(self._open.pop(0)[1])
        return self._open[-1][1]

    def close(self, depth: int = -1) -> None:
        """Close what is deeper than `depth`, by default everything."""
        while self._open and self._open[-1][0] > depth:
            os.close(self._open.pop()[1])


_kept: ContextVar[_Kept | None] = ContextVar("kept", default=None)


def _shared(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Return how many parts at their beginning two paths have in common."""
    length = min(len(one), len(other))
    if one[:length] == other[:length]:
        return length
    return next(index for index in range(length) if one[index] != other[index])


@contextmanager
def _opened(place: Place, made: list[Place] | None) -> Iterator[int]:
    kept = _kept.get()
    if kept is not None and made is None:
        yield kept.descriptor(place)
        return
    descriptor = os.open(place.root, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for depth, part in enumerate(place.parts, 1):
            inner = _enter(descriptor, part, Place(place.root, place.parts[:depth]), made)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _enter(descriptor: int, part: str, place: Place, made: list[Place] | None) -> int:
    if made is not None:
        _require_shallow(descriptor, part, place)
        with suppress(FileExistsError):  # it is opened next, whoever made it
            os.mkdir(part, dir_fd=descriptor)
            made.append(place)
    return os.open(part, _FOLDER, dir_fd=descriptor)


def _require_shallow(descriptor: int, part: str, place: Place) -> None:
    if len(place.parts) <= MAX_DEPTH:
        return
    try:
        os.stat(part, dir_fd=descriptor, follow_symlinks=False)
    except FileNotFoundError:
        raise ToolError(f"no folder is made more than {MAX_DEPTH} folders deep; use a shorter path") from None


def _reason(error: OSError | RuntimeError) -> str:
    if isinstance(error, RuntimeError):
        return "its symlinks form a circle"
    return _REASONS.get(error.errno or 0) or (error.strerror or str(error)).lower()


def _missing(place: Place) -> str:
    """Say which part of the path is missing and what is there instead."""
    folder = place.root
    for part in place.parts:
        if not (folder / part).exists():
            return f"{_name_of(folder, place.root)} has no {part!r}.{_similar(folder, part)}"
        folder /= part
    return "it vanished while the tool worked; try again"


def _name_of(folder: Path, root: Path) -> str:
    return "the project folder" if folder == root else repr(folder.relative_to(root).as_posix())


def _similar(folder: Path, name: str) -> str:
    from difflib import get_close_matches

    try:
        names = sorted(item.name for item in islice(folder.iterdir(), _COMPARED_NAMES))
    except OSError:  # it cannot be listed; then there is nothing to suggest
        names = []
    close = get_close_matches(name, names, n=3, cutoff=0.5)
    if not close:
        return " Use list_files to see what exists."
    return f" Did you mean {' or '.join(map(repr, close))}?"
