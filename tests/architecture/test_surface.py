"""The names that users import are there, and take and hold what users rely on."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import textwrap
from typing import Any

import pytest

from tests.architecture.source import module_names
from tests.architecture.surface import PENDING, SURFACE, Name

ROWS = [pytest.param(module, name, id=f"{module}.{name.name}") for module, names in SURFACE.items() for name in names]
_NAMED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@pytest.mark.parametrize(("module", "name"), ROWS)
def test_the_name_is_there(module: str, name: Name) -> None:
    if module in PENDING:
        pytest.skip(PENDING[module])
    owner = importlib.import_module(module)
    value = getattr(owner, name.name)
    assert name.name in owner.__all__
    assert not [*field_problems(value, name.fields), *parameter_problems(value, name.takes), *missing(value, name.has)]
    for method, parameters in name.calls.items():
        assert not parameter_problems(getattr(value, method), f"self {parameters}"), method


def test_nothing_that_exists_is_pending() -> None:
    assert not PENDING.keys() & module_names().keys(), "these exist now; take them off the list"
    assert PENDING.keys() <= SURFACE.keys()


def field_problems(value: Any, wanted: str) -> list[str]:
    """Say what is wrong with the fields of a dataclass: the wanted ones come first, and others have defaults."""
    if not wanted:
        return []
    fields = [field for field in dataclasses.fields(value) if field.init]
    names = wanted.split()
    found = [field.name for field in fields[: len(names)]]
    absent = dataclasses.MISSING
    strict = [f.name for f in fields[len(names) :] if f.default is absent and f.default_factory is absent]
    return [f"fields {found}, not {names}"] * (found != names) + [f"{name} needs a default" for name in strict]


def parameter_problems(value: Any, wanted: str) -> list[str]:
    """Say what is wrong with the parameters: the positional ones come in order, and others have defaults."""
    if not wanted:
        return []
    parameters = inspect.signature(value).parameters
    before, _, after = (part.split() for part in wanted.partition("*"))
    positional = [name for name, parameter in parameters.items() if parameter.kind in _NAMED]
    known = {*before, *after}
    strict = [
        name
        for name, parameter in parameters.items()
        if name not in known and parameter.default is parameter.empty and parameter.kind not in _VARIADIC
    ]
    problems = [] if positional[: len(before)] == before else [f"positional {positional}, not {before}"]
    problems += [f"no parameter {name}" for name in after if name not in parameters]
    return problems + [f"{name} needs a default" for name in strict]


_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def missing(value: Any, wanted: str) -> list[str]:
    """Name the wanted attributes that a class neither has, nor declares, nor sets on itself."""
    if not wanted:
        return []
    bases = [base for base in inspect.getmro(value) if base.__module__.split(".")[0] in ("chimera", "tests")]
    found = {name for base in bases for name in {*inspect.get_annotations(base), *_set_on_self(base)}}
    return [f"no attribute {name}" for name in wanted.split() if not hasattr(value, name) and name not in found]


def _set_on_self(cls: type) -> set[str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"
    }


@dataclasses.dataclass
class _Sample:
    first: int
    second: str = ""
    extra: int = 0

    def grow(self) -> None:
        self.grown = self.unset = True


def test_fields_are_compared_in_order() -> None:
    assert not field_problems(_Sample, "first second")
    assert field_problems(_Sample, "second first")
    assert field_problems(_Sample, "first missing")
    assert field_problems(dataclasses.make_dataclass("S", [("a", int), ("b", int)]), "a")


def test_parameters_are_compared() -> None:
    def sample(a: int, b: int = 0, *, c: int = 0, **_more: Any) -> None: ...

    assert not parameter_problems(sample, "a b")
    assert not parameter_problems(sample, "a * b c")
    assert parameter_problems(sample, "b a")
    assert parameter_problems(sample, "a * d")
    assert parameter_problems(sample, "* c")


def test_attributes_are_found_where_they_are_declared() -> None:
    assert not missing(_Sample, "first second grow grown unset")
    assert missing(_Sample, "third")
