from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from chimera.cli.exits import OK
from chimera.cli.options import Kind
from chimera.cli.plugins_new import new_plugin
from chimera.errors import ConfigError
from chimera.plugins import PluginManager
from tests.cli.child import chimera


def test_every_skeleton_passes_its_own_test(tmp_path: Path) -> None:
    names = {kind: f"my-{kind}" for kind in Kind}
    for kind, name in names.items():
        assert new_plugin(name, kind, tmp_path) == OK
    folders = [f".chimera/plugins/{name}" for name in names.values()]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio", *folders],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, "6 passed" in done.stdout) == (0, True), done.stdout + done.stderr


@pytest.mark.parametrize("kind", Kind)
def test_a_skeleton_is_a_plugin_that_loads(tmp_path: Path, kind: Kind) -> None:
    new_plugin("two_words", kind, tmp_path)
    manager = PluginManager([tmp_path / ".chimera" / "plugins"])
    assert manager.load_all() != []
    assert type(manager.plugins["two_words"]).__name__ == "TwoWords"


def test_what_was_written_and_what_to_do_is_said(tmp_path: Path) -> None:
    done = chimera("plugins", "new", "house-rules", "--kind", "rewriter", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "wrote .chimera/plugins/house-rules/__init__.py\n"
        "wrote .chimera/plugins/house-rules/test_house_rules.py\n"
        "\n"
        "  pytest .chimera/plugins/house-rules\n"
        "  chimera plugins check .chimera/plugins/house-rules\n"
        "  chimera code --plugin house-rules --watch-plugins\n"
    )


@pytest.mark.parametrize("name", ["", "A", "1st", "-x", "x-", "a--b", "a/b", "../x", "a b", "a.b", "x\n"])
def test_names_that_are_none_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="made of small letters"):
        new_plugin(name, Kind.GATE, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / ".chimera" / "plugins"
    (folder / "notes").mkdir(parents=True)
    (folder / "single.py").write_text("x = 1\n")
    before = sorted(folder.rglob("*"))
    for name in ("notes", "single", "redactor"):
        with pytest.raises(ConfigError, match=f"there is a plugin '{name}' already"):
            new_plugin(name, Kind.GATE, tmp_path)
    assert sorted(folder.rglob("*")) == before
