"""Checking the effective arguments against a tool's JSON Schema."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.core.arguments import argument_problem, validator_for
from chimera.errors import MisuseError
from chimera.frozen import freeze

SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1},
        "mode": {"enum": ["r", "w"]},
        "lines": {"type": "array", "items": {"type": "integer"}},
        "options": {"type": "object", "properties": {"deep": {"type": "boolean", "default": True}}},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def problem(schema: Any, arguments: Any) -> str | None:
    return argument_problem(validator_for("t", schema), freeze(arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "x"},
        {"path": "x", "mode": "r", "lines": [1, 2], "options": {}},
        {"path": "é", "options": {"deep": False}},
    ],
)
def test_good_arguments_pass_and_stay_as_they_are(arguments: Any) -> None:
    before = repr(arguments)
    assert problem(SCHEMA, arguments) is None
    assert repr(arguments) == before, "no default is filled in: what was judged is what runs"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "the arguments must contain ['path'] properties"),
        ({"path": ""}, "path must be longer than or equal to 1 characters"),
        ({"path": 1}, "path must be string"),
        ({"path": "x", "mode": "rw"}, "mode must be one of ['r', 'w']"),
        ({"path": "x", "lines": [1, "two"]}, "lines[1] must be integer"),
        ({"path": "x", "options": {"deep": 1}}, "options.deep must be boolean"),
        ({"path": "x", "extra": 1}, "the arguments must not contain {'extra'} properties"),
    ],
)
def test_the_problem_is_named(arguments: Any, text: str) -> None:
    assert problem(SCHEMA, arguments) == text


@given(st.text(min_size=4).filter(lambda text: text.isalnum()))
def test_no_value_of_the_arguments_is_in_the_text(secret: str) -> None:
    secret = f"s3cret-{secret}"
    for schema in ({"type": "integer"}, {"enum": ["a"]}, {"const": 1}, {"maxLength": 3}, {"pattern": "^x$"}):
        text = problem({"type": "object", "properties": {"a": schema}}, {"a": secret})
        assert text
        assert secret not in text


@pytest.mark.parametrize(
    "schema",
    [
        {"type": 7},
        {"type": "object", "properties": {"a": {"$ref": "https://example.com/schema.json"}}},
        {"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}},
        {"type": "object", "properties": {"a": {"pattern": "("}}},
        {"a": object()},
    ],
)
def test_a_schema_that_is_none_is_the_tools_fault(schema: Any) -> None:
    with pytest.raises(MisuseError, match="the parameters of the tool 't' are no usable JSON Schema"):
        validator_for("t", schema)


def test_nothing_is_fetched_for_a_schema() -> None:
    """`tests/conftest.py` fails a test that leaves the machine; the schema is refused before it comes to that."""
    with pytest.raises(MisuseError, match="cannot refer to http"):
        validator_for("t", {"$ref": "http://127.0.0.1:1/x.json"})


def test_a_schema_may_refer_to_itself() -> None:
    tree = {
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"$ref": "#"}}, "name": {"type": "string"}},
    }
    assert problem(tree, {"children": [{"children": []}, {"name": "x"}]}) is None
    assert problem(tree, {"children": [{"name": 1}]}) is not None


def test_what_the_check_itself_fails_on_does_not_run() -> None:
    def broken(_arguments: Any) -> None:
        raise RecursionError("too deep")

    assert argument_problem(broken, {}) == "they could not be checked (RecursionError)"


def test_equal_schemas_are_compiled_once() -> None:
    assert validator_for("a", dict(SCHEMA)) is validator_for("b", dict(SCHEMA))
