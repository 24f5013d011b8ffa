"""What a plugin can change in its process besides the registries, and what it left behind there."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

__all__ = ["left_behind", "surroundings"]

Surroundings = Mapping[str, frozenset[str]]
_GRACE_SECONDS = 1.0


def surroundings() -> Surroundings:
    """Return what there is now of threads, child processes, open files and settings of the process, each as texts."""
    return {
        "thread": frozenset(f"{thread.name} ({thread.ident})" for thread in threading.enumerate()),
        "child process": frozenset(_children()),
        "open file": frozenset(_open_files()),
        "environment variable": frozenset(f"{name}={value}" for name, value in os.environ.items()),
        "entry of sys.path": frozenset(sys.path),
        "import hook": frozenset(map(repr, sys.meta_path)),
        "working directory": frozenset((os.getcwd(),)),  # noqa: PTH109 - a text is what is compared
        "signal handler": frozenset(_signal_handlers()),
        "log handler": frozenset(map(repr, logging.getLogger().handlers)),
    }


def left_behind(before: Surroundings, grace: float = _GRACE_SECONDS) -> list[str]:
    """Return what there is now that was not there `before`. What is about to end has `grace` seconds to."""
    end = time.monotonic() + grace
    while (found := _new(before)) and time.monotonic() < end:
        time.sleep(0.02)
    return found


def _new(before: Surroundings) -> list[str]:
    now = surroundings()
    return [f"{kind} {text}" for kind, texts in now.items() for text in sorted(texts - before[kind])]


def _open_files() -> Iterator[str]:
    folder = Path("/proc/self/fd")
    for link in folder.iterdir() if folder.is_dir() else ():
        with suppress(OSError):  # the one that the folder is read by is closed already
            target = link.readlink()
            if target != Path(f"/proc/{os.getpid()}/fd"):
                yield f"{target} (number {link.name})"


def _children() -> Iterator[str]:
    for path in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # a thread that has just ended
            yield from path.read_text().split()


def _signal_handlers() -> Iterator[str]:
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        if callable(handler):
            yield f"of signal {int(number)}: {handler!r}"
