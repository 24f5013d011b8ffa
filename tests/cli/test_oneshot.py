from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from chimera.cli.exits import FAILED, OK
from chimera.cli.oneshot import run_task
from chimera.cli.options import CodeOptions, Mode, Output
from chimera.cli.setup import open_session
from tests.cli.child import command, environment, script

WRITE = {"name": "write_file", "arguments": {"path": "a.txt", "content": "hello\n"}}
LIST = {"name": "bash", "arguments": {"command": "ls"}}
STEPS = [
    {"text": "First.", "tool_calls": [WRITE, LIST], "usage": {"input_tokens": 7, "output_tokens": 3}},
    {"text": "Done."},
]


def run(folder: Path, steps: Any = STEPS, output: Output = Output.TEXT, **options: Any) -> int:
    chosen = CodeOptions(model=script(folder, steps), project=folder, output=output, **options)
    with open_session(chosen, default_mode=Mode.ACCEPT_EDITS, streams=output is Output.STREAM_JSON) as session:
        return run_task(session, "do it", output)


def test_text_is_the_answer_alone_and_the_way_is_on_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path) == OK
    out, err = capsys.readouterr()
    assert out == "Done.\n"
    assert "● write_file a.txt\n" in err
    assert "✗ Permission denied: bash runs a command" in err
    assert "Done." not in err
    assert (tmp_path / "a.txt").read_text() == "hello\n"


def test_json_is_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, output=Output.JSON) == OK
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("\n") == 1
    result = json.loads(out)
    assert {key: result[key] for key in ("text", "reason", "usage", "cost_usd", "steps")} == {
        "text": "Done.",
        "reason": "completed",
        "usage": {"input_tokens": 7, "output_tokens": 3},
        "cost_usd": 0.0,
        "steps": 2,
    }
    (denial,) = result["decisions"]
    assert (denial["seam"], denial["decision"], denial["tool"]) == ("permission", "denied", "bash")


def test_stream_json_is_one_object_for_each_event(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, output=Output.STREAM_JSON) == OK
    out, err = capsys.readouterr()
    assert err == ""
    events = [json.loads(line) for line in out.splitlines()]
    assert {"stream_start", "assistant_chunk", "assistant", "tool_use", "tool_result"} < {e["type"] for e in events}
    assert "".join(e["text"] for e in events if e["type"] == "assistant_chunk") == "First.Done."
    assert [e["type"] for e in events].count("result") == 1
    assert events[-1]["type"] == "result"
    assert events[-1]["text"] == "Done."


def test_decisions_of_plugins_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, output=Output.JSON, plugins=("plan-gate",))
    decisions = json.loads(capsys.readouterr().out)["decisions"]
    assert [(entry["seam"], entry["decision"], entry["tool"]) for entry in decisions] == [
        ("tool_call", "blocked", "write_file"),
        ("tool_call", "blocked", "bash"),
    ]
    assert all(entry["reason"].startswith("plan-gate") and entry["microseconds"] > 0 for entry in decisions)
    assert not (tmp_path / "a.txt").exists()


@pytest.mark.parametrize("output", Output)
@pytest.mark.parametrize(
    ("steps", "options", "reason"),
    [
        ([{"error": "the service is gone"}], {}, "error: ProviderError: the service is gone"),
        ([{"tool_calls": [LIST]}] * 30, {"max_turns": 2}, "max_turns"),
        ([{"tool_calls": [LIST]}] * 30, {"plugins": ("plan-gate",)}, "blocked_steps_limit"),
    ],
)
def test_a_run_that_failed_or_was_blocked_says_so(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    steps: Any,
    options: dict[str, Any],
    reason: str,
    output: Output,
) -> None:
    assert run(tmp_path, steps, output, **options) == FAILED
    out, err = capsys.readouterr()
    if output is Output.TEXT:
        assert reason.removeprefix("error: ") in err
    else:
        assert json.loads(out.splitlines()[-1])["reason"].startswith(reason)


def test_a_run_that_an_interceptor_blocked_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugins = tmp_path / ".chimera" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "closed.py").write_text(
        "from chimera.core import InterceptDecision\nfrom chimera.plugins import BasePlugin, PluginExtensionRegistry\n"
        "class Closed(BasePlugin):\n    name = 'closed'\n    def register_interceptors(self, registry):\n"
        "        block = lambda messages: InterceptDecision.block('closed today')\n"
        "        PluginExtensionRegistry.register_interceptor('context', block)\n"
    )
    assert run(tmp_path, output=Output.JSON, plugins=("closed",)) == FAILED
    assert json.loads(capsys.readouterr().out)["reason"] == "interceptor_blocked: closed today"


LEAKY = """
from chimera.core import InterceptDecision
from chimera.plugins import BasePlugin, PluginExtensionRegistry

KEY = "sk-" + "a1B2c3D4" * 3


class Leaky(BasePlugin):
    name = "leaky"

    def register_interceptors(self, registry):
        PluginExtensionRegistry.register_interceptor("context", self.context)
        PluginExtensionRegistry.register_interceptor("tool_call", self.call)

    def context(self, messages):
        if any(message.role == "tool" for message in messages):
            return InterceptDecision.block("ends with " + KEY)
        raise ValueError("breaks at " + KEY)

    def call(self, call):
        return InterceptDecision.block("not with " + KEY)
"""


@pytest.mark.parametrize("loop", [None, "plan-execute"])
@pytest.mark.parametrize("output", Output)
def test_no_kind_of_output_holds_the_secrets_of_reasons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], output: Output, loop: str | None
) -> None:
    plugins = tmp_path / ".chimera" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "leaky.py").write_text(LEAKY)
    assert run(tmp_path, output=output, plugins=("leaky",), loop=loop) == FAILED
    said = "".join(capsys.readouterr())
    assert "sk-a1B2" not in said
    for words in ("ends with [redacted]", "breaks at [redacted]", "not with [redacted]"):
        assert words in " ".join(said.split())


def test_what_no_encoding_can_hold_breaks_no_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, [{"text": "half \ud83d"}], Output.JSON) == OK
    assert json.loads(capsys.readouterr().out)["text"] == "half \ud83d"


SLEEP = {"name": "bash", "arguments": {"command": "echo $$ > pid; sleep 60"}}


class Running:
    """`chimera code -p` in the middle of a command that would take a minute."""

    def __init__(self, folder: Path, call: dict[str, Any] = SLEEP) -> None:
        model = script(folder, [{"text": "Waiting.", "tool_calls": [call]}, {"text": "Never said."}])
        words = ["code", "-p", "wait", "--model", model, "--yolo", "--output", "stream-json"]
        self.process = subprocess.Popen(
            command(*words), cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.lines = []
        for line in self.process.stdout:
            self.lines.append(line)
            if '"tool_use"' in line:
                break
        while not (folder / "pid").exists() or not (folder / "pid").read_text().strip():
            assert self.process.poll() is None
        self.command = int((folder / "pid").read_text())

    def end(self) -> list[dict[str, Any]]:
        out, err = self.process.communicate(timeout=30)
        assert "Traceback" not in err
        return [json.loads(line) for line in [*self.lines, *out.splitlines()]]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_in_the_middle_of_a_turn_ends_it_cleanly(tmp_path: Path, number: signal.Signals, code: int) -> None:
    running = Running(tmp_path)
    running.process.send_signal(number)
    events = running.end()
    assert running.process.returncode == code
    assert (events[-1]["reason"], events[-1]["text"]) == ("aborted", "")
    (asked,) = [event for event in events if event["type"] == "assistant"]
    answered = [event["call"]["id"] for event in events if event["type"] == "tool_result"]
    assert answered == [call["id"] for call in asked["tool_calls"]]
    with pytest.raises(ProcessLookupError):
        os.kill(running.command, 0)


STUBBORN = {
    "name": "bash",
    "arguments": {"command": "trap '' INT TERM HUP; sleep 60 & echo $! > child; echo $$ > pid; wait; sleep 60"},
}


@pytest.mark.parametrize(
    ("numbers", "code"),
    [
        ([signal.SIGINT] * 3, 130),
        ([signal.SIGINT, signal.SIGINT, signal.SIGTERM], 143),
        ([signal.SIGHUP], 129),
        ([signal.SIGINT, signal.SIGHUP], 129),
    ],
    ids=lambda value: str(value),
)
def test_signals_that_insist_leave_no_command_behind(tmp_path: Path, numbers: list[signal.Signals], code: int) -> None:
    running = Running(tmp_path, STUBBORN)
    for number in numbers:
        running.process.send_signal(number)
        time.sleep(0.05)  # signals of one kind that are not taken yet count as one
    running.end()
    assert running.process.returncode == code
    for pid in (running.command, int((tmp_path / "child").read_text())):
        assert not living(pid)


def living(pid: int) -> bool:
    """Say whether a process runs; one that is dead and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
