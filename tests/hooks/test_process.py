"""Running a hook: input, output, lateness, and what it leaves behind."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from chimera.hooks.process import HookFailed, HookOutput, kill_all, run_command


def run(command: str, stdin: str = "", *, cwd: Path, timeout: float = 20.0) -> HookOutput:
    return run_command(command, stdin, cwd=cwd, timeout=timeout)


def gone(pid: int) -> bool:
    """Wait until no such process runs any more; False when it goes on for long."""
    for _ in range(200):
        status = Path(f"/proc/{pid}/stat")
        try:
            os.kill(pid, 0)
            if status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def test_input_output_folder_and_environment(tmp_path: Path) -> None:
    output = run('cat; pwd; echo "$CHIMERA_PROJECT_DIR" >&2; exit 3', "in\n", cwd=tmp_path)
    assert output == HookOutput(3, f"in\n{tmp_path}\n", f"{tmp_path}\n")


def test_text_passes_both_ways(tmp_path: Path) -> None:
    assert run("cat", "é 😀\n" * 50_000, cwd=tmp_path).stdout == "é 😀\n" * 50_000


def test_a_hook_that_does_not_read_its_input_is_fine(tmp_path: Path) -> None:
    assert run("exit 0", "x" * 1_000_000, cwd=tmp_path).exit_code == 0


def test_what_it_leaves_in_the_background_keeps_nobody_waiting(tmp_path: Path) -> None:
    output = run("sleep 60 & echo $!", cwd=tmp_path, timeout=30)
    pid = int(output.stdout)
    os.kill(pid, signal.SIGKILL)
    assert gone(pid)


def test_a_late_hook_dies_with_all_that_it_started(tmp_path: Path) -> None:
    with pytest.raises(HookFailed, match=r"did not end within 0\.3 seconds and was killed"):
        run("trap '' TERM INT; sleep 60 & echo $! > child; wait; sleep 60", cwd=tmp_path, timeout=0.3)
    assert gone(int((tmp_path / "child").read_text()))


def test_a_hook_that_prints_without_end_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(HookFailed, match="printed more than 1000000 bytes"):
        run("yes", cwd=tmp_path)


@pytest.mark.parametrize("where", ["1", "2"])
def test_a_long_output_is_a_failure(tmp_path: Path, where: str) -> None:
    with pytest.raises(HookFailed, match="longer than 1000000 bytes"):
        run(f"head -c 1000001 /dev/zero >&{where}", cwd=tmp_path)


def test_an_output_that_is_no_text_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(HookFailed, match="no UTF-8 text"):
        run("printf '\\377'", cwd=tmp_path)


@pytest.mark.parametrize("command", ["a\0b", "true"])
def test_what_cannot_be_started_is_a_failure(tmp_path: Path, command: str) -> None:
    with pytest.raises(HookFailed, match="cannot be started"):
        run(command, cwd=tmp_path if "\0" in command else tmp_path / "missing")


def test_an_interrupt_is_no_failure_of_the_hook_and_ends_it(tmp_path: Path) -> None:
    pidfile = tmp_path / "pid"

    def interrupt() -> None:
        while not (pidfile.exists() and pidfile.read_text().endswith("\n")):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run("echo $$ > pid; sleep 60", cwd=tmp_path)
    thread.join()
    assert gone(int(pidfile.read_text()))


def test_all_that_run_can_be_killed_at_once(tmp_path: Path) -> None:
    codes: list[int] = []

    def hook(name: str) -> None:
        command = f"trap '' TERM; echo > {name}; sleep 60; true"
        codes.append(run_command(command, "", cwd=tmp_path, timeout=60).exit_code)

    threads = [threading.Thread(target=hook, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    end = time.monotonic() + 20
    while not ((tmp_path / "a").exists() and (tmp_path / "b").exists()):
        assert time.monotonic() < end
        time.sleep(0.01)
    kill_all()
    for thread in threads:
        thread.join(20)
    assert codes == [-signal.SIGKILL] * 2
    kill_all()  # there is nothing any more, and nobody else is hit
