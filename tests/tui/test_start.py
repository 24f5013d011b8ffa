"""The program as a person runs it: the real command on a real terminal, by keys and by what stands on the screen."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from chimera.assembly.settings import load_settings
from chimera.tui.start import is_light
from tests.cli.child import Terminal, command, environment, script

PATIENCE = 40.0
CHECK = {"tool_calls": [{"name": "bash", "arguments": {"command": "echo from-the-shell"}}]}
SLOW = {"tool_calls": [{"name": "bash", "arguments": {"command": "until test -e go-on; do sleep 0.05; done"}}]}


class Tmux:
    """A terminal of 80 x 24 that can be looked at."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._socket = str(folder / "tmux.socket")
        self._begun = False

    def run(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", self._socket, "-f", "/dev/null", *words],
            capture_output=True, text=True, check=True, timeout=PATIENCE, env=environment(TERM="xterm-256color"),
        )  # fmt: skip
        return done.stdout

    def start(self, *words: str) -> None:
        line = " ".join(f"'{word}'" for word in command(*words))
        keeping = f"cd '{self.folder}' && {line}; echo exit-code $?; exec cat"
        shell = f'sh -c "{keeping}"'
        if self._begun:
            self.run("respawn-pane", "-k", shell)
        else:
            self.run("new-session", "-d", "-x", "80", "-y", "24", shell)
        self._begun = True

    def keys(self, *keys: str) -> None:
        self.run("send-keys", *keys)

    def say(self, text: str) -> None:
        self.run("send-keys", "-l", text)
        self.keys("Enter")

    def expect(self, pattern: str) -> str:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            screen = self.run("capture-pane", "-p")
            if re.search(pattern, screen):
                return screen
            time.sleep(0.05)
        raise AssertionError(f"{pattern!r} never came; the screen is\n{screen}")

    def close(self) -> None:
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], capture_output=True, check=False, timeout=PATIENCE)


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    terminal = Tmux(tmp_path)
    yield terminal
    terminal.close()


@pytest.mark.tmux
def test_a_whole_task_with_an_approval_a_steer_and_a_resume(tmux: Tmux, tmp_path: Path) -> None:
    model = script(tmp_path, [CHECK, SLOW, "All is done."])
    tmux.start("code", "--model", model)
    tmux.expect("Ctrl-T decisions")
    tmux.say("do the whole task")
    tmux.expect("(?s)May this run.*echo from-the-shell.*Esc: no")
    tmux.keys("p")
    tmux.expect("(?s)May this run.*until test -e go-on.*Esc: no")
    tmux.keys("y")
    tmux.expect("● bash  until test")
    tmux.say("be careful")
    tmux.expect("» be careful  \\(read before the next answer\\)")
    (tmp_path / "go-on").write_text("")
    screen = tmux.expect("(?s)All is done..*Ctrl-T decisions")
    assert "» be careful" in screen
    tmux.keys("C-t")
    assert re.search(r"approved\s+bash", tmux.expect("2 decisions"))
    tmux.keys("Escape")
    tmux.expect("All is done.")
    tmux.keys("C-d")
    tmux.expect("exit-code 0")
    assert load_settings(tmp_path).permissions.allow == ("bash(echo from-the-shell)",)
    model = script(tmp_path, ["I remember."])
    tmux.start("code", "--model", model, "--resume")
    tmux.expect("All is done.")
    tmux.say("what did we do?")
    tmux.expect("(?s)I remember..*Ctrl-T decisions")
    tmux.keys("C-c")
    tmux.expect("exit-code 0")


def test_the_full_screen_opens_and_a_signal_closes_it(tmp_path: Path) -> None:
    with Terminal("code", "--model", script(tmp_path, ["x"]), cwd=tmp_path, COLORFGBG="0;15") as terminal:
        terminal.expect("Ctrl-T decisions")
        os.kill(terminal.pid, signal.SIGTERM)
        assert terminal.end() == 143


def test_plain_is_line_by_line(tmp_path: Path) -> None:
    with Terminal("code", "--plain", "--model", script(tmp_path, ["Hello."]), cwd=tmp_path) as terminal:
        terminal.expect("> ")
        terminal.enter("hi")
        terminal.expect("Hello.")
        terminal.enter("/exit")
        assert terminal.end() == 0
    assert "Ctrl-T" not in terminal.text


def test_a_race_on_the_screen_leaves_nothing_behind(tmp_path: Path) -> None:
    project, races = tmp_path / "shop", tmp_path / "races"
    project.mkdir()
    model = script(tmp_path, ["I have done it."])
    words = ("code", "--models", f"{model},{model}", "--check", "true", "--yolo")
    with Terminal(*words, cwd=project, CHIMERA_RACE_DIR=str(races)) as terminal:
        terminal.expect("Ctrl-T decisions")
        terminal.enter("race")
        terminal.press("\r")
        terminal.expect("passed")
        terminal.expect("/apply does it")
        assert list(races.glob("race-*"))
        os.kill(terminal.pid, signal.SIGTERM)
        assert terminal.end() == 143
    assert not list(races.glob("race-*"))


@pytest.mark.parametrize(
    ("colours", "light"), [("0;15", True), ("0;7", True), ("15;0", False), ("15;default;0", False), ("", False)]
)
def test_a_light_terminal_is_known_by_what_it_says(colours: str, light: bool) -> None:
    assert is_light(colours) is light


def test_warnings_come_into_the_transcript(tmp_path: Path) -> None:
    """What would go to standard error is covered by the screen there."""
    words = ("code", "--model", script(tmp_path, ["x"]), "--plugin", "loud")
    plugins = tmp_path / ".chimera" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "loud.py").write_text(LOUD)
    with Terminal(*words, cwd=tmp_path) as terminal:
        terminal.expect("Ctrl-T decisions")
        terminal.enter("/shout")
        terminal.press("\r")
        terminal.expect("! something is wrong")
        os.kill(terminal.pid, signal.SIGTERM)
        assert terminal.end() == 143


LOUD = """
import logging
from chimera.plugins import BasePlugin


class Loud(BasePlugin):
    name = "loud"

    def register_commands(self, registry):
        registry.register_command("shout", self.shout, help="shouts")

    def shout(self, rest):
        logging.getLogger("chimera.plugins").warning("something is wrong")
        return "said"
"""
