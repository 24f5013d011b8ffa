from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points, version
from pathlib import Path
from typing import Any

import pytest

from chimera.cli import main
from chimera.cli.exits import INTERRUPTED, LEGEND, OK, USAGE
from chimera.cli.options import CodeOptions, Mode, Output
from chimera.errors import ConfigError
from scripts.update_cli_docs import commands
from tests.cli.child import environment


def ended(monkeypatch: pytest.MonkeyPatch, *words: str) -> object:
    """Run the program in this process, and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["chimera", *words])
    with pytest.raises(SystemExit) as end:
        main.main()
    return end.value.code


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What `chimera code` is started with, in place of starting it."""
    received: list[Any] = []

    def run_code(options: CodeOptions, task: str | None) -> int:
        received.append((options, task))
        return 7

    monkeypatch.setattr("chimera.cli.code.run_code", run_code)
    return received


def test_the_installed_program_is_this_one() -> None:
    (point,) = entry_points(group="console_scripts", name="chimera")
    assert point.load() is main.main


def test_every_option_reaches_the_command(given: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    words = (
        "code -p task --model m --base-url http://x --project . --plugin a --plugin b --preset minimal --max-turns 3"
    )
    more = "--permission-mode accept-edits --loop tot --output stream-json"
    assert ended(monkeypatch, *words.split(), *more.split()) == 7
    options = CodeOptions(
        model="m",
        base_url="http://x",
        project=Path(),
        plugins=("a", "b"),
        preset="minimal",
        max_turns=3,
        mode=Mode.ACCEPT_EDITS,
        loop="tot",
        output=Output.STREAM_JSON,
    )
    assert given == [(options, "task")]


def test_nothing_said_is_nothing_set(given: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    ended(monkeypatch, "code")
    assert given == [(CodeOptions(), None)]


@pytest.mark.parametrize("words", [("--yolo",), ("--permission-mode", "yolo"), ("--yolo", "--permission-mode=yolo")])
def test_yolo_is_a_mode(given: list[Any], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    ended(monkeypatch, "code", *words)
    assert given[0][0].mode is Mode.YOLO


@pytest.mark.parametrize(
    "words",
    [
        ("code", "--yolo", "--permission-mode", "ask"),
        ("code", "--permission-mode", "sometimes"),
        ("code", "--max-turns", "0"),
        ("code", "--max-turns", "many"),
        ("code", "--output", "xml"),
        ("code", "--nonsense"),
        ("code", "stray"),
        ("plugins", "show"),
        ("nonsense",),
    ],
)
def test_wrong_usage_exits_with_2(monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    assert ended(monkeypatch, *words) == USAGE


def test_errors_of_the_family_become_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_code(options: CodeOptions, task: str | None) -> int:
        raise ConfigError("no good: (1) this; (2) \x1b[2Jthat")

    monkeypatch.setattr("chimera.cli.code.run_code", run_code)
    assert ended(monkeypatch, "code") == USAGE
    assert capsys.readouterr().err == "chimera: no good:\n  (1) this;\n  (2) ␛[2Jthat\n"


def test_errors_of_ours_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_code(options: CodeOptions, task: str | None) -> int:
        raise AssertionError("a fault in Chimera")

    monkeypatch.setattr("chimera.cli.code.run_code", run_code)
    monkeypatch.setattr(sys, "argv", ["chimera", "code"])
    with pytest.raises(AssertionError):
        main.main()


def test_ctrl_c_before_anything_runs_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_code(options: CodeOptions, task: str | None) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("chimera.cli.code.run_code", run_code)
    assert ended(monkeypatch, "code") == INTERRUPTED


@pytest.mark.parametrize("words", [words for words in commands() if words != ("chimera", "plugins")], ids=" ".join)
def test_every_command_documents_its_exit_codes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    assert ended(monkeypatch, *words[1:], "--help") == OK
    assert " ".join(LEGEND.split()) in " ".join(capsys.readouterr().out.split())


def test_the_version_is_the_packages(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(monkeypatch, "--version") == OK
    assert capsys.readouterr().out == f"chimera {version('chimera-harness')}\n"


@pytest.mark.parametrize("words", [("demo", "--no-policy"), ("doctor",), ("plugins", "list")])
def test_the_other_commands_are_connected(monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    assert ended(monkeypatch, *words) == (USAGE if words == ("doctor",) else OK)


def test_a_plugin_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(monkeypatch, "plugins", "show", "plan-gate") == OK
    assert "PlanGatePlugin._gate" in capsys.readouterr().out


def test_output_that_nobody_reads_ends_quietly(tmp_path: Path) -> None:
    command = f"{sys.executable} -m chimera.cli plugins list | true"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
