"""`__all__` says what a module offers, completely: a public name is exported, or it starts with an underscore."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.source import module_names, parse

PUBLIC = sorted(name for name in module_names() if not any(part.startswith("_") for part in name.split(".")))


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


@pytest.mark.parametrize("module", PUBLIC)
def test_all_is_what_is_visible(module: str) -> None:
    """A package exports all that it shows. A module exports all that it defines, and may pass on what it imports."""
    file = module_names()[module]
    tree = parse(file)
    names, defined, shown = exported(tree), bound_names(tree, imports=False), bound_names(tree, imports=True)
    if names is None:
        assert not defined, "a module that offers names lists them in __all__"
        return
    owed = shown if file.endswith("__init__.py") else defined
    assert owed <= set(names)
    lazy = any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in tree.body)
    assert lazy or set(names) <= shown


@pytest.mark.parametrize("module", PUBLIC)
def test_names_are_listed_once_and_in_order(module: str) -> None:
    names = exported(parse(module_names()[module])) or []
    assert len(names) == len(set(names))


def test_the_search_finds_names_of_every_kind() -> None:
    values = "A = 1\nB: int = 2\nC, (D, *E) = x\n_p = 1\nT = TypeVar('T')\n"
    code = values + "def f(): pass\nasync def g(): pass\nclass K: pass\nfrom chimera.x import y as z"
    assert bound_names(ast.parse(code), imports=True) == {"A", "B", "C", "D", "E", "f", "g", "K", "z"}
    assert "z" not in bound_names(ast.parse(code), imports=False)
