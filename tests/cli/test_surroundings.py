from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from chimera.cli.surroundings import left_behind, surroundings


@contextmanager
def a_thread(_folder: Path) -> Iterator[str]:
    end = threading.Event()
    thread = threading.Thread(target=end.wait, name="left-thread")
    thread.start()
    yield "thread left-thread"
    end.set()
    thread.join()


@contextmanager
def a_file(folder: Path) -> Iterator[str]:
    with (folder / "left.txt").open("w"):
        yield f"open file {folder / 'left.txt'}"


@contextmanager
def a_child(_folder: Path) -> Iterator[str]:
    with subprocess.Popen(["sleep", "60"]) as child:
        yield f"child process {child.pid}"
        child.kill()


@contextmanager
def a_variable(_folder: Path) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEFT", "x")
        yield "environment variable LEFT=x"


@contextmanager
def a_path(_folder: Path) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend("/left")
        yield "entry of sys.path /left"


@contextmanager
def an_import_hook(_folder: Path) -> Iterator[str]:
    hook: Any = type("LeftHook", (), {"find_spec": lambda *_: None})()
    sys.meta_path.append(hook)
    yield "import hook <"
    sys.meta_path.remove(hook)


@contextmanager
def a_folder(folder: Path) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield f"working directory {folder}"


@contextmanager
def a_signal_handler(_folder: Path) -> Iterator[str]:
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    yield f"signal handler of signal {int(signal.SIGUSR1)}"
    signal.signal(signal.SIGUSR1, before)


@contextmanager
def a_log_handler(_folder: Path) -> Iterator[str]:
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    yield "log handler <NullHandler"
    logging.getLogger().removeHandler(handler)


LEAVE = [
    a_thread, a_file, a_child, a_variable, a_path, an_import_hook, a_folder, a_signal_handler, a_log_handler
]  # fmt: skip
ON_LINUX = {a_file, a_child}


@pytest.mark.parametrize("leave", LEAVE)
def test_what_stays_is_named(tmp_path: Path, leave: Callable[[Path], Any]) -> None:
    if leave in ON_LINUX and not Path("/proc/self/task").is_dir():
        pytest.skip("this system does not tell of it")
    before = surroundings()
    with leave(tmp_path) as words:
        assert any(text.startswith(words) for text in left_behind(before, grace=0.1))
    assert left_behind(before) == []


def test_what_is_about_to_end_is_waited_for() -> None:
    before = surroundings()
    threading.Timer(0.1, lambda: None).start()
    assert left_behind(before) == []


def test_what_was_there_before_is_not_named() -> None:
    reading, writing = os.pipe()
    try:
        assert left_behind(surroundings()) == []
    finally:
        os.close(reading)
        os.close(writing)
