"""The standard streams of the program: they may be closed, or lead to where nothing can be written."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import TextIO

from chimera.cli.exits import FAILED

__all__ = ["lost_output", "prepare_streams"]


def prepare_streams() -> None:
    """Let no text fail for its encoding, and open what was closed on nothing: else the next file that is opened would
    be taken for a standard stream. Exits with 1 where there is no standard output, the only place for answers."""
    deaf = sys.stdout is None
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, _nothing(number))
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
        if number and type(stream) is TextIOWrapper:
            setattr(sys, name, _Watched.of(stream))
    if deaf:
        sys.stderr.write("chimera: the standard output is closed, so there is nowhere to write to\n")
        raise SystemExit(FAILED)


def lost_output() -> bool:
    """Say whether what was printed cannot be written, and drop it then, so that the interpreter ends in peace."""
    lost = [stream for stream in (sys.stdout, sys.stderr) if not _flushed(stream) or getattr(stream, "failed", False)]
    for stream in lost:
        nothing = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)
        stream.flush()
    return bool(lost)


class _Watched(TextIOWrapper):
    """An output that remembers that it failed, in `failed`."""

    failed = False

    @classmethod
    def of(cls, stream: TextIOWrapper) -> _Watched:
        through = getattr(stream, "write_through", False)
        return cls(stream.buffer, stream.encoding, stream.errors, None, stream.line_buffering, through)

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError:
            self.failed = True
            raise

    def flush(self) -> None:
        try:
            super().flush()
        except OSError:
            self.failed = True
            raise


def _nothing(number: int) -> TextIO:
    descriptor = os.open(os.devnull, os.O_RDWR)
    if descriptor != number:
        os.dup2(descriptor, number)
        os.close(descriptor)
    return os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False)


def _flushed(stream: TextIO) -> bool:
    try:
        stream.flush()
    except OSError:
        return False
    return True
