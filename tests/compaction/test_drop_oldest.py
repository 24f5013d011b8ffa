"""Forgetting the oldest part leaves a conversation that a provider takes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.compaction import DropOldest, estimate_tokens
from chimera.compaction.blocks import blocks_of
from chimera.types import Message
from tests.compaction.conversations import CONVERSATIONS, exchange, latest_user, problems


def shorten(messages: Sequence[Message], keep: float = 0.5) -> list[Message]:
    work = DropOldest(keep=keep).compact(messages)
    with pytest.raises(StopIteration) as stopped:
        next(work)
    value: list[Message] = stopped.value.value
    return value


def test_the_newest_part_stays() -> None:
    messages = [
        Message.user("old" * 50),
        Message.assistant("older" * 50),
        Message.user("new"),
        Message.assistant("newest"),
    ]
    assert shorten(messages) == messages[2:]


def test_system_messages_and_the_latest_request_stay() -> None:
    rules, request = Message.system("rules"), Message.user("do it")
    turns = [message for number in range(20) for message in exchange(number)]
    shorter = shorten([rules, Message.user("before"), request, *turns], keep=0.2)
    assert shorter[:2] == [rules, request]
    assert shorter[2:] == turns[-(len(shorter) - 2) :]
    assert len(shorter) < 12


def test_what_is_left_begins_with_the_user() -> None:
    messages = [Message.user("a" * 900), *exchange(1), Message.user("b"), *exchange(2)]
    assert shorten(messages) == messages[3:]


def test_a_steering_message_within_an_exchange_does_not_part_it() -> None:
    call, result = exchange(1)
    messages = [Message.user("a" * 900), call, Message.user("steer"), result]
    assert shorten(messages) == messages[1:]


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [Message.user("x" * 9000)],
        [Message.system("x"), Message.user("y")],
        exchange(1),
        [Message.user("x"), *exchange(1, size=9000)],
    ],
)
def test_what_cannot_be_shortened_stays_equal(messages: list[Message]) -> None:
    assert shorten(messages) == messages


@given(CONVERSATIONS, st.floats(0.05, 0.95))
def test_any_conversation_becomes_a_shorter_valid_one(messages: list[Message], keep: float) -> None:
    shorter = shorten(messages, keep)
    assert problems(shorter) == []
    assert [message for message in shorter if message.role == "system"] == [
        message for message in messages if message.role == "system"
    ]
    assert latest_user(shorter) == latest_user(messages)
    if shorter != messages:
        assert len(shorter) < len(messages)
        assert estimate_tokens(shorter) < estimate_tokens(messages)
        spoken = [block.messages[0].role for block in blocks_of(shorter) if not block.is_system]
        assert spoken[0] == "user" or "user" not in spoken
