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


# A process that leads its session takes the first terminal that it opens for its own, and Ctrl-C there is a signal.
_ON_TERMINAL = """
import os, sys
terminal = os.open(sys.argv[1], os.O_RDWR)
for number in range(3):
    os.dup2(terminal, number)
os.execv(sys.argv[2], sys.argv[2:])
"""


class Terminal:
    """The program on a terminal of 80 columns. Leaving the block kills it when it still runs."""

    def __init__(self, *words: str, cwd: Path, **changes: str) -> None:
        self._file, other = pty.openpty()
        fcntl.ioctl(self._file, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self._process = subprocess.Popen(
            [sys.executable, "-c", _ON_TERMINAL, os.ttyname(other), *command(*words)],
            cwd=cwd,
            env=environment(TERM="xterm", **changes),
            start_new_session=True,
        )
        self.pid = self._process.pid
        self.text = ""
        self._seen = 0
        self._read(PATIENCE)  # before this end of the other side may be closed, the program must have its own
        os.close(other)

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
        """Press a key such as `\\x03`, which is Ctrl-C, once the program waits for one.

        A signal in the moment between a prompt and the wait for a line is noticed with the next key only, in every
        program that reads lines with readline.
        """
        waiting = 0
        while waiting < 3:
            time.sleep(0.005)
            waiting = waiting + 1 if self._sleeps() else 0
        os.write(self._file, key.encode())

    def _sleeps(self) -> bool:
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"
        except FileNotFoundError:  # no such folder on this system
            time.sleep(0.1)
            return True

    def end(self) -> int:
        """Wait until the program ends, and return its exit code."""
        limit = time.monotonic() + PATIENCE
        while self._read(limit - time.monotonic()):
            assert time.monotonic() < limit, f"it does not end: {self.text!r}"
        return self._process.wait(PATIENCE)

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
        self._process.kill()
        self._process.wait()
        os.close(self._file)
