"""Scrubbing values of any shape: nothing of a secret is left, nothing is edited, nothing else changes."""

from __future__ import annotations

import copy
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.errors import MisuseError
from chimera.frozen import FrozenDict, FrozenList, freeze
from chimera.secrets import SecretDetector, scrub_value
from chimera.types import Message, PendingApproval, StepResult, ToolCall, ToolResult

SECRET = "sk-abcdefgh123"
DETECTOR = SecretDetector()
Point = namedtuple("Point", "x y")
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from([SECRET, f"a {SECRET}!", "", "b"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from([SECRET, "k", "token-abcdefgh", "[redacted]"]), inner)
    ),
    max_leaves=20,
)


def clean(value: Any) -> Any:
    return scrub_value(value, DETECTOR.scrub)


@given(JSON)
def test_no_secret_is_left_and_the_original_is_untouched(value: Any) -> None:
    before = copy.deepcopy(value)
    result = clean(value)
    assert SECRET not in repr(result)
    assert "token-abcdefgh" not in repr(result)
    assert value == before
    assert (result is value) is (SECRET not in repr(value) and "token-abcdefgh" not in repr(value))


@given(JSON)
def test_only_texts_change(value: Any) -> None:
    def shape(item: Any) -> Any:
        if isinstance(item, dict):
            return [shape(part) for part in item.values()]
        if isinstance(item, list):
            return list(map(shape, item))
        return type(item) if isinstance(item, str) else (type(item), item)

    assert shape(clean(value)) == shape(value)


@given(JSON)
def test_read_only_values_stay_read_only(value: Any) -> None:
    frozen = freeze(value)
    result = clean(frozen)
    assert type(result) is type(frozen)
    assert result == clean(value)


def test_values_that_are_equal_and_not_the_same_stay_apart() -> None:
    assert repr(clean([True, 1, 1.0, SECRET])) == "[True, 1, 1.0, '[redacted]']"


def test_keys_that_become_equal_are_told_apart() -> None:
    value = {"sk-aaaaaaaa": 1, "sk-bbbbbbbb": 2, "[redacted]": 3}
    assert clean(value) == {"[redacted]": 1, "[redacted] (2)": 2, "[redacted] (3)": 3}


def test_containers_keep_their_kind() -> None:
    assert clean((SECRET, 1)) == ("[redacted]", 1)
    assert clean(Point(SECRET, 2)) == Point("[redacted]", 2)
    assert clean({SECRET}) == {"[redacted]"}
    assert type(clean(frozenset({SECRET}))) is frozenset
    assert type(clean(FrozenList([SECRET]))) is FrozenList
    assert type(clean(FrozenDict(a=SECRET))) is FrozenDict
    assert clean(OrderedDict(a=SECRET)) == {"a": "[redacted]"}
    assert clean(b"x sk-abcdefgh\xff y") == b"x [redacted]\xff y"
    assert clean(bytearray(b"sk-abcdefgh")) == bytearray(b"[redacted]")


class Colour(Enum):
    RED = "sk-colour-red"


@dataclass(frozen=True)
class Note:
    text: str
    at: datetime
    inner: list[Any] = field(default_factory=list)
    seen: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "seen", self.seen + 1)


def test_dataclasses_are_rebuilt_without_running_their_constructor() -> None:
    note = Note("x", datetime.now(UTC), [{SECRET: (SECRET,)}])
    result = clean(note)
    assert result.inner == [{"[redacted]": ("[redacted]",)}]
    assert (result.at, result.seen, type(result)) == (note.at, 1, Note)
    assert note.inner == [{SECRET: (SECRET,)}]
    assert clean(result) is result


def test_what_is_no_text_passes() -> None:
    for value in (1, 2.5, None, True, Colour.RED, datetime.now(UTC), Note, 3j):
        assert clean(value) is value


class Custom:
    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"Custom({self.text})"


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError(SECRET)


def test_other_objects_are_replaced_by_their_text_when_it_holds_a_secret() -> None:
    assert clean(Custom(SECRET)) == "Custom([redacted])"
    assert clean(ValueError(f"bad key {SECRET}")) == "bad key [redacted]"
    assert clean(Path("/tmp") / SECRET) == "/tmp/[redacted]"
    for harmless in (Custom("x"), ValueError("x"), Path("/tmp"), Unprintable(), object()):
        assert clean(harmless) is harmless


def test_the_values_of_a_conversation() -> None:
    call = ToolCall("c1", "bash", {"command": f"curl -H {SECRET}", "env": {SECRET: [1]}})
    message = Message("assistant", SECRET, (call,), None, ({"type": "text", "text": SECRET},))
    step = StepResult(message, [call], tool_results=[ToolResult("out", f"err {SECRET}", {"raw": SECRET})])
    result = clean(step)
    assert SECRET not in repr(result)
    assert type(result.message) is Message
    assert type(result.message.tool_calls[0].arguments) is FrozenDict
    assert result.tool_results[0].metadata == {"raw": "[redacted]"}
    assert clean(result) is result


def test_a_scrubbed_question_decides_the_question_that_was_asked() -> None:
    call = ToolCall("c1", "bash", {"command": SECRET})
    asked = PendingApproval(call, "bash", call.arguments, f"run {SECRET}?")
    shown = clean({"approval": asked})["approval"]
    assert isinstance(shown, PendingApproval)
    assert SECRET not in repr((shown, shown.tool_call, shown.arguments, shown.reason))
    assert not shown.decided
    shown.deny("not now")
    assert (asked.decided, asked.approved, asked.message) == (True, False, "not now")
    assert (shown.decided, shown.approved, shown.message) == (True, False, "not now")
    with pytest.raises(MisuseError):
        shown.approve()
    assert asked.tool_call is call


def test_a_question_without_secrets_is_shown_as_it_is() -> None:
    asked = PendingApproval(ToolCall("c1", "bash"), "bash", {}, "run?")
    assert clean(asked) is asked


def test_a_value_that_holds_itself_is_an_error_and_no_endless_loop() -> None:
    value: list[Any] = [SECRET]
    value.append(value)
    with pytest.raises(RecursionError):
        clean(value)
