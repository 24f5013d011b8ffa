"""bash ends when it must, takes everything it started with it, and returns what was printed until then."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chimera.tools import BashTool
from chimera.tools import _process as process_module
from chimera.types import ToolResult
from tests.tools.support import Env, output

SEES_PROCESSES = Path("/proc/self/stat").exists()


@pytest.fixture
def bash(tmp_path: Path) -> BashTool:
    return BashTool(tmp_path)


def wait_for(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.01)


def open_files() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


def has_children() -> bool:
    """Say whether this process has a child, dead or alive, that nobody has waited for."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


@pytest.fixture(autouse=True)
def nothing_left_open() -> Iterator[None]:
    """Fail a test after which this process holds more files or has children that nobody waited for."""
    before, somebody_elses = open_files(), has_children()
    yield
    if not somebody_elses:
        wait_for(lambda: not has_children())
    assert open_files() <= before


def run(tool: BashTool, command: str, env: Env | None = None, **args: Any) -> ToolResult:
    return tool.execute({"command": command, **args}, env)


def alive(pid_file: Path) -> bool:
    """Say whether the process whose id is in the file lives, zombies aside where the system tells."""
    try:
        pid = int(pid_file.read_text())
        os.kill(pid, 0)
        if not SEES_PROCESSES:
            return True
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (OSError, ValueError):  # not written yet, or gone
        return False


def test_output_of_both_streams_in_order(bash: BashTool) -> None:
    result = run(bash, "echo one; echo two >&2; echo three")
    assert result == ToolResult("one\ntwo\nthree\n", None, {"exit_code": 0, "cause": "exit", "left_running": False})


def test_it_runs_in_the_project_folder(bash: BashTool, tmp_path: Path) -> None:
    assert output(bash, command="pwd") == f"{tmp_path.resolve()}\n"
    run(bash, "cd /; X=1")
    assert output(bash, command="pwd; echo $X") == f"{tmp_path.resolve()}\n\n"


def test_the_root_of_the_run_counts(bash: BashTool, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert run(bash, "pwd", Env(tmp_path / "sub")).output == f"{(tmp_path / 'sub').resolve()}\n"


@pytest.mark.parametrize(
    ("command", "code", "error"),
    [
        ("false", 1, "exit code 1"),
        ("exit 42", 42, "exit code 42"),
        ("no-such-command", 127, "exit code 127"),
        ("kill -SEGV $$", -11, "killed by signal SIGSEGV"),
        ("kill -36 $$", -36, "killed by signal 36"),
        ("if", 2, "exit code 2"),
        ("-e", 127, "exit code 127"),
    ],
)
def test_failures_say_how_it_ended(bash: BashTool, command: str, code: int, error: str) -> None:
    result = run(bash, f"echo before; {command}" if command not in ("if", "-e") else command)
    assert (result.error, result.metadata["exit_code"]) == (error, code)
    assert command in ("if", "-e") or result.output.startswith("before\n")


def test_bash_it_is(bash: BashTool) -> None:
    assert output(bash, command="a=(1 2); echo ${a[1]}; cat <(echo sub)") == "2\nsub\n"


def test_there_is_no_input_and_no_terminal(bash: BashTool) -> None:
    assert output(bash, command="cat; read x || echo end; tty || true; (: < /dev/tty) 2>/dev/null || echo none") == (
        "end\nnot a tty\nnone\n"
    )


def test_the_environment_can_be_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHIMERA_TEST", "seen")
    assert output(BashTool(tmp_path), command="echo $CHIMERA_TEST") == "seen\n"
    bare = BashTool(tmp_path, environment={"PATH": os.environ["PATH"]})
    assert output(bare, command="echo $CHIMERA_TEST") == "\n"


def test_output_that_is_no_text(bash: BashTool) -> None:
    assert output(bash, command=r"printf 'a\xffb\n'") == "a\ufffdb\n"


def test_long_output_loses_its_middle(bash: BashTool) -> None:
    text = output(bash, command="seq 1 1000000")
    assert len(text) < 30_000
    assert text.startswith("1\n2\n")
    assert text.endswith("999999\n1000000\n")
    assert "bytes left out" in text


TIME_OUT = "timed out after 0.3 seconds; the command and all that it started were killed"


def test_a_time_out_returns_what_was_printed(bash: BashTool) -> None:
    result = run(bash, "echo before; sleep 60; echo after", timeout=0.3)
    assert (result.output, result.error) == ("before\n", TIME_OUT)
    assert result.metadata["cause"] == "timeout"


def test_a_program_may_tidy_up_when_it_is_killed(bash: BashTool) -> None:
    result = run(bash, "trap 'echo tidied; exit 3' TERM; echo before; sleep 60 & wait", timeout=0.3)
    assert result.output == "before\ntidied\n"
    assert result.error == TIME_OUT


own_groups = pytest.mark.skipif(not SEES_PROCESSES, reason="only where /proc lists the processes of a session")
STUBBORN = "trap '' TERM; "
CHILD = "sh -c 'echo $$ > pid; exec sleep 60'"


@pytest.mark.parametrize(
    "command",
    [
        f"{CHILD}",
        f"{CHILD}; true",
        f"({CHILD}) | cat",
        f"{CHILD} & wait",
        f"{CHILD} > /dev/null 2>&1 & wait",
        f"exec > /dev/null 2>&1; {CHILD}",
        pytest.param(f"timeout 60 {CHILD}; true", marks=own_groups),
        pytest.param(f"set -m; {CHILD} & wait", marks=own_groups),
        f"nohup {CHILD} & wait",
        f"bash -c \"bash -c \\\"{CHILD}\\\" & wait\"",
    ],
)  # fmt: skip
def test_a_time_out_takes_everything_along(bash: BashTool, tmp_path: Path, command: str) -> None:
    assert run(bash, command, timeout=0.3).error == TIME_OUT
    wait_for(lambda: not alive(tmp_path / "pid"))


@own_groups
def test_whoever_ignores_the_signal_is_killed(bash: BashTool, tmp_path: Path) -> None:
    command = f"{STUBBORN} echo before; timeout -s KILL 60 {CHILD} & while true; do sleep 0.05; done"
    result = run(bash, command, timeout=0.3)
    assert (result.output, result.error) == ("before\n", TIME_OUT)
    wait_for(lambda: not alive(tmp_path / "pid"))


@own_groups
def test_stubborn_children_of_a_shell_that_gave_in_are_killed(bash: BashTool, tmp_path: Path) -> None:
    command = f"(exec > /dev/null 2>&1; {STUBBORN} {CHILD}) & exec > /dev/null 2>&1; wait"
    assert run(bash, command, timeout=0.3).error == TIME_OUT
    wait_for(lambda: not alive(tmp_path / "pid"))


def test_a_background_process_does_not_hold_the_tool(bash: BashTool, tmp_path: Path) -> None:
    result = run(bash, f"{CHILD} & sleep 0.05; echo done", timeout=30)
    assert result.success
    assert result.output == "done\n[a background process goes on]"
    assert result.metadata["left_running"]
    assert alive(tmp_path / "pid")
    os.kill(int((tmp_path / "pid").read_text()), 9)


def test_a_background_process_with_its_output_in_a_file_is_nobodys_business(bash: BashTool, tmp_path: Path) -> None:
    result = run(bash, f"{CHILD} > log 2>&1 & sleep 0.05; echo done")
    assert result.output == "done\n"
    assert not result.metadata["left_running"]
    os.kill(int((tmp_path / "pid").read_text()), 9)


def test_a_background_process_that_never_stops_printing(bash: BashTool, tmp_path: Path) -> None:
    result = run(bash, "echo first; yes & echo $! > pid")
    assert result.output.startswith(("first\n", "y\n"))
    assert len(result.output) < 30_000
    wait_for(lambda: not alive(tmp_path / "pid"))


def test_output_that_comes_just_after_the_end_is_read(bash: BashTool) -> None:
    assert output(bash, command="echo out > >(sleep 0.02; cat)") == "out\n"


def test_cancelling_the_run_kills_the_command(bash: BashTool, tmp_path: Path) -> None:
    env = Env(tmp_path)
    results: list[ToolResult] = []
    thread = threading.Thread(target=lambda: results.append(run(bash, f"echo before; {CHILD}; true", env)))
    thread.start()
    wait_for(lambda: alive(tmp_path / "pid"))
    env.cancelled = True
    thread.join(20)
    assert [(item.output, item.metadata["cause"]) for item in results] == [("before\n", "cancelled")]
    assert (results[0].error or "").startswith("cancelled")
    wait_for(lambda: not alive(tmp_path / "pid"))


def test_a_run_that_is_cancelled_already_starts_nothing(bash: BashTool, tmp_path: Path) -> None:
    env = Env(tmp_path)
    env.cancelled = True
    assert run(bash, "touch started", env).error == "cancelled before the command was started"
    assert not (tmp_path / "started").exists()


async def test_it_runs_off_the_event_loop(bash: BashTool) -> None:
    results = await asyncio.gather(*(bash.async_execute({"command": f"sleep 0.05; echo {n}"}) for n in range(3)))
    assert [result.output for result in results] == ["0\n", "1\n", "2\n"]
    assert (await bash.async_execute({"command": "exit 3"}, Env(Path("/nowhere")))).error


async def test_cancelling_the_task_kills_the_command(bash: BashTool, tmp_path: Path) -> None:
    task = asyncio.create_task(bash.async_execute({"command": f"{CHILD}; true"}))
    await asyncio.to_thread(wait_for, lambda: alive(tmp_path / "pid"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(wait_for, lambda: not alive(tmp_path / "pid"))


def test_an_interrupt_kills_the_command(bash: BashTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = process_module._Running._read

    def interrupted(self: process_module._Running, seconds: float) -> None:
        real(self, seconds)
        if alive(tmp_path / "pid"):
            raise KeyboardInterrupt

    monkeypatch.setattr(process_module._Running, "_read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(bash, f"{CHILD}; true")
    wait_for(lambda: not alive(tmp_path / "pid"))


@pytest.mark.parametrize(("command", "words"), [("echo a\0b", "null byte"), ("#" + "x" * 3_000_000, "too long")])
def test_commands_that_no_system_takes(bash: BashTool, command: str, words: str) -> None:
    error = run(bash, command).error
    assert error is not None
    assert words in error
    assert "put long input into a file" in error


def test_without_bash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "bash is not installed" in (run(BashTool(tmp_path), "true").error or "")


def test_all_that_runs_can_be_killed_at_once(bash: BashTool, tmp_path: Path) -> None:
    results: list[ToolResult] = []
    command = "trap '' TERM; setsid true; timeout 60 sleep 60 & echo $! > {0}.tmp; mv {0}.tmp {0}; wait"
    threads = [
        threading.Thread(target=lambda name=name: results.append(run(bash, command.format(name)))) for name in "ab"
    ]
    for thread in threads:
        thread.start()
    wait_for(lambda: (tmp_path / "a").exists() and (tmp_path / "b").exists())
    process_module.kill_all()
    for thread in threads:
        thread.join(20)
    assert [result.error for result in results] == ["killed by signal SIGKILL"] * 2
    wait_for(lambda: not alive(tmp_path / "a") and not alive(tmp_path / "b"))
    process_module.kill_all()  # there is nothing any more, and nobody else is hit
