"""Reading small files that a project brings along, which may be anything but what their names say."""

from __future__ import annotations

import os
import stat
from pathlib import Path

__all__ = ["NotRegularError", "read_start"]

_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


class NotRegularError(OSError):
    """What is there is no regular file: a folder, a pipe, a socket or a device."""


def read_start(path: Path, limit: int) -> bytes:
    """Return the first `limit` bytes of a regular file, symlinks followed. Never waits for a writer.

    Raises `NotRegularError` for anything else, and `OSError` for what cannot be opened or read.
    """
    descriptor = os.open(path, _OPEN)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotRegularError(f"{path} is no regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(limit)
    finally:
        os.close(descriptor)
