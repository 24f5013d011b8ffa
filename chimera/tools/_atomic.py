"""Changing files so that each is the old or the new one at every moment, and several change together or not at all.

New content goes to a temporary file in the same folder, is forced to disk, and takes the name of the old one in one
step. A killed process leaves at worst such a temporary file, which `is_leftover` recognises and a later write removes.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from threading import Lock

from chimera.errors import ToolError
from chimera.tools._files import Mark, look
from chimera.tools._paths import Place, explained

__all__ = ["Change", "commit", "is_leftover"]

_PREFIX, _SUFFIX = ".chimera-", ".tmp"
_STALE_SECONDS = 600.0
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
_swapping = Lock()


@dataclass(frozen=True, slots=True)
class Change:
    """What a file becomes. `before` is the state that the change was made for, None for a file that is not there.

    `data` is the new content, None to delete the file. `old` is the old content; with it the change can be undone.
    The file takes mode and owner from `like`, by default from what was there before; without either it gets what the
    umask leaves. `executable` sets or clears the `x` bits besides.
    """

    place: Place
    before: Mark | None
    data: bytes | None
    old: bytes | None = None
    like: Mark | None = None
    executable: bool | None = None

    @property
    def model(self) -> Mark | None:
        return self.like or self.before


def commit(changes: Sequence[Change]) -> None:
    """Make all changes or none. Missing folders are made.

    Raises `ToolError`, with everything as it was, when a file cannot be written or is no longer what it was.
    """
    made: list[Place] = []
    try:
        with ExitStack() as stack:
            staged = [_Staged(change, stack, made) for change in changes]
            with _swapping:
                for item in staged:
                    item.require_unchanged()
                _swap_all(staged)
    except BaseException:
        _remove_folders(made)
        raise


def is_leftover(name: str) -> bool:
    """Say whether `name` is that of a temporary file of this module."""
    return name.startswith(_PREFIX) and name.endswith(_SUFFIX)


class _Staged:
    """One change whose new content waits on disk under a temporary name; the stack removes what is not needed."""

    def __init__(self, change: Change, stack: ExitStack, made: list[Place]) -> None:
        self.change = change
        self.swapped = False
        _require_writable(change)
        with explained("write", change.place):
            self.folder = stack.enter_context(change.place.parent(made))
            self._require_permission()
            _sweep(self.folder)
            self.new = self._stage(stack, change.data)
            self.backup = self._stage(stack, change.old) if change.before else None

    def require_unchanged(self) -> None:
        if look(self.change.place) != self.change.before:
            raise ToolError(f"{str(self.change.place)!r} was changed by somebody else meanwhile; read it again first")

    def swap(self) -> None:
        with explained("write", self.change.place):
            if self.new is None:
                os.unlink(self.change.place.name, dir_fd=self.folder)
            else:
                self._rename(self.new)
            self.swapped = True
            os.fsync(self.folder)

    def undo(self) -> None:
        if self.backup is not None:
            self._rename(self.backup)
        elif self.change.before is None:
            os.unlink(self.change.place.name, dir_fd=self.folder)

    def _rename(self, temporary: str) -> None:
        os.replace(temporary, self.change.place.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)

    def _stage(self, stack: ExitStack, data: bytes | None) -> str | None:
        if data is None:
            return None
        name = f"{_PREFIX}{os.urandom(6).hex()}{_SUFFIX}"
        model = self.change.model
        descriptor = os.open(name, _CREATE, 0o600 if model else 0o666, dir_fd=self.folder)
        stack.callback(_remove, name, self.folder)
        try:
            _write_all(descriptor, data)
            self._take_over(descriptor, model)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return name

    def _take_over(self, descriptor: int, model: Mark | None) -> None:
        if model is not None:
            with suppress(PermissionError):  # only a privileged user may give a file away; the mode still counts
                os.fchown(descriptor, model.owner, model.group)
        old = os.fstat(descriptor).st_mode & 0o777 if model is None else model.mode
        mode = _with_execution(old, self.change.executable)
        if model is not None or mode != old:
            os.fchmod(descriptor, mode)

    def _require_permission(self) -> None:
        """Refuse a file that we may not write, although replacing it needs rights on its folder only."""
        if self.change.before and not os.access(self.change.place.name, os.W_OK, dir_fd=self.folder):
            raise PermissionError(errno.EACCES, "the file is not ours to write")


def _require_writable(change: Change) -> None:
    place, before = change.place, change.before
    if any(part.casefold() == ".git" for part in place.parts):
        raise ToolError(f"{str(place)!r} belongs to git itself; use git commands (with bash) instead")
    if before is not None and not before.mode & 0o222:
        raise ToolError(f"{str(place)!r} is read-only (mode {before.mode:04o}); leave it, or chmod it first")


def _with_execution(mode: int, executable: bool | None) -> int:
    """Return `mode` with `x` for whoever has `r`, without any `x`, or as it is."""
    if executable is None:
        return mode
    return mode | (mode & 0o444) >> 2 if executable else mode & ~0o111


def _swap_all(staged: Sequence[_Staged]) -> None:
    try:
        for item in staged:
            item.swap()
    except BaseException as error:
        _undo_all([item for item in staged if item.swapped], error)
        raise


def _undo_all(done: Sequence[_Staged], cause: BaseException) -> None:
    stuck = []
    for item in reversed(done):
        try:
            item.undo()
        except OSError:
            stuck.append(str(item.change.place))
    if stuck:
        raise ToolError(f"{cause}; and these files could not be put back: {', '.join(stuck)}") from cause


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest[: 1 << 20]) :]


def _sweep(folder: int) -> None:
    """Remove temporary files that a killed process left here. A living one holds its own for seconds only."""
    limit = time.time() - _STALE_SECONDS
    for name in filter(is_leftover, os.listdir(folder)):
        with suppress(OSError):  # another writer swept first, or it is not ours to remove; it harms nobody
            if os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime < limit:
                os.unlink(name, dir_fd=folder)


def _remove(name: str, folder: int) -> None:
    with suppress(OSError):  # it has taken its final name already; or it stays, and a later sweep finds it
        os.unlink(name, dir_fd=folder)


def _remove_folders(made: Sequence[Place]) -> None:
    for place in reversed(made):
        with suppress(OSError), place.parent() as folder:  # somebody else has put something into it, or removed it
            os.rmdir(place.name, dir_fd=folder)
