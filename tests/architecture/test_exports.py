"""`__all__` says what a module offers: in public modules completely, and nowhere more than there is."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.source import module_names, parse
from tests.architecture.surface import SURFACE

PACKAGES = {name for name, file in module_names().items() if file.endswith("__init__.py")}
PUBLIC = sorted((PACKAGES | SURFACE.keys()) & module_names().keys())
"""Packages, and the modules that users import. In the other modules `__all__` may leave out what is for neighbours."""


def bound_names(tree: ast.Module, *, imports: bool) -> set[str]:
    """Return the public names that a module defines at its top level, with those that it imports from Chimera."""
    found: set[str] = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Assign(value=ast.Call(func=ast.Name(id="TypeVar" | "ParamSpec"))):
                continue
            case ast.Assign(targets=targets):
                found.update(leaf.id for target in targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case ast.ImportFrom(module=str(source), names=aliases) if imports and source.split(".")[0] == "chimera":
                found.update(alias.asname or alias.name for alias in aliases)
    return {name for name in found if not name.startswith("_")}


def exported(tree: ast.Module) -> list[str] | None:
    """Return `__all__`, or None where there is none. It must be a plain list of texts, readable without running."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            names: list[str] = ast.literal_eval(node.value)
            return names
    return None


def lazily_loaded(tree: ast.Module) -> set[str]:
    """Return the texts in a module that loads names when they are asked for; its names are among them."""
    if not any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in tree.body):
        return set()
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


@pytest.mark.parametrize("module", PUBLIC)
def test_all_is_what_is_visible(module: str) -> None:
    """A package exports all that it shows. A module exports all that it defines, and may pass on what it imports."""
    file = module_names()[module]
    tree = parse(file)
    names = set(exported(tree) or [])
    shown = bound_names(tree, imports=True)
    owed = shown if file.endswith("__init__.py") else bound_names(tree, imports=False)
    assert not owed - names, "export these, or start them with an underscore"
    assert not names - shown - lazily_loaded(tree), "these are exported and not there"


@pytest.mark.parametrize("module", sorted(module_names().keys() - set(PUBLIC)))
def test_other_modules_export_what_they_have(module: str) -> None:
    tree = parse(module_names()[module])
    assert not set(exported(tree) or []) - bound_names(tree, imports=True) - lazily_loaded(tree)


@pytest.mark.parametrize("module", sorted(module_names()))
def test_names_are_listed_once(module: str) -> None:
    names = exported(parse(module_names()[module])) or []
    assert len(names) == len(set(names))


def test_the_search_finds_names_of_every_kind() -> None:
    values = "A = 1\nB: int = 2\nC, (D, *E) = x\n_p = 1\nT = TypeVar('T')\n"
    code = values + "def f(): pass\nasync def g(): pass\nclass K: pass\nfrom chimera.x import y as z"
    assert bound_names(ast.parse(code), imports=True) == {"A", "B", "C", "D", "E", "f", "g", "K", "z"}
    assert "z" not in bound_names(ast.parse(code), imports=False)
