"""Running one hook: a shell command that gets JSON on its standard input."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

__all__ = ["HookFailed", "HookOutput", "kill_all", "run_command"]

MAX_OUTPUT = 1_000_000  # bytes
_LOOK_EVERY = 0.2  # seconds between two looks at how much a hook has printed
_running: set[int] = set()  # process groups; each change is a single step, for `kill_all` may interrupt any of them


class HookFailed(Exception):
    """The hook said nothing that can be used; the text says why. It never leaves this package."""


@dataclass(frozen=True, slots=True)
class HookOutput:
    """How a command ended and what it printed."""

    exit_code: int
    stdout: str
    stderr: str


def run_command(command: str, stdin: str, *, cwd: Path, timeout: float) -> HookOutput:
    """Run `command` in `cwd` with `stdin`, for at most `timeout` seconds. Its whole process group dies with it when it
    is late, prints too much, or the wait is interrupted. Raises `HookFailed` when it gives no usable answer.

    Files stand in for pipes: a program that it leaves in the background keeps nobody waiting.
    """
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write(stdin.encode())
        given.seek(0)
        try:
            process = subprocess.Popen(
                ["/bin/sh", "-c", command],
                cwd=cwd,
                env={**os.environ, "CHIMERA_PROJECT_DIR": str(cwd)},
                stdin=given,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise HookFailed(f"it cannot be started: {error}") from error
        _running.add(process.pid)
        try:
            _wait(process, (out, err), timeout)
        except BaseException:
            _kill(process)
            raise
        finally:
            _running.discard(process.pid)
        return HookOutput(process.returncode, _text(out, "output"), _text(err, "error output"))


def kill_all() -> None:
    """Kill the process groups of all hooks that run now, in any thread. Takes no lock: a signal handler may call it."""
    for group in set(_running):
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def _wait(process: subprocess.Popen[bytes], printed: tuple[IO[bytes], ...], timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise HookFailed(f"it did not end within {timeout:g} seconds and was killed")
        with suppress(subprocess.TimeoutExpired):
            process.wait(min(left, _LOOK_EVERY))
            return
        if any(os.fstat(file.fileno()).st_size > MAX_OUTPUT for file in printed):
            raise HookFailed(f"it printed more than {MAX_OUTPUT} bytes and was killed")


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _text(file: IO[bytes], what: str) -> str:
    file.seek(0)
    data = file.read(MAX_OUTPUT + 1)
    if len(data) > MAX_OUTPUT:
        raise HookFailed(f"its {what} is longer than {MAX_OUTPUT} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise HookFailed(f"its {what} is no UTF-8 text") from error
