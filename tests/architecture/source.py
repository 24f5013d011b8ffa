"""Read the code of the repository as syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["FOLDERS", "ROOT", "Function", "functions", "module_names", "parse", "python_files", "walk_scopes"]

ROOT = Path(__file__).parents[2]
FOLDERS = ("benchmarks", "chimera", "examples", "scripts", "tests")
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Function:
    """A function or method: the file from the root, its dotted name in there, and how many lines it takes."""

    file: str
    name: str
    lines: int


@cache
def python_files(*folders: str) -> tuple[str, ...]:
    """Return the Python files below `folders` (all of ours by default), as paths from the root."""
    found = (path for folder in folders or FOLDERS for path in (ROOT / folder).rglob("*.py"))
    return tuple(sorted(path.relative_to(ROOT).as_posix() for path in found))


@cache
def parse(file: str) -> ast.Module:
    """Return the syntax tree of a file that is named from the root."""
    return ast.parse((ROOT / file).read_text(encoding="utf-8"), filename=file)


@cache
def module_names() -> dict[str, str]:
    """Map the dotted name of each module of the package to its file."""
    names = {}
    for file in python_files("chimera"):
        dotted = file.removesuffix(".py").replace("/", ".")
        names[dotted.removesuffix(".__init__")] = file
    return names


def walk_scopes(tree: ast.AST, scope: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Yield every node with the dotted name of the function or class that it stands in (empty at module level)."""
    for node in ast.iter_child_nodes(tree):
        yield scope, node
        below = f"{scope}.{node.name}".lstrip(".") if isinstance(node, _Definition) else scope
        yield from walk_scopes(node, below)


def functions(file: str) -> Iterator[Function]:
    """Yield the functions and methods of a file; decorators do not count as lines of theirs."""
    for scope, node in walk_scopes(parse(file)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{scope}.{node.name}".lstrip(".")
            yield Function(file, name, (node.end_lineno or node.lineno) - node.lineno + 1)
