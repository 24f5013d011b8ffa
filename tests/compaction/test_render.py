"""A conversation as plain text."""

from __future__ import annotations

from chimera.compaction.render import render
from chimera.types import Message, ToolCall


def test_every_kind_of_message_is_written_down() -> None:
    call = ToolCall("1", "search", {"pattern": "é"})
    messages = [
        Message.user("find it"),
        Message.assistant("looking", [call]),
        Message.tool("1", "found"),
        Message.tool("2", "stray"),
        Message("user", "", content_blocks=({"type": "image"}, {"type": "image"})),
    ]
    assert render(messages, 10_000) == (
        "USER:\nfind it\n\n"
        'ASSISTANT:\nlooking\nCALLS search {"pattern": "é"}\n\n'
        "RESULT of search:\nfound\n\n"
        "RESULT of a tool:\nstray\n\n"
        "USER:\n[2 further content blocks]"
    )


def test_long_entries_and_long_records_lose_their_middle() -> None:
    text = render([Message.tool("1", "a" * 3000 + "b" * 3000)], 100_000)
    assert len(text) < 4_100
    assert "characters left out" in text
    assert text.endswith("b" * 1000)
    record = render([Message.user(f"message {number}") for number in range(1000)], 500)
    assert len(record) < 600
    assert record.startswith("USER:\nmessage 0")
    assert record.endswith("message 999")


def test_a_limit_of_nothing_is_no_crash() -> None:
    assert "left out" in render([Message.user("hello")], 0)
