"""`chimera plugins check` in processes of its own: plugins that end theirs, or never let it end."""

from __future__ import annotations

from pathlib import Path

import pytest

from chimera.cli.exits import FAILED, OK
from chimera.cli.options import Kind
from chimera.cli.plugins_check import check_plugin
from chimera.cli.plugins_new import new_plugin
from chimera.errors import PluginError
from tests.cli.child import chimera

PLUGIN = """\
import os, threading, time
from chimera.plugins import BasePlugin

class Tried(BasePlugin):
    name = "tried"

    def register_interceptors(self, registry):
        registry.register_interceptor("context", self.decide)
        {activating}

    def decide(self, messages):
        {deciding}
"""


def write(folder: Path, *, activating: str = "pass", deciding: str = "return None") -> Path:
    path = folder / "tried.py"
    path.write_text(PLUGIN.format(activating=activating, deciding=deciding))
    return path


def test_a_sound_plugin_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new_plugin("my-gate", Kind.GATE, tmp_path)
    capsys.readouterr()
    assert check_plugin(tmp_path / ".chimera/plugins/my-gate") == OK
    assert capsys.readouterr().out == (
        "my-gate\n"
        "registers:\n"
        "  tool_call         my-gate: MyGate.gate\n"
        "decides:\n"
        "  tool_call: blocked bash: my-gate: 'rm -rf' is not allowed here\n"
        "✓ nothing is wrong with it\n"
    )


def test_the_program_exits_with_1_for_a_problem(tmp_path: Path) -> None:
    write(tmp_path, deciding="print('seen'); return 0")
    done = chimera("plugins", "check", "tried.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (FAILED, "")
    assert "✗ context: interceptor error: Tried.decide: TypeError: an interceptor returns" in done.stdout
    assert "seen" not in done.stdout


def test_a_plugin_that_ends_its_process_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_plugin(write(tmp_path, deciding="print('last words', flush=True); os._exit(7)")) == FAILED
    told = " ".join(capsys.readouterr().out.split())
    assert "✗ its process ended with code 7 while a scripted conversation ran under it: last words" in told
    assert "registers: context" in told


def test_a_plugin_that_never_ends_is_given_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_plugin(write(tmp_path, deciding="time.sleep(600)"), seconds=3) == FAILED
    told = " ".join(capsys.readouterr().out.split())
    assert "✗ it took more than 3 s; given up while " in told


def test_a_thread_that_is_left_behind_does_not_hold_the_check_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, activating="threading.Thread(target=time.sleep, args=(600,), name='left').start()")
    assert check_plugin(path) == FAILED
    assert "✗ left behind: thread left" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["missing.py", "notes.txt", "empty"])
def test_what_is_no_plugin_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "empty").mkdir()
    with pytest.raises(PluginError, match="is no plugin"):
        check_plugin(tmp_path / name)
