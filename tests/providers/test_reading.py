from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.providers.reading import (
    as_count,
    as_items,
    as_mapping,
    as_text,
    dump_arguments,
    join_texts,
    make_call,
    parse_arguments,
    read_usage,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), JSON, max_size=4)
DEEP = '{"a":' * 100_000


@given(OBJECTS)
def test_an_object_is_taken_as_it_is_and_as_its_text(arguments: dict[str, Any]) -> None:
    assert parse_arguments(arguments) is arguments
    assert parse_arguments(json.dumps(arguments)) == arguments
    assert dump_arguments(arguments) == arguments


@pytest.mark.parametrize("nothing", [None, "", "  \n"])
def test_nothing_is_an_empty_object(nothing: object) -> None:
    assert parse_arguments(nothing) == {}


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1',
        '{"a": NaN}',
        '{"a": -Infinity}',
        "null",
        "[1]",
        "7",
        '"{}"',
        "{'a': 1}",
        '{"a": 1} {"b": 2}',
        "ls -la",
        DEEP,
    ],
)
def test_anything_else_stays_the_text_that_it_was(text: str) -> None:
    """Such a call must not run, so nothing may be made of it."""
    assert parse_arguments(text) == text
    assert dump_arguments(text) == {"unreadable_arguments": text}


@given(JSON.filter(lambda value: not isinstance(value, dict | str | None)))
def test_a_value_that_is_no_object_becomes_its_text(value: object) -> None:
    assert parse_arguments(value) == json.dumps(value)


@given(JSON)
def test_odd_shapes_never_raise(value: Any) -> None:
    assert isinstance(as_text(value), str)
    assert as_count(value) >= 0
    assert not as_mapping(value) or isinstance(value, dict)
    assert all(isinstance(item, dict) for item in as_items(value))
    call = make_call(value, value, value)
    assert isinstance(call.id, str)
    assert isinstance(call.name, str)


def test_texts_may_come_in_parts() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image"}, "b", {"text": "c"}, 7]
    assert as_text(parts) == "abc"


@pytest.mark.parametrize(("value", "count"), [(7, 7), (7.9, 7), (-1, 0), ("7", 0), (True, 0), (math.inf, 0)])
def test_counts(value: object, count: int) -> None:
    assert as_count(value) == count


def test_not_a_number_is_no_count() -> None:
    assert as_count(math.nan) == 0


@pytest.mark.parametrize(("given_id", "call_id"), [("x", "x"), ("", ""), (None, ""), (7, "7"), (True, ""), ({}, "")])
def test_ids_stay_as_they_came(given_id: object, call_id: str) -> None:
    assert make_call(given_id, "bash", "{}").id == call_id


def test_usage_names_its_cached_parts_only_where_there_are_any() -> None:
    assert read_usage(5, None, 0, None) == {"input_tokens": 5, "output_tokens": 0}
    assert read_usage(5, 2, 3, 1) == {
        "input_tokens": 5,
        "output_tokens": 2,
        "cache_read_tokens": 3,
        "cache_write_tokens": 1,
    }


def test_blank_texts_are_not_joined() -> None:
    assert join_texts(["a", " ", "", "b"]) == "a\n\nb"
