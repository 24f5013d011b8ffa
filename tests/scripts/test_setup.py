"""What a person reads when their machine lacks something. Nothing here installs anything."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.architecture.source import ROOT

OLD = '#!/bin/sh\n[ "$1" = -V ] && echo "Python 3.8.1"\nexit 1\n'
NO_VENV = '#!/bin/sh\ncase "$2" in *ensurepip*) exit 1;; esac\nexit 0\n'


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the set-up script and nothing to set up."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "setup.sh", tmp_path / "scripts")
    return tmp_path


def set_up(checkout: Path, python: str) -> subprocess.CompletedProcess[str]:
    command = ["sh", "scripts/setup.sh", "all", python]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=30, check=False)


def program(folder: Path, text: str) -> str:
    path = folder / "python-to-try"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "needs Python 3.11 or newer, and none was found"),
        (OLD, "is Python 3.8.1"),
        (NO_VENV, "apt install python3-venv"),
    ],
)
def test_what_is_missing_is_named(checkout: Path, text: str | None, words: str) -> None:
    done = set_up(checkout, "" if text is None else program(checkout, text))
    assert done.returncode == 1
    assert words in done.stderr
    assert not (checkout / ".venv").exists()


def test_a_python_that_is_not_there_is_named(checkout: Path) -> None:
    done = set_up(checkout, "/nowhere/python3")
    assert done.returncode == 1
    assert "/nowhere/python3" in done.stderr


def test_continuous_integration_runs_what_people_run() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text(encoding="utf-8")
