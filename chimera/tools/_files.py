"""Reading files of the project as bytes, and what identifies the state that was read."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from chimera.errors import ToolError
from chimera.tools._paths import Place, explained

__all__ = ["MAX_FILE_BYTES", "Mark", "Snapshot", "is_file", "look", "read_bytes", "read_start", "size_text"]

MAX_FILE_BYTES = 16 * 1024 * 1024
_OPEN = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@dataclass(frozen=True, slots=True)
class Mark:
    """What tells one state of a file from another, and what a rewritten file takes over from it."""

    device: int
    inode: int
    size: int
    modified_ns: int
    mode: int
    owner: int
    group: int

    @classmethod
    def of(cls, status: os.stat_result) -> Mark:
        mode = stat.S_IMODE(status.st_mode)
        modified = status.st_mtime_ns
        return cls(status.st_dev, status.st_ino, status.st_size, modified, mode, status.st_uid, status.st_gid)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The content of a file and the state that it was read in."""

    data: bytes
    mark: Mark


def look(place: Place) -> Mark | None:
    """Return the mark of a regular file, None when nothing is there. Raises `ToolError` for anything else."""
    with explained("look at", place):
        try:
            with place.parent() as folder:
                status = os.stat(place.name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
    _require_file(place, status)
    return Mark.of(status)


def is_file(place: Place) -> bool:
    """Say whether a regular file is there."""
    if not place.parts:
        return False
    try:
        with place.parent() as folder:
            return stat.S_ISREG(os.stat(place.name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def read_bytes(place: Place, limit: int = MAX_FILE_BYTES) -> Snapshot:
    """Read a whole regular file. Raises `ToolError` when it is missing, no file, or has more than `limit` bytes."""
    return _read(place, limit, whole=True)


def read_start(place: Place, limit: int) -> Snapshot:
    """Read the first `limit` bytes of a regular file of any size."""
    return _read(place, limit, whole=False)


def size_text(size: int) -> str:
    """Render a number of bytes for people."""
    return f"{size} bytes" if size < 10_000 else f"{size / 1_000_000:.1f} MB".replace("0.0 MB", f"{size // 1000} kB")


def _read(place: Place, limit: int, *, whole: bool) -> Snapshot:
    with explained("read", place):
        with place.parent() as folder:
            descriptor = os.open(place.name, _OPEN, dir_fd=folder)
        try:
            status = os.fstat(descriptor)
            _require_file(place, status)
            if whole:
                _require_small(place, status.st_size, limit)
            data = _drain(descriptor, limit + whole)
        finally:
            os.close(descriptor)
    if whole:
        _require_small(place, len(data), limit)
    return Snapshot(data, Mark.of(status))


def _drain(descriptor: int, limit: int) -> bytes:
    chunks = []
    while limit > 0:
        chunk = os.read(descriptor, min(limit, 1 << 20))
        if not chunk:
            break
        chunks.append(chunk)
        limit -= len(chunk)
    return b"".join(chunks)


def _require_file(place: Place, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise ToolError(f"{str(place)!r} is a folder, not a file; use list_files to see what it holds")
    if not stat.S_ISREG(status.st_mode):
        others = "a pipe, a socket, a device or a new symlink"
        raise ToolError(f"{str(place)!r} is no regular file but {others}; leave it alone")


def _require_small(place: Place, size: int, limit: int) -> None:
    if size > limit:
        advice = "use search to find lines in it, or bash with `sed -n '1,200p'`, `head` or `tail` to see a part"
        raise ToolError(f"{str(place)!r} is too big ({size_text(size)}, the limit is {size_text(limit)}); {advice}")
