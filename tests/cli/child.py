"""The program as a person runs it: a process of its own, and a terminal of its own."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

__all__ = ["Terminal", "chimera", "command", "environment", "script"]

PATIENCE = 30.0
_STYLE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def command(*words: str) -> list[str]:
    """Return the command line of the program with these words."""
    return [sys.executable, "-W", "error", "-m", "chimera.cli", *words]


def environment(**changes: str) -> dict[str, str]:
    """Return this process's environment, in which the program finds its modules and a terminal of 80 columns."""
    root = str(Path(__file__).parents[2])
    return {**os.environ, "PYTHONPATH": root, "COLUMNS": "80", "PYTHONDONTWRITEBYTECODE": "1", **changes}


def chimera(*words: str, cwd: Path, stdin: str = "", **changes: str) -> subprocess.CompletedProcess[str]:
    """Run the program to its end in `cwd`, with changes to its environment."""
    return subprocess.run(
        command(*words),
        cwd=cwd,
        input=stdin,
        env=environment(**changes),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )


def script(folder: Path, steps: Any) -> str:
    """Write a script of the scripted model, and return the name of the model that follows it."""
    path = folder / "script.json"
    path.write_text(json.dumps(steps), encoding="utf-8")
    return f"faux:{path}"


class Terminal:
    """The program on a terminal. Leaving the block kills it when it still runs."""

    def __init__(self, *words: str, cwd: Path, **changes: str) -> None:
        self.pid, self._file = pty.fork()
        if self.pid == 0:  # pragma: no cover - the child
            os.chdir(cwd)
            os.execve(sys.executable, command(*words), environment(TERM="xterm", **changes))
        fcntl.ioctl(self._file, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.text = ""
        self._seen = 0
        self._status: int | None = None

    def expect(self, words: str) -> str:
        """Wait until `words` appear after what was waited for before, and return everything up to them."""
        end = time.monotonic() + PATIENCE
        while (found := self.text.find(words, self._seen)) < 0:
            if time.monotonic() > end or not self._read(end - time.monotonic()):
                raise AssertionError(f"{words!r} did not appear in {self.text!r}")
        before, self._seen = self.text[self._seen : found], found + len(words)
        return before

    def enter(self, line: str) -> None:
        """Type a line."""
        os.write(self._file, f"{line}\n".encode())

    def press(self, key: str) -> None:
        """Press a key such as `\\x03`, which is Ctrl-C."""
        os.write(self._file, key.encode())

    def end(self) -> int:
        """Wait until the program ends, and return its exit code."""
        limit = time.monotonic() + PATIENCE
        while self._read(limit - time.monotonic()):
            assert time.monotonic() < limit, f"it does not end: {self.text!r}"
        self._status = os.waitpid(self.pid, 0)[1]
        return os.waitstatus_to_exitcode(self._status)

    def _read(self, seconds: float) -> bool:
        if not select.select([self._file], [], [], max(0.0, seconds))[0]:
            return False
        try:
            piece = os.read(self._file, 65536)
        except OSError:  # what a terminal says when nobody is at its other end any more
            return False
        self.text += _STYLE.sub("", piece.decode("utf-8", "replace")).replace("\r\n", "\n")
        return bool(piece)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is None:
            os.kill(self.pid, 9)
            os.waitpid(self.pid, 0)
        os.close(self._file)
