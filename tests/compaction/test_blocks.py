"""Cutting a conversation never parts a call from its results."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.compaction.blocks import blocks_of, part
from chimera.types import Message, ToolCall
from tests.compaction.conversations import CONVERSATIONS, exchange, problems

SHARES = st.floats(0.05, 0.95)


def test_one_message_is_a_block_and_so_is_an_exchange() -> None:
    first, second = exchange(1, calls=3), exchange(2)
    blocks = blocks_of([Message.user("a"), *first, *second, Message.assistant("b")])
    assert [len(block.messages) for block in blocks] == [1, 4, 2, 1]


def test_what_is_said_between_a_call_and_its_result_belongs_to_them() -> None:
    call, first, second = exchange(1, calls=2)
    blocks = blocks_of([call, first, Message.user("wait"), second, Message.user("go on")])
    assert [len(block.messages) for block in blocks] == [4, 1]
    assert blocks[0].has_user


def test_a_result_that_answers_nothing_is_left_out() -> None:
    stray = Message.tool("unknown", "x")
    assert [block.messages for block in blocks_of([stray, Message.user("a"), stray])] == [(Message.user("a"),)]


def test_repeated_ids_do_not_join_exchanges() -> None:
    again = [Message.assistant("", [ToolCall("same", "search")]), Message.tool("same", "x")]
    assert len(blocks_of(again * 3)) == 3


@given(CONVERSATIONS)
def test_every_block_is_whole(messages: list[Message]) -> None:
    for block in blocks_of(messages):
        assert problems(block.messages) == []


@given(CONVERSATIONS, SHARES)
def test_parting_loses_nothing_and_keeps_the_order(messages: list[Message], keep: float) -> None:
    parts = part(messages, keep)
    spoken = [message for message in messages if message.role != "system"]
    assert list(parts.system) == [message for message in messages if message.role == "system"]
    assert sorted(map(repr, (*parts.older, *parts.asked, *parts.recent))) == sorted(map(repr, spoken))
    assert list(parts.recent) == spoken[len(spoken) - len(parts.recent) :]
    for piece in (parts.older, parts.asked, parts.recent):
        assert problems(piece) == []


@pytest.mark.parametrize(("keep", "kept"), [(0.05, 1), (0.5, 5), (0.95, 9)])
def test_the_share_is_kept(keep: float, kept: int) -> None:
    parts = part([Message.user("x" * 96)] * 10, keep)
    assert len(parts.recent) == kept
