"""The little repository that the demo works on: a copy of the bundled files in a temporary folder."""

from __future__ import annotations

import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

__all__ = ["CODE", "SECRETS", "TESTS", "Repository", "SuiteRun"]

CODE, TESTS, SECRETS = "shop/cart.py", "tests/test_cart.py", "deploy/staging.env"
_SUFFIX = ".txt"  # keeps the files of the repository out of the way of whoever looks for Python files


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """How the repository's tests went: whether all passed, and the last line that they printed."""

    passed: bool
    summary: str


@dataclass(frozen=True, slots=True)
class Repository:
    """A fresh copy in `root`. The credential in it is made up anew for every copy, and opens nothing."""

    root: Path
    credential: str = field(default_factory=lambda: f"sk-{secrets.token_hex(16)}")

    def create(self) -> None:
        """Write every file."""
        for name, text in self._bundled().items():
            place = self.root / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")

    def read(self, name: str) -> str:
        """Return what a file holds now."""
        return (self.root / name).read_text(encoding="utf-8")

    def original(self, name: str) -> str:
        """Return what a file held when it was created."""
        return self._bundled()[name]

    def exists(self, name: str) -> bool:
        return (self.root / name).is_file()

    def run_tests(self) -> SuiteRun:
        """Run the tests as they are on disk now, in a process of their own, past the agent."""
        command = [sys.executable, "-B", "-m", "unittest"]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, timeout=60, check=False)
        ran = re.search(r"^Ran \d+ tests?", done.stderr, re.MULTILINE)
        lines = done.stderr.strip().splitlines() or ["no output"]
        return SuiteRun(done.returncode == 0, f"{ran[0]}: {lines[-1]}" if ran else lines[-1])

    def _bundled(self) -> dict[str, str]:
        placeholders = {"{{CREDENTIAL}}": self.credential, "{{PYTHON}}": sys.executable}
        found = {}
        for name, text in _texts(files("chimera.cli.demo") / "repo"):
            for placeholder, value in placeholders.items():
                text = text.replace(placeholder, value)
            found[name] = text
        return found


def _texts(folder: Traversable, above: str = "") -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _texts(entry, f"{above}{entry.name}/")
        elif entry.name.endswith(_SUFFIX):
            yield above + entry.name.removesuffix(_SUFFIX), entry.read_text(encoding="utf-8")
