"""What is built and installed is what the project says."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, distribution, entry_points
from pathlib import Path

import pytest

from tests.architecture.source import ROOT

_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)(?:\[(?P<extras>[^\]]*)\])?(?P<rest>.*)")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel, built as it is for a release."""
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return next(target.glob("*.whl"))


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"chimera", f"{'-'.join(wheel.stem.split('-')[:2])}.dist-info"}
    assert "chimera/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_entry_points_lead_somewhere() -> None:
    plugins = {point.name: point for point in entry_points(group="chimera.plugins")}
    assert {"plan-gate", "redactor", "delegate-spawner"} <= plugins.keys()
    for point in plugins.values():
        assert point.load().__name__.endswith("Plugin")


def test_the_whole_environment_is_pinned() -> None:
    """Everything that `make test` installs has its version in constraints.txt, and it is the version in use."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    used = {name: distribution(name).version for name in _closure("chimera-harness", {"dev"}) - {"chimera-harness"}}
    assert used.keys() <= pins.keys(), "run `make pin`"
    assert {name: pins[name] for name in used} == used, "run `make pin`"


def _closure(name: str, extras: set[str], seen: set[tuple[str, str]] | None = None) -> set[str]:
    """Return the installed distributions that `name` with its extras brings, itself included."""
    seen = set() if seen is None else seen
    for line in distribution(name).requires or []:
        match = _REQUIREMENT.match(line)
        assert match is not None
        marked = re.search(r"extra == ['\"]([^'\"]+)['\"]", match["rest"])
        wanted = _normal(match["name"])
        key = (wanted, match["extras"] or "")
        if (marked and marked[1] not in extras) or key in seen or not _installed(wanted):
            continue
        seen.add(key)
        _closure(wanted, set((match["extras"] or "").split(",")), seen)
    return {_normal(name)} | {found for found, _ in seen}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
