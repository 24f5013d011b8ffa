"""The import contracts of pyproject.toml cover the whole package, and they break when code breaks them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from tests.architecture.source import ROOT, module_names

# Modules that stand on no floor, and why. The list may shrink; an entry of a module that is gone fails the test.
ON_NO_FLOOR = {
    "chimera": "the front door, which opens every floor when it is asked to",
}


def contracts() -> dict[str, dict[str, Any]]:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {contract["id"]: contract for contract in config["tool"]["importlinter"]["contracts"]}


def floors() -> set[str]:
    return {name for layer in contracts()["floors"]["layers"] for name in re.findall(r"[\w.]+", layer)}


def test_every_module_stands_on_a_floor() -> None:
    stand = floors()
    lost = {
        name for name in module_names() if not any(name == floor or name.startswith(f"{floor}.") for floor in stand)
    }
    assert lost == ON_NO_FLOOR.keys()


def test_every_folder_but_the_screen_is_kept_from_textual() -> None:
    kept = {*contracts()["no-screen"]["source_modules"], *contracts()["core-alone"]["source_modules"]}
    folders = {".".join(name.split(".")[:2]) for name in module_names() if name.count(".") >= 1}
    packages = {name for name in folders if module_names()[name].endswith("__init__.py")}
    assert packages - {"chimera.tui"} <= kept


def test_the_contracts_break_when_code_breaks_them(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "chimera", tmp_path / "chimera", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    _append(tmp_path / "chimera/core/tool.py", "def _late() -> None:\n    import chimera.plugins\n")
    _append(tmp_path / "chimera/hooks/__init__.py", "import chimera.tools\nimport textual\n")
    _append(tmp_path / "chimera/tools/__init__.py", "import chimera.hooks\n")
    _append(tmp_path / "chimera/providers/base.py", "import chimera.core.tool\n")
    done = _lint_imports(tmp_path)
    verdicts = dict(re.findall(r"^(.+?) (KEPT|BROKEN)\b", done.stdout, re.MULTILINE))
    assert verdicts == {contract["name"]: "BROKEN" for contract in contracts().values()}
    assert done.returncode == 1


def _append(path: Path, code: str) -> None:
    path.write_text(path.read_text(encoding="utf-8") + "\n" + code, encoding="utf-8")


def _lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)
