from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.providers.base import Response, StreamChunk
from chimera.providers.chat_protocol import ChatAssembler, read_completion, render_messages
from chimera.providers.failures import WireError
from chimera.types import Message, ToolCall

Entry = dict[str, Any]


def assemble(*deltas: Entry, reason: str | None = "stop", **last: Any) -> Response:
    assembler = ChatAssembler()
    for delta in deltas:
        assembler.add({"choices": [{"index": 0, "delta": delta}]})
    assembler.add({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], **last})
    return assembler.response()


def calls(*entries: Entry | list[Entry]) -> list[tuple[str, str, Any]]:
    """Stream the entries, a list of them in one delta, and return the calls that come out."""
    deltas = [{"tool_calls": entry if isinstance(entry, list) else [entry]} for entry in entries]
    return [(call.id, call.name, call.arguments) for call in assemble(*deltas).tool_calls]


def entry(index: int | None, name: str | None = None, arguments: Any = None, call_id: str | None = None) -> Entry:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    found: Entry = {"function": function}
    if index is not None:
        found["index"] = index
    if call_id is not None:
        found["id"] = call_id
    return found


A, B = {"a": 1}, {"b": [2, "\n"]}
TEXT_A, TEXT_B = json.dumps(A), json.dumps(B)


@given(st.data())
def test_interleaved_calls_in_any_pieces(data: st.DataObject) -> None:
    """Several calls, arguments split anywhere, pieces of different calls mixed."""
    wanted = data.draw(st.lists(st.dictionaries(st.text(), st.integers() | st.text(), max_size=3), max_size=4))
    queues = []
    for index, arguments in enumerate(wanted):
        text = json.dumps(arguments)
        cuts = sorted({0, len(text), *data.draw(st.lists(st.integers(0, len(text)), max_size=4))})
        pieces = [entry(index, arguments=text[a:b]) for a, b in pairwise(cuts)]
        queues.append([entry(index, f"tool{index}", "", f"id{index}"), *pieces])
    stream = []
    while any(queues):
        stream.append(data.draw(st.sampled_from([queue for queue in queues if queue])).pop(0))
    found = {name: arguments for _, name, arguments in calls(*stream)}
    assert found == {f"tool{index}": arguments for index, arguments in enumerate(wanted)}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([entry(0, "f", TEXT_A, "x")], [("x", "f", A)]),
        ([entry(0, "f", None, "x")], [("x", "f", {})]),
        ([entry(0, "f", "", "x"), entry(0, None, TEXT_A)], [("x", "f", A)]),
        ([entry(0, "f", A, "x")], [("x", "f", A)]),
        ([entry(0, "f", TEXT_A, ""), entry(1, "g", TEXT_B, "")], [("", "f", A), ("", "g", B)]),
        ([entry(0, "f", TEXT_A), entry(1, "f", TEXT_A)], [("", "f", A), ("", "f", A)]),
        ([entry(0, "f", TEXT_A, "x"), entry(1, "f", TEXT_A, "x")], [("x", "f", A), ("x", "f", A)]),
        ([entry(0, "f", '{"a"', "x"), entry(0, "f", ": 1}", "x")], [("x", "f", A)]),
        ([entry(0, "f", TEXT_A, "x"), entry(0, "f", "\n", "x")], [("x", "f", A)]),
        ([entry(0, "ba", None, "x"), entry(0, "sh", None, "x"), entry(0, None, TEXT_A)], [("x", "bash", A)]),
        ([entry(0, None, "", "x"), entry(0, "f", TEXT_A)], [("x", "f", A)]),
        ([entry(0, None, '{"a":', "x"), entry(0, "f", "1}")], [("x", "f", A)]),
        ([entry(0, "f", TEXT_A, "x"), entry(0, "g", TEXT_B, "y")], [("x", "f", A), ("y", "g", B)]),
        ([entry(0, "f", TEXT_A), entry(0, "f", TEXT_B)], [("", "f", A), ("", "f", B)]),
        ([entry(None, "f", TEXT_A, "x"), entry(None, "g", TEXT_B, "y")], [("x", "f", A), ("y", "g", B)]),
        ([entry(None, "f", '{"a"', "x"), entry(None, None, ": 1}")], [("x", "f", A)]),
        ([entry(None, "f", '{"a"', "x"), entry(None, None, ": 1}", "x")], [("x", "f", A)]),
        ([[entry(None, "f", TEXT_A), entry(None, "g", TEXT_B)]], [("", "f", A), ("", "g", B)]),
        ([entry(0, "f", '{"a": 1', "x")], [("x", "f", '{"a": 1')]),
        ([entry(0, "f", "[1]", "x")], [("x", "f", "[1]")]),
        ([entry(0, "f", [1], "x")], [("x", "f", "[1]")]),
        ([{"index": 0, "id": "x", "name": "f", "arguments": TEXT_A}], [("x", "f", A)]),
        ([{"index": 0, "id": None, "function": None}, entry(0, "f", TEXT_A)], [("", "f", A)]),
        ([{"index": 0}, {}], []),
    ],
)
def test_shapes_of_streamed_calls(entries: list[Any], expected: list[Any]) -> None:
    assert calls(*entries) == expected


def whole(message: Entry, **choice: Any) -> Response:
    return read_completion({"choices": [{"message": message, **choice}]})


def test_whole_calls_stay_apart_whatever_their_ids() -> None:
    same = [entry(None, "f", TEXT_A, "x"), entry(None, "f", TEXT_B, "x"), entry(0, "g", A, ""), entry(0, "g", None)]
    found = whole({"content": None, "tool_calls": same}).tool_calls
    expected = [("x", "f", A), ("x", "f", B), ("", "g", A), ("", "g", {})]
    assert [(call.id, call.name, call.arguments) for call in found] == expected


@pytest.mark.parametrize(
    ("message", "content", "thinking"),
    [
        ({"content": "a"}, "a", ""),
        ({"content": None}, "", ""),
        ({}, "", ""),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab", ""),
        ({"content": None, "refusal": "I will not"}, "I will not", ""),
        ({"content": "a", "reasoning_content": "hm"}, "a", "hm"),
        ({"content": "a", "reasoning": "hm", "reasoning_content": "hm"}, "a", "hm"),
        ({"content": "a", "reasoning": None, "thinking": "hm"}, "a", "hm"),
        ({"content": 7, "reasoning": {"x": 1}, "tool_calls": "no", "unknown": [1]}, "", ""),
    ],
)
def test_shapes_of_messages(message: Entry, content: str, thinking: str) -> None:
    for response in (whole(message), assemble(message)):
        assert (response.content, response.thinking) == (content, thinking)
        assert not response.tool_calls


def test_a_function_call_of_the_old_kind() -> None:
    old = {"content": None, "function_call": {"name": "f", "arguments": TEXT_A}}
    assert whole(old).tool_calls == (ToolCall("", "f", A),)
    pieces = [{"function_call": {"name": "f", "arguments": ""}}, {"function_call": {"arguments": TEXT_A}}]
    assert assemble(*pieces).tool_calls == (ToolCall("", "f", A),)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "stop"),
        ("eos", "stop"),
        ("end_turn", "stop"),
        ("length", "length"),
        ("MAX_TOKENS", "length"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        ("content_filter", "content_filter"),
        ("something_new", "something_new"),
        (None, None),
        (7, None),
    ],
)
def test_finish_reasons(reason: Any, finish: str | None) -> None:
    assert whole({"content": "a"}, finish_reason=reason).finish_reason == finish
    assert assemble({"content": "a"}, reason=reason).finish_reason == finish


@pytest.mark.parametrize("reason", ["stop", None, "tool_calls", "tool_use"])
def test_an_answer_with_calls_finishes_for_them(reason: str | None) -> None:
    assert assemble({"tool_calls": [entry(0, "f")]}, reason=reason).finish_reason == "tool_calls"


def test_calls_cut_off_by_the_limit_say_so() -> None:
    assert assemble({"tool_calls": [entry(0, "f", '{"a')]}, reason="length").finish_reason == "length"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, {"input_tokens": 0, "output_tokens": 0}),
        ("much", {"input_tokens": 0, "output_tokens": 0}),
        ({"prompt_tokens": None, "completion_tokens": "x"}, {"input_tokens": 0, "output_tokens": 0}),
        ({"prompt_tokens": 9, "completion_tokens": 2}, {"input_tokens": 9, "output_tokens": 2}),
        ({"input_tokens": 9, "output_tokens": 2}, {"input_tokens": 9, "output_tokens": 2}),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
            {"input_tokens": 9, "output_tokens": 2, "cache_read_tokens": 4},
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 3},
            {"input_tokens": 9, "output_tokens": 2, "cache_read_tokens": 3},
        ),
        ({"prompt_tokens": 9, "prompt_tokens_details": None}, {"input_tokens": 9, "output_tokens": 0}),
    ],
)
def test_usage(usage: Any, expected: dict[str, int]) -> None:
    assert read_completion({"choices": [{"message": {}}], "usage": usage}).usage == expected
    assert assemble(usage=usage).usage == expected


def test_usage_in_a_chunk_of_its_own_without_choices() -> None:
    assembler = ChatAssembler()
    assembler.add({"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}], "usage": None})
    assert assembler.add({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}) is None
    assert assembler.response().usage == {"input_tokens": 3, "output_tokens": 1}


def test_text_and_thoughts_are_shown_at_once() -> None:
    assembler = ChatAssembler()
    assert assembler.add({"choices": [{"delta": {"role": "assistant", "content": ""}}]}) is None
    assert assembler.add({"choices": [{"delta": {"reasoning": "hm"}}]}) == StreamChunk(thinking="hm")
    assert assembler.add({"choices": [{"delta": {"content": "a"}}]}) == StreamChunk("a")
    assert assembler.add({"choices": [{"index": 1, "delta": {"content": "another choice"}}]}) is None
    assert assembler.response().content == "a"


@pytest.mark.parametrize("choice", [{"error": {"message": "no"}}, {"delta": {}, "finish_reason": "error"}])
def test_an_error_in_a_choice(choice: Entry) -> None:
    with pytest.raises(WireError):
        ChatAssembler().add({"choices": [choice]})


def test_a_conversation_is_rendered() -> None:
    call = ToolCall("x", "f", {"path": "é", "deep": {"list": [1]}})
    messages = [
        Message.system("be brief"),
        Message.user("hi"),
        Message.assistant("", [call]),
        Message.tool("x", "done"),
        Message.assistant("bye"),
    ]
    function = {"name": "f", "arguments": '{"path": "é", "deep": {"list": [1]}}'}
    assert render_messages(messages) == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "x", "type": "function", "function": function}],
        },
        {"role": "tool", "content": "done", "tool_call_id": "x"},
        {"role": "assistant", "content": "bye"},
    ]


def test_blocks_pass_through_but_thoughts_of_another_protocol() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:..."}}
    seen = Message("user", "look", content_blocks=(image,))
    only = Message("user", "", content_blocks=(image,))
    thought = Message("assistant", "so", content_blocks=({"type": "thinking", "thinking": "hm", "signature": "s"},))
    contents = [rendered["content"] for rendered in render_messages([seen, only, thought])]
    assert contents == [[{"type": "text", "text": "look"}, image], [image], "so"]


def test_arguments_that_were_no_object_are_replayed_as_one() -> None:
    broken: Any = '{"a'
    [rendered] = render_messages([Message.assistant("", [ToolCall("x", "f", broken)])])
    assert json.loads(rendered["tool_calls"][0]["function"]["arguments"]) == {"unreadable_arguments": '{"a'}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "delta", "message", "tool_calls", "function", "name", "arguments", "id", "index", "content"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=30,
)


@given(st.lists(st.fixed_dictionaries({"choices": JSON, "usage": JSON}), max_size=4))
def test_no_shape_makes_reading_fail_but_as_a_wire_error(payloads: list[Entry]) -> None:
    assembler = ChatAssembler()
    try:
        for payload in payloads:
            assembler.add(payload)
            read_completion(payload)
    except WireError:
        return
    response = assembler.response()
    assert isinstance(response.content, str)
    assert all(isinstance(call.id, str) and isinstance(call.name, str) for call in response.tool_calls)
