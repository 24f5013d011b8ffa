"""Running a program in a session of its own, so that all of it can be stopped."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Literal

from chimera.tools._output import HeadTail

__all__ = ["Ended", "kill_all", "run_process"]

_TICK = 0.05
_MERCY_SECONDS = 1.0
_LATE_OUTPUT_SECONDS = 0.1
_CHUNK = 1 << 16
# What `kill_all` goes by. It may interrupt any of the changes to these, so each is a single step.
_starting: list[None] = []
"""One for each program that is being started, and has no number in `_running` yet."""
_running: set[int] = set()
"""The leaders of the sessions that run now."""

Cause = Literal["exit", "timeout", "cancelled"]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended: what it printed (both streams), its exit code (negative: the signal), and the cause.

    `left_running` says that something it started in the background still holds its output.
    """

    output: str
    exit_code: int
    cause: Cause
    left_running: bool


def run_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    timeout: float,
    stopped: Callable[[], bool],
    limit: int,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run `argv` for at most `timeout` seconds, without input, and keep at most `limit` bytes of what it prints.

    On time-out, or once `stopped()` says so, everything in its session gets SIGTERM and a second later SIGKILL. A
    background process that keeps the output open is not waited for. Raises `OSError` when the program cannot start.
    """
    reader, writer = os.pipe()
    try:
        process = _start(argv, cwd, environment, writer)
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    try:
        return _Running(process, reader, limit).follow(timeout, stopped)
    finally:
        _running.discard(process.pid)


def kill_all() -> None:
    """Kill every session that `run_process` runs now, in any thread, and wait for at most a second until all are dead.

    Takes no lock, so that a signal handler may call it. Whoever waits in `run_process` finds its program killed.
    """
    leaders: set[int] = set()
    end = monotonic() + _MERCY_SECONDS
    while True:
        starting = bool(_starting)
        leaders |= _running
        for leader in leaders:
            _signal_session(leader, signal.SIGKILL)
        alive = starting or any(next(_members(leader), None) for leader in leaders)
        if not alive or monotonic() >= end:
            return
        sleep(_TICK / 10)


def _start(
    argv: Sequence[str], cwd: Path, environment: Mapping[str, str] | None, output: int
) -> subprocess.Popen[bytes]:
    _starting.append(None)
    try:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        _running.add(process.pid)
        return process
    finally:
        _starting.pop()


class _Running:
    """A program that runs, and the pipe that its output comes from."""

    def __init__(self, process: subprocess.Popen[bytes], reader: int, limit: int) -> None:
        self._process = process
        self._reader = reader
        self._output = HeadTail(limit)
        self._open = True
        os.set_blocking(reader, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(reader, selectors.EVENT_READ)

    def follow(self, timeout: float, stopped: Callable[[], bool]) -> Ended:
        try:
            cause = self._wait(monotonic() + timeout, stopped)
            if cause != "exit":
                self._stop()
            self._read_until(monotonic() + _LATE_OUTPUT_SECONDS)
            return Ended(self._output.text(), self._process.wait(), cause, self._open)
        finally:
            self._close()

    def _wait(self, deadline: float, stopped: Callable[[], bool]) -> Cause:
        while self._process.poll() is None:
            if stopped():
                return "cancelled"
            if monotonic() >= deadline:
                return "timeout"
            self._read(min(_TICK, deadline - monotonic()))
        return "exit"

    def _stop(self) -> None:
        leader = self._process.pid
        _signal_session(leader, signal.SIGTERM)
        end = monotonic() + _MERCY_SECONDS
        while self._alive() and monotonic() < end:
            self._read(_TICK)
        end = monotonic() + _MERCY_SECONDS
        while True:
            _signal_session(leader, signal.SIGKILL)
            self._read(_TICK)
            if not self._alive() or monotonic() >= end:
                return

    def _alive(self) -> bool:
        return self._process.poll() is None or any(_members(self._process.pid))

    def _read_until(self, end: float) -> None:
        while self._open and monotonic() < end:
            self._read(_TICK)

    def _read(self, seconds: float) -> None:
        """Read what comes within `seconds`, or wait so long where nothing can come any more."""
        seconds = max(seconds, 0)
        if self._open:
            if self._selector.select(seconds):
                data = os.read(self._reader, _CHUNK)
                self._open = bool(data)
                self._output.add(data)
        elif self._process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
        else:
            sleep(seconds)

    def _close(self) -> None:
        if self._process.poll() is None:
            _signal_session(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._selector.close()
        os.close(self._reader)


def _signal_session(leader: int, number: signal.Signals) -> None:
    """Send a signal to everybody in the session that `leader` leads.

    Its process group is not enough: `timeout` and shells with job control give their children groups of their own.
    """
    _send(os.killpg, leader, number)
    for pid in _members(leader):
        _send(os.kill, pid, number)


def _send(kill: Callable[[int, int], None], target: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # gone already, or of another user and not ours to stop
        kill(target, number)


def _members(leader: int) -> Iterator[int]:
    """Yield the living processes of a session, where the system lists processes under /proc."""
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended while we looked
            state, _parent, _group, session = entry.read_text("latin-1").rpartition(")")[2].split()[:4]
            if int(session) == leader and state not in "ZX":
                yield int(entry.parent.name)
