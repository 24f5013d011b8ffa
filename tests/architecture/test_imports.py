"""Importing Chimera is quick and silent, and third-party packages come in where they are used."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.architecture.source import ROOT, module_names, parse, python_files

# Heavy: each of them costs more than all of `import chimera` may.
HEAVY = frozenset({
    "anthropic", "fastjsonschema", "genai_prices", "httpx", "httpx2", "jsonschema", "openai", "opentelemetry",
    "pathspec", "pydantic", "requests", "rich", "textual", "typer", "watchfiles",
})  # fmt: skip
ON_A_TERMINAL = frozenset({"rich", "typer"})
"""What the command line may load to print its help."""


def loaded_by(statement: str, tmp_path: Path) -> set[str]:
    """Return the top-level packages that are loaded after `statement` ran in a fresh interpreter."""
    code = f"import sys\n{statement}\nprint('\\n' + ' '.join({{name.split('.')[0] for name in sys.modules}}))"
    done = _python(code, tmp_path)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def _python(code: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    "statement",
    [
        "import chimera",
        "from chimera.core import ReAct, AgentLoop, LoopConfig, Interceptors, BaseTool, tool",
        "from chimera.plugins import BasePlugin, PluginManager",
    ],
)
def test_importing_loads_nothing_heavy(statement: str, tmp_path: Path) -> None:
    assert not loaded_by(statement, tmp_path) & HEAVY


def test_help_loads_no_sdk_and_no_screen(tmp_path: Path) -> None:
    code = (
        "from chimera.cli.main import main\n"
        "sys.argv = ['chimera', '--help']\n"
        "try: main()\nexcept SystemExit as end: assert not end.code, end.code"
    )
    assert not loaded_by(code, tmp_path) & (HEAVY - ON_A_TERMINAL)


def test_importing_any_module_does_nothing_else(tmp_path: Path) -> None:
    """No output, no thread, no file, no change of the process: a module that is imported only defines things."""
    present = [name for name in module_names() if not name.endswith("__main__") and not name.startswith("chimera.tui")]
    code = f"""
import importlib, os, signal, sys, threading
before = dict(os.environ), os.getcwd(), signal.getsignal(signal.SIGINT), list(sys.path)
for name in {present!r}:
    importlib.import_module(name)
assert (dict(os.environ), os.getcwd(), signal.getsignal(signal.SIGINT), list(sys.path)) == before
assert threading.active_count() == 1, threading.enumerate()
"""
    done = _python(code, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not list(tmp_path.iterdir())


def third_party(tree: ast.Module) -> Iterator[str]:
    """Yield the top-level name of every absolute import, at any depth, that is neither ours nor Python's."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                names = [alias.name for alias in aliases]
            case ast.ImportFrom(module=str(module), level=0):
                names = [module]
            case _:
                continue
        yield from ({name.split(".")[0] for name in names} - {"chimera", "__future__"} - sys.stdlib_module_names)


def declared() -> set[str]:
    """Return the distributions that the package asks for, in any of its extras but `dev`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(line for extra in extras if extra != "dev" for line in extras[extra])]
    names = [re.split(r"[^A-Za-z0-9_.-]", line)[0] for line in wanted]
    return {_normal(name) for name in names}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_third_party_import_is_declared() -> None:
    distributions = packages_distributions()
    for file in python_files("chimera"):
        for package in third_party(parse(file)):
            providers = {_normal(name) for name in distributions.get(package, [package])}
            assert providers & declared(), f"{file} imports {package}, which pyproject.toml does not ask for"


def test_every_dependency_is_used() -> None:
    distributions = packages_distributions()
    imported = {package for file in python_files("chimera") for package in third_party(parse(file))}
    used = {_normal(name) for package in imported for name in distributions.get(package, [package])}
    assert not declared() - used - {"chimera-harness"}
