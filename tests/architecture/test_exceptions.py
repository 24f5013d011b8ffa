"""The tree of exceptions that the module draws is the tree that it defines."""

from __future__ import annotations

import ast
import re

from chimera import errors
from tests.architecture.source import parse, python_files, walk_scopes

# Exceptions that one package raises and catches itself. The list may shrink; a stale entry fails the test.
INTERNAL = {
    "chimera/hooks/process.py: HookFailed": "caught where hooks are run, which turns it into a verdict",
    "chimera/permissions/shell/findings.py: Unreadable": "caught by the parser, which gives up on the command line",
}

_ENTRY = re.compile(r"^(?P<indent>(?:\|   |    )*(?:[|`]-- )?)(?P<name>[A-Z]\w+)", re.MULTILINE)


def drawn(docstring: str) -> dict[str, str]:
    """Return the parent of each class in the drawing; the root's parent is `Exception`."""
    tree = docstring[docstring.index("\n\n") :]
    above: list[str] = ["Exception"]
    parents = {}
    for entry in _ENTRY.finditer(tree):
        depth = len(entry["indent"]) // 4
        above[depth + 1 :] = [entry["name"]]
        parents[entry["name"]] = above[depth]
    return parents


def defined() -> dict[str, str]:
    found = {name: value for name, value in vars(errors).items() if isinstance(value, type)}
    classes = {name: value for name, value in found.items() if value.__module__ == errors.__name__}
    return {name: value.__base__.__name__ for name, value in classes.items() if value.__base__ is not None}


def test_the_drawing_is_true() -> None:
    assert drawn(errors.__doc__ or "") == defined()


def test_every_exception_is_exported_and_documented() -> None:
    assert sorted(errors.__all__) == sorted(defined())
    assert all(getattr(errors, name).__doc__ for name in errors.__all__)


def test_every_exception_belongs_to_the_family() -> None:
    """Nothing outside `errors` starts a family of its own, but for what never leaves its package."""
    foreign = {"Exception", "BaseException", "RuntimeError"}
    found = {
        f"{file}: {node.name}"
        for file in python_files("chimera")
        if file != "chimera/errors.py"
        for _, node in walk_scopes(parse(file))
        if isinstance(node, ast.ClassDef) and any(isinstance(b, ast.Name) and b.id in foreign for b in node.bases)
    }
    assert found == INTERNAL.keys()
