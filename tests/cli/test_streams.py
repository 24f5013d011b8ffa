from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from chimera.cli.exits import FAILED, OK
from tests.cli.child import command, environment, script

FULL = Path("/dev/full")
CODE = ("code", "-p", "hi", "--no-session")


def led(redirection: str, *words: str, cwd: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run the program with its standard streams led to where `redirection` says."""
    line = f"{shlex.join(command(*words))} {redirection}"
    return subprocess.run(
        ["bash", "-c", line],
        cwd=cwd,
        env=environment(**changes),
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


@pytest.mark.parametrize("words", [("plugins", "list"), ("--version",)], ids=" ".join)
def test_without_a_standard_output_nothing_is_begun(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = led(">&-", *words, cwd=tmp_path)
    assert done.returncode == FAILED
    assert done.stderr == "chimera: the standard output is closed, so there is nowhere to write to\n"


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [("plugins", "list"), ("--version",), CODE, (*CODE, "--output", "json")])
def test_output_that_cannot_be_written_is_told_in_a_line(
    tmp_path: Path, words: tuple[str, ...], unbuffered: str
) -> None:
    more = ("--model", script(tmp_path, ["done"])) if words[0] == "code" else ()
    done = led(f">{FULL}", *words, *more, cwd=tmp_path, PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == FAILED
    assert done.stderr == "chimera: the output cannot be written: No space left on device\n"


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
def test_notes_that_cannot_be_written_end_the_run(tmp_path: Path) -> None:
    steps = [{"tool_calls": [{"name": "list_files", "arguments": {}}]}, "done"]
    done = led(f"2>{FULL}", *CODE, "--model", script(tmp_path, steps), cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (FAILED, "", "")


def test_closed_streams_are_not_taken_for_files_that_are_opened_next(tmp_path: Path) -> None:
    model = script(tmp_path, [{"tool_calls": [{"name": "list_files", "arguments": {}}]}, "done"])
    done = led("<&- 2>&-", "code", "-p", "hi", "--model", model, cwd=tmp_path, XDG_DATA_HOME=str(tmp_path / "data"))
    assert (done.returncode, done.stdout) == (OK, "done\n")
    records = [file.read_text("utf-8") for file in (tmp_path / "data").rglob("*.jsonl")]
    assert records
    assert all(json.loads(line) for record in records for line in record.splitlines())
