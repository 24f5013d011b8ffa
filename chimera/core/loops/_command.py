"""Running a command that the program chose: to its end, to its time limit, or until the run is cancelled."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from chimera.errors import OutsideError

__all__ = ["Finished", "run_command"]

_SHOWN = 20_000


class Finished(NamedTuple):
    """The exit status of a command, and the text that it printed to both streams, cut where it is very long."""

    status: int
    output: str


def run_command(command: Sequence[str], seconds: float, env: Any) -> Finished:
    """Run `command`, without a shell, in the project folder of `env`, and wait for it.

    Raises `OutsideError` when it cannot be found or started, is killed, or takes longer than `seconds`.
    """
    from subprocess import DEVNULL, PIPE, STDOUT, Popen, TimeoutExpired

    program = _found(command[0], env.root)
    try:
        process = Popen(
            (program, *command[1:]), cwd=env.root, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, start_new_session=True
        )
    except OSError as exc:
        raise OutsideError(f"{command[0]} cannot be started: {exc.strerror or exc}") from exc
    forget = env.on_cancel(lambda: _kill(process))
    try:
        printed, _ = process.communicate(timeout=seconds)
    except TimeoutExpired:
        raise OutsideError(f"{command[0]} took longer than {seconds:g} seconds") from None
    finally:
        forget()
        _kill(process)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    if process.returncode < 0:
        raise OutsideError(f"{command[0]} was killed by signal {-process.returncode}")
    return Finished(process.returncode, _shortened(printed.decode("utf-8", errors="replace")))


def _found(name: str, root: Path | None) -> str:
    """Return where the program is: a bare name on the path or next to the running Python, a path from `root`."""
    from shutil import which

    if os.sep in name:
        return str((root or Path.cwd()).absolute() / name)
    found = which(name) or which(name, path=str(Path(sys.executable).parent))
    if found is None:
        raise OutsideError(f"{name} was not found")
    return str(Path(found).absolute())


def _kill(process: Any) -> None:
    """Kill the command with everything that it started; a group that is gone is left alone."""
    try:
        os.killpg(process.pid, 9)
    except (ProcessLookupError, PermissionError):
        process.kill()


def _shortened(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}\n... ({len(text) - _SHOWN} more characters)"
