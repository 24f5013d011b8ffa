"""Regular expressions of a stranger, matched where they can be stopped.

Python's `re` can take hours for a short text, holds the interpreter lock meanwhile and cannot be interrupted. So the
matching happens in a small process of its own, which is killed when its time is up.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, NamedTuple

from chimera.errors import ToolError

__all__ = ["Hit", "RegexProcess", "RegexTimeout"]

_WORKER = Path(__file__).with_name("_regex_worker.py")
_TICK = 0.05


class Hit(NamedTuple):
    """A line that matches: its index, and where in it the match starts."""

    line: int
    start: int


class RegexTimeout(ToolError):
    """The matching took longer than it may."""


class RegexProcess:
    """A context manager around one pattern; `hits` may take `seconds` altogether.

    Raises `ToolError` when the pattern is wrong, `RegexTimeout` when the time is up, `ToolError` when `check` does.
    """

    def __init__(self, pattern: str, *, ignore_case: bool, seconds: float, check: Callable[[], None]) -> None:
        self._job = {"pattern": pattern, "ignore_case": ignore_case}
        self._seconds = seconds
        self._check = check

    def __enter__(self) -> RegexProcess:
        self._deadline = monotonic() + self._seconds
        self._process = _start()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)
        try:
            problem = self._ask(json.dumps(self._job).encode() + b"\n")
            if problem is not None:
                raise ToolError(f"the pattern is no Python regular expression ({problem}); escape what is literal")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._selector.close()
        self._process.kill()
        self._process.communicate()

    def hits(self, text: str, limit: int) -> list[Hit]:
        """Return the first `limit` lines of `text` that match."""
        data = text.encode("utf-8", "surrogatepass")
        return [Hit(*pair) for pair in self._ask(b"%d %d\n%b" % (len(data), limit, data))]

    @property
    def _output(self) -> int:
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def _ask(self, request: bytes) -> Any:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(request)
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise ToolError("the process that matches the pattern died; simplify the pattern") from error
        return json.loads(self._line())

    def _line(self) -> bytes:
        answer = b""
        while not answer.endswith(b"\n"):
            self._wait()
            data = os.read(self._output, 1 << 16)
            if not data:
                raise ToolError("the process that matches the pattern died; simplify the pattern")
            answer += data
        return answer

    def _wait(self) -> None:
        while not self._selector.select(_TICK):
            self._check()
            if monotonic() >= self._deadline:
                text = f"matching took longer than {self._seconds:g} seconds"
                raise RegexTimeout(f"{text}; simplify the pattern (no nested repeats), or narrow it with path or glob")


def _start() -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(_WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise ToolError(f"cannot start the process that matches patterns: {error}") from error
