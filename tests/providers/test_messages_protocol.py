from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.providers.base import Response, StreamChunk
from chimera.providers.failures import WireError
from chimera.providers.messages_protocol import (
    MessagesAssembler,
    may_think,
    read_message,
    render_conversation,
    render_system,
    render_tools,
)
from chimera.types import Message, ToolCall

Event = dict[str, Any]
THOUGHT = {"type": "thinking", "thinking": "hm, so", "signature": "sig"}
HIDDEN = {"type": "redacted_thinking", "data": "xyz"}
START = {"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 10, "output_tokens": 1}}}
STOP = {"type": "message_stop"}


def begin(index: int, block: Event) -> Event:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, **fields: Any) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": fields}


def end(reason: str | None = "end_turn", **usage: Any) -> Event:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage or None}


def assemble(*events: Event) -> Response:
    assembler = MessagesAssembler()
    for event in events:
        assembler.add(event)
    return assembler.response()


def test_a_stream_with_everything_in_it() -> None:
    response = assemble(
        {"type": "ping"},
        START,
        begin(0, {"type": "thinking", "thinking": "", "signature": ""}),
        delta(0, type="thinking_delta", thinking="hm, "),
        delta(0, type="thinking_delta", thinking="so"),
        delta(0, type="signature_delta", signature="sig"),
        begin(1, HIDDEN),
        begin(2, {"type": "text", "text": ""}),
        delta(2, type="text_delta", text="I "),
        delta(2, type="citations_delta", citation={"cited_text": "no text of ours"}),
        begin(3, {"type": "tool_use", "id": "x", "name": "f", "input": {}}),
        begin(4, {"type": "tool_use", "id": "y", "name": "g", "input": {}}),
        delta(3, type="input_json_delta", partial_json='{"a"'),
        delta(4, type="input_json_delta", partial_json=""),
        delta(2, type="text_delta", text="will"),
        delta(3, type="input_json_delta", partial_json=": 1}"),
        begin(5, {"type": "server_tool_use", "id": "z", "name": "web_search", "input": {}}),
        {"type": "content_block_stop", "index": 3},
        {"type": "an_event_of_tomorrow", "index": 3},
        end("tool_use", output_tokens=7),
        STOP,
    )
    assert response == Response(
        content="I will",
        tool_calls=(ToolCall("x", "f", {"a": 1}), ToolCall("y", "g", {})),
        usage={"input_tokens": 10, "output_tokens": 7},
        thinking="hm, so",
        finish_reason="tool_calls",
        content_blocks=(THOUGHT, HIDDEN),
    )


@given(st.data())
def test_arguments_may_be_split_anywhere(data: st.DataObject) -> None:
    arguments = data.draw(st.dictionaries(st.text(), st.integers() | st.text(), max_size=3))
    text = json.dumps(arguments)
    cuts = sorted({0, len(text), *data.draw(st.lists(st.integers(0, len(text)), max_size=5))})
    pieces = [delta(0, partial_json=text[a:b]) for a, b in pairwise(cuts)]
    response = assemble(begin(0, {"type": "tool_use", "id": "x", "name": "f"}), *pieces, end())
    assert response.tool_calls == (ToolCall("x", "f", arguments),)


@pytest.mark.parametrize(
    ("block", "pieces", "expected"),
    [
        ({"id": "x", "input": {"a": 1}}, [], ToolCall("x", "f", {"a": 1})),
        ({"id": None, "input": None}, [], ToolCall("", "f", {})),
        ({}, ["", " "], ToolCall("", "f", {})),
        ({"id": "x", "input": {}}, ['{"a'], ToolCall("x", "f", '{"a')),  # type: ignore[arg-type]
        ({"id": "x", "input": '{"a": 1}'}, [], ToolCall("x", "f", {"a": 1})),
    ],
)
def test_shapes_of_calls(block: Event, pieces: list[str], expected: ToolCall) -> None:
    deltas = [delta(0, partial_json=piece) for piece in pieces]
    response = assemble(begin(0, {"type": "tool_use", "name": "f", **block}), *deltas, end())
    assert response.tool_calls == (expected,)


def test_text_and_thoughts_are_shown_at_once() -> None:
    assembler = MessagesAssembler()
    shown = [
        assembler.add(event)
        for event in (
            START,
            begin(0, {"type": "text", "text": "a"}),
            delta(0, text="b"),
            delta(1, thinking="c"),
            delta(2, partial_json="{}"),
        )
    ]
    assert shown == [None, StreamChunk("a"), StreamChunk("b"), StreamChunk(thinking="c"), None]


def test_the_end_of_a_stream() -> None:
    assembler = MessagesAssembler()
    states = []
    for event in (START, end(None, output_tokens=1), end(), STOP):
        assembler.add(event)
        states.append((assembler.ended, assembler.finished))
    assert states == [(False, False), (False, False), (True, False), (True, True)]


def test_usage_counts_what_was_cached_too() -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20}
    expected = {"input_tokens": 130, "output_tokens": 5, "cache_read_tokens": 100, "cache_write_tokens": 20}
    start = {"type": "message_start", "message": {"usage": usage}}
    assert assemble(start, end("end_turn", output_tokens=5, input_tokens=None)).usage == expected
    assert read_message({"content": [], "usage": {**usage, "output_tokens": 5}}).usage == expected


@pytest.mark.parametrize("usage", [None, "much", {"input_tokens": "x"}, {"output_tokens": None}])
def test_odd_usage(usage: Any) -> None:
    assert read_message({"content": [], "usage": usage}).usage == {"input_tokens": 0, "output_tokens": 0}


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "content_filter"),
        ("pause_turn", "pause_turn"),
        (None, None),
    ],
)
def test_finish_reasons(reason: str | None, finish: str | None) -> None:
    assert read_message({"content": [], "stop_reason": reason}).finish_reason == finish
    assert assemble(end(reason)).finish_reason == finish


def test_a_whole_answer() -> None:
    content = [THOUGHT, {"type": "text", "text": "a"}, {"type": "tool_use", "id": "x", "name": "f", "input": {"a": 1}}]
    response = read_message({"content": content, "stop_reason": "tool_use"})
    assert (response.content, response.thinking, response.content_blocks) == ("a", "hm, so", (THOUGHT,))
    assert response.tool_calls == (ToolCall("x", "f", {"a": 1}),)


@pytest.mark.parametrize("payload", [{}, {"content": None}, {"content": "text"}])
def test_what_is_no_answer(payload: Event) -> None:
    with pytest.raises(WireError):
        read_message(payload)


def use(call_id: str, name: str, **arguments: Any) -> Event:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result(call_id: str, content: str) -> Event:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def text(content: str) -> Event:
    return {"type": "text", "text": content}


def test_a_conversation_is_rendered() -> None:
    """Results of one batch travel in one message, before what the user added."""
    messages = [
        Message.system("be brief"),
        Message.user("hi"),
        Message.user("there"),
        Message.assistant("ok", [ToolCall("x", "f", {"a": 1}), ToolCall("y", "g", {})]),
        Message.tool("x", "one"),
        Message.tool("y", "two"),
        Message.user("and hurry"),
        Message.assistant(""),
        Message.system("by the way"),
        Message.user("  "),
        Message.assistant("bye"),
    ]
    assert render_system(messages) == "be brief\n\nby the way"
    assert render_conversation(messages) == [
        {"role": "user", "content": [text("hi"), text("there")]},
        {"role": "assistant", "content": [text("ok"), use("x", "f", a=1), use("y", "g")]},
        {"role": "user", "content": [result("x", "one"), result("y", "two"), text("and hurry")]},
        {"role": "assistant", "content": [text("bye")]},
    ]


def test_system_messages_with_blocks_become_blocks() -> None:
    marked = {"type": "text", "text": "long rules", "cache_control": {"type": "ephemeral"}}
    messages = [Message.system("be brief"), Message("system", "", content_blocks=(marked,))]
    assert render_system(messages) == [text("be brief"), marked]
    assert render_system([Message.user("hi")]) == ""


def test_blocks_pass_through_and_thoughts_come_first() -> None:
    image = {"type": "image", "source": {"type": "base64", "data": "..."}}
    messages = [
        Message("user", "look", content_blocks=(image,)),
        Message("assistant", "ok", (ToolCall("x", "f", {}),), None, (THOUGHT,)),
        Message("tool", "seen", (), "x", (image,)),
        Message("tool", "", (), "y", (image,)),
        Message("tool", "", (), "z"),
    ]
    results = [
        {"type": "tool_result", "tool_use_id": "x", "content": [text("seen"), image]},
        {"type": "tool_result", "tool_use_id": "y", "content": [image]},
        {"type": "tool_result", "tool_use_id": "z"},
    ]
    assert render_conversation(messages) == [
        {"role": "user", "content": [text("look"), image]},
        {"role": "assistant", "content": [THOUGHT, text("ok"), use("x", "f")]},
        {"role": "user", "content": results},
    ]


@given(st.text(max_size=80))
def test_ids_of_other_services_are_made_fit_and_still_match(call_id: str) -> None:
    turns = render_conversation([Message.assistant("", [ToolCall(call_id, "f", {})]), Message.tool(call_id, "r")])
    sent = turns[0]["content"][0]["id"]
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", sent)
    assert turns[1]["content"][0]["tool_use_id"] == sent
    if re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call_id):
        assert sent == call_id


def test_arguments_that_were_no_object_are_replayed_as_one() -> None:
    broken: Any = '{"a'
    [turn] = render_conversation([Message.assistant("", [ToolCall("x", "f", broken)])])
    assert turn["content"] == [use("x", "f", unreadable_arguments='{"a')]


def test_tools() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    given_tools = [
        {"type": "function", "function": {"name": "f", "description": "does f", "parameters": schema}},
        {"type": "function", "function": {"name": "g"}},
        {"name": "h", "input_schema": schema},
    ]
    assert render_tools(given_tools) == [
        {"name": "f", "description": "does f", "input_schema": schema},
        {"name": "g", "description": "", "input_schema": {"type": "object", "properties": {}}},
        {"name": "h", "input_schema": schema},
    ]


def test_when_thinking_is_possible() -> None:
    ask, answer = Message.user("hi"), Message.tool("x", "r")
    plain = Message.assistant("", [ToolCall("x", "f", {})])
    signed = Message("assistant", "", (ToolCall("x", "f", {}),), None, (THOUGHT,))
    assert may_think(render_conversation([ask]))
    assert may_think(render_conversation([ask, signed, answer]))
    assert may_think(render_conversation([ask, plain, answer, Message.assistant("ok"), ask]))
    assert not may_think(render_conversation([ask, plain, answer]))
    assert not may_think(render_conversation([ask, plain, answer, ask]))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "thinking", "id", "name", "input", "partial_json", "usage", "signature"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)
KINDS = st.sampled_from(
    ["message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop", "ping", 7]
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"type": KINDS},
            optional=dict.fromkeys(("index", "message", "content_block", "delta", "usage"), JSON),
        ),
        max_size=6,
    )
)
def test_no_shape_makes_reading_fail(events: list[Event]) -> None:
    response = assemble(*events)
    assert isinstance(response.content, str)
    assert all(isinstance(call.id, str) and isinstance(call.name, str) for call in response.tool_calls)


@given(st.lists(JSON, max_size=4))
def test_no_content_makes_reading_a_whole_answer_fail(content: list[Any]) -> None:
    assert isinstance(read_message({"content": content}).content, str)
