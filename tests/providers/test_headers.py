from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.errors import ConfigError
from chimera.providers.headers import ambient_headers, checked_headers, secrets_in

NAMES = st.text("abcABC-_123", min_size=1, max_size=8)
VALUES = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=20)


@given(st.lists(st.tuples(NAMES, VALUES)))
def test_one_value_a_name_and_the_last_one_wins(pairs: list[tuple[str, str]]) -> None:
    given_headers = dict(pairs)
    checked = checked_headers(given_headers)
    lowered = [name.lower() for name in checked]
    assert len(lowered) == len(set(lowered))
    expected = {name.lower(): value.strip() for name, value in given_headers.items()}
    assert {name.lower(): value for name, value in checked.items()} == expected


@given(VALUES)
def test_a_value_is_a_text_that_does_not_print_itself(value: str) -> None:
    shy = checked_headers({"X": value})["X"]
    assert shy == value.strip()
    assert json.loads(json.dumps(shy)) == shy
    assert repr({"X": shy}) == "{'X': '[hidden]'}"


@pytest.mark.parametrize(
    "headers",
    [
        {"X-A": "secret\nX-B: 1"},
        {"X-A": "secret\rmore"},
        {"X-A": "secret\0"},
        {"X-A": "secret “quoted”"},
        {"X-A": 7},
        {"X-A": None},
        {"X-A": b"secret"},
        {"": "secret"},
        {"X A": "secret"},
        {"X-A:": "secret"},
        {"X-Ä": "secret"},
        {7: "secret"},
        [("X-A", "secret")],
    ],
)
def test_what_http_cannot_carry_is_refused_without_showing_it(headers: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        checked_headers(headers)
    assert "secret" not in str(caught.value)


def test_a_newline_at_the_end_of_a_pasted_key_is_taken_off() -> None:
    assert checked_headers({"Authorization": "Bearer key\n"}) == {"Authorization": "Bearer key"}


def test_ambient_headers_are_lines() -> None:
    assert ambient_headers("") == {}
    assert ambient_headers("A: 1\nb:2 \nno colon\n\nC: x:y") == {"A": "1", "b": "2", "C": "x:y"}


def test_secrets_are_values_and_credentials_longest_first() -> None:
    own, other = {"Authorization": "Bearer key-12345", "X-One": "1"}, {"Authorization": "[redacted]"}
    assert secrets_in(own, other) == ("Bearer key-12345", "[redacted]", "key-12345")
