"""Hot-swap as a person meets it: `chimera code` in a process of its own, and an editor next to it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from chimera.cli.code import run_code
from chimera.cli.exits import OK
from chimera.cli.live import Remarks
from chimera.cli.options import CodeOptions, Mode
from chimera.cli.repl import Repl
from chimera.cli.screen import Screen
from chimera.cli.setup import open_session
from chimera.errors import ConfigError
from tests.cli.child import Terminal, script
from tests.cli.consoles import recorded
from tests.cli.test_repl import said

GATE = """\
from chimera.core.interception import InterceptDecision
from chimera.plugins import BasePlugin

class Gate(BasePlugin):
    name = "gate"

    def register_interceptors(self, registry):
        registry.register_interceptor("tool_call", self.gate)

    def gate(self, call):
        return {verdict}
"""
BLOCK, ALLOW = 'InterceptDecision.block("by order of version {}")', "None"
ECHO = {"tool_calls": [{"name": "bash", "arguments": {"command": "echo it-$((6*7))"}}]}
BLOCKED = "Blocked by interceptor: by order of version 1"
RAN = "it-42\n"


def write(project: Path, verdict: str) -> None:
    folder = project / ".chimera" / "plugins"
    folder.mkdir(parents=True, exist_ok=True)
    other = folder / "gate.py.swp"
    other.write_text(GATE.format(verdict=verdict))
    other.replace(folder / "gate.py")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, BLOCK.format(1))
    return tmp_path


def start(project: Path, *words: str) -> Terminal:
    model = script(project, [part for number in range(6) for part in (ECHO, f"Answer {number}.")])
    return Terminal("code", "--plain", "--yolo", "--model", model, "--plugin", "gate", *words, cwd=project)


def turn(terminal: Terminal, number: int) -> str:
    """Take one turn and return what was printed in it."""
    terminal.enter("go")
    printed = terminal.expect(f"Answer {number}.")
    terminal.expect("> ")
    return printed


def resync(terminal: Terminal) -> str:
    terminal.enter("/resync")
    terminal.expect("/resync\n")
    return terminal.expect("\n> ")


def test_an_edit_between_two_turns_decides_the_second(project: Path) -> None:
    with start(project) as terminal:
        terminal.expect("> ")
        first = turn(terminal, 0)
        write(project, ALLOW)
        report = resync(terminal)
        second = turn(terminal, 1)
        write(project, BLOCK.format(3))
        resync(terminal)
        third = turn(terminal, 2)
        terminal.enter("/exit")
        assert terminal.end() == 0
    assert (BLOCKED in first, RAN in first) == (True, False)
    assert "plugins: refreshed gate" in report
    assert "tool_call: refreshed gate: Gate.gate" in report
    assert ("Blocked" in second, RAN in second) == (False, True)
    assert ("by order of version 3" in third, RAN in third) == (True, False)


def test_a_broken_edit_leaves_the_policy_in_force(project: Path) -> None:
    with start(project) as terminal:
        terminal.expect("> ")
        turn(terminal, 0)
        write(project, "oops(")
        report = " ".join(resync(terminal).split())
        second = turn(terminal, 1)
    assert "failed gate (plugin 'gate' was not reloaded:" in report
    assert "gate.py, line 11: SyntaxError" in report.replace("gate. py", "gate.py")
    assert (BLOCKED in second, RAN in second) == (True, False)


def test_the_watcher_swaps_by_itself(project: Path) -> None:
    with start(project, "--watch-plugins") as terminal:
        terminal.expect("> ")
        first = turn(terminal, 0)
        write(project, ALLOW)
        terminal.expect("was reloaded: gate@2-")
        second = turn(terminal, 1)
        write(project, "oops(")
        terminal.expect("SyntaxError")
        third = turn(terminal, 2)
        write(project, BLOCK.format(4))
        terminal.expect("was reloaded: gate@3-")
        fourth = turn(terminal, 3)
        terminal.enter("/exit")
        assert terminal.end() == 0
    assert BLOCKED in first
    assert [RAN in text for text in (first, second, third, fourth)] == [False, True, True, False]
    assert "by order of version 4" in fourth


def test_the_watcher_swaps_on_the_full_screen_too(project: Path) -> None:
    pytest.importorskip("textual")
    model = script(project, ["x"])
    words = ["code", "--yolo", "--model", model, "--plugin", "gate", "--watch-plugins"]
    with Terminal(*words, cwd=project) as terminal:
        terminal.expect("gate")
        write(project, ALLOW)
        terminal.expect("was reloaded: gate@2-")


def test_resync_follows_the_settings(project: Path) -> None:
    config = project / ".chimera" / "config.toml"

    def lines() -> Iterator[str]:
        yield "/resync"
        config.write_text("[plugins.plan-gate]\n")
        yield "/resync"
        config.write_text("[plugins.plan-gate]\nscope = 'process'\n")
        yield "/resync"
        config.write_text("[plugins\n")
        yield "/resync"
        config.unlink()
        yield "/resync"
        yield "/exit"

    console, out = recorded()
    typed = lines()

    def read_line(prompt: str) -> str:
        console.print("> next")
        return next(typed)

    options = CodeOptions(model=script(project, ["x"]), project=project, plugins=("gate",))
    with open_session(options, default_mode=Mode.YOLO) as session:
        assert Repl(session, Screen(console), read_line).run() == OK
        assert list(session.manager.plugins) == ["gate"]
    first, second, third, fourth, fifth = out.getvalue().split("> next\n")[1:6]
    assert "plugins: refreshed gate" in first
    assert "plugins: added plan-gate; refreshed gate" in second
    assert "plugins: refreshed gate, plan-gate" in third
    assert "this is not TOML" in fourth
    assert "refreshed" not in fourth
    assert "plugins: removed plan-gate; refreshed gate" in fifth


def test_remarks_wait_for_the_end_of_a_turn() -> None:
    shown: list[str] = []
    remarks = Remarks(shown.append)
    remarks.say("a")

    def turn() -> None:
        with remarks.held_back():
            thread = threading.Thread(target=remarks.say, args=("b",))
            thread.start()
            thread.join()
            assert shown == ["a"]
            raise KeyError

    with pytest.raises(KeyError):
        turn()
    assert shown == ["a", "b"]
    remarks.say("c")
    assert shown == ["a", "b", "c"]


def test_help_knows_resync(project: Path) -> None:
    assert "/resync" in said(project, ["/help"])


@pytest.mark.parametrize(("task", "lanes"), [("go", None), (None, "a,b")])
def test_watching_needs_a_conversation(
    project: Path, task: str | None, lanes: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = CodeOptions(model=script(project, ["x"]), project=project, watches_plugins=True, lanes=lanes)
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(ConfigError, match="--watch-plugins is for"):
        run_code(options, task)
