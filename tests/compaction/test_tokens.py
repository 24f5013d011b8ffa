"""A rough measure that counts all of a message."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.compaction import estimate_tokens
from chimera.compaction.tokens import message_tokens
from chimera.types import Message, ToolCall


def test_four_characters_are_a_token() -> None:
    assert message_tokens(Message.user("")) == 4
    assert message_tokens(Message.user("x" * 400)) == 104
    assert estimate_tokens([]) == 0
    assert estimate_tokens([Message.user("x" * 400)] * 3) == 312


def test_calls_and_blocks_count() -> None:
    call = ToolCall("1", "write_file", {"path": "a", "content": "x" * 4000})
    assert message_tokens(Message.assistant("", [call])) > 1000
    assert message_tokens(Message("user", "", content_blocks=({"type": "text", "text": "x" * 400},))) == 104
    assert message_tokens(Message("user", "", content_blocks=({"type": "image", "data": "x" * 10**6},))) < 3000


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("ab c", max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab", max_size=5), inner, max_size=4),
)


@given(st.dictionaries(st.text("ab", max_size=5), VALUES, max_size=4))
def test_arguments_count_about_as_much_as_their_json(arguments: dict[str, object]) -> None:
    measured = (message_tokens(Message.assistant("", [ToolCall("1", "", arguments)])) - 4) * 4
    length = len(json.dumps(arguments))
    assert measured == pytest.approx(length, rel=0.6, abs=20)
