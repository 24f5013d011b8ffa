"""What is in the repository names no machine, and its pins name versions and nothing else."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.architecture.source import ROOT

_HOSTS = "|".join(map(re.escape, ("pypi" + ".org", "files.python" + "hosted.org", "registry.npm" + "js.org")))
_OPTIONS = "|".join(("--index" + "-url", "--extra-index" + "-url", "--find" + "-links", "--trusted" + "-host"))
UNWANTED = re.compile(rf"{_HOSTS}|{_OPTIONS}|[A-Z]:\\Users\\")
_PIN = re.compile(r"[a-z0-9][a-z0-9-]*==[0-9][A-Za-z0-9.+!]*")


def tracked_texts() -> dict[str, str]:
    """Return the text of every tracked file that is one, by its path from the root."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    texts = {}
    for name in filter(None, done.stdout.split("\0")):
        path = ROOT / name
        if path.is_file() and b"\0" not in (content := path.read_bytes()):
            texts[name] = content.decode("utf-8")
    assert len(texts) > 20
    return texts


def machine_paths() -> list[str]:
    """Return folders that only this machine has: where the checkout lies, and the account's home."""
    import os
    import pwd

    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    return [f"{path}/" for path in (ROOT, home) if len(path.parts) > 2]


def test_no_file_names_a_machine_or_a_registry() -> None:
    here = machine_paths()
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in tracked_texts().items()
        for number, line in enumerate(text.splitlines(), 1)
        if UNWANTED.search(line) or any(path in line for path in here)
    ]
    assert not found


def test_text_files_end_with_a_newline_and_hold_no_tabs_for_indent() -> None:
    for name, text in tracked_texts().items():
        assert not text or text.endswith("\n"), name
        assert "\r" not in text, name


def test_pins_are_plain() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert len(pins) > 30
    assert [line for line in pins if not _PIN.fullmatch(line)] == []
    assert pins == sorted(pins, key=lambda line: line.split("==")[0])
