"""An answer is made fit to work with: read-only, ids that are unique, calls that cannot run marked as such."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from chimera.core.normalize import Answer, normalize
from chimera.events import ModelResponseEvent
from chimera.frozen import FrozenDict
from chimera.providers.base import Response
from chimera.types import Message, ToolCall
from tests.core.driving import Note, Scripted, drive, every_mode, held

THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "sig", "deep": {"list": [1]}}


def answering(arguments: Any) -> Answer:
    return normalize(Response("", [ToolCall("x", "note", arguments)]))


def test_an_answer_is_kept_as_it_is() -> None:
    given = Response("text", [ToolCall("x", "f", {"a": [1]})], {"input_tokens": 1}, "hm", "stop", [THOUGHT])
    answer = normalize(given)
    assert (answer.content, answer.usage, answer.thinking) == ("text", {"input_tokens": 1}, "hm")
    assert (answer.finish_reason, answer.tool_calls) == ("stop", (ToolCall("x", "f", {"a": [1]}),))
    assert answer.content_blocks == (THOUGHT,)
    assert answer.problems is None


def test_any_object_with_content_is_an_answer() -> None:
    assert normalize(SimpleNamespace(content=None)) == Answer("")


@pytest.mark.parametrize("response", [None, "text", {"content": "text"}, SimpleNamespace(content=7)])
def test_what_is_no_answer(response: Any) -> None:
    with pytest.raises(TypeError, match="the provider answered with a"):
        normalize(response)


def test_calls_and_blocks_cannot_be_edited() -> None:
    arguments: dict[str, Any] = {"deep": [1]}
    answer = normalize(Response("", [ToolCall("x", "f", arguments)], content_blocks=[{"data": arguments}]))
    arguments["deep"].append(2)
    assert answer.tool_calls[0].arguments == {"deep": [1]}
    assert answer.content_blocks[0]["data"] == {"deep": [1]}
    assert type(answer.content_blocks[0]) is type(answer.tool_calls[0].arguments) is FrozenDict


@pytest.mark.parametrize("blocks", ["text", 7, {"type": "thinking"}, [THOUGHT, "text"], [None]])
def test_blocks_that_are_no_objects_are_no_answer(blocks: Any) -> None:
    with pytest.raises(TypeError, match="content blocks"):
        normalize(SimpleNamespace(content="", content_blocks=blocks))


@pytest.mark.parametrize("ids", [("", ""), (None, None), ("x", "x"), ("x", "", "x", None)])
def test_ids_are_made_unique(ids: tuple[Any, ...]) -> None:
    found = [call.id for call in normalize(Response("", [ToolCall(call_id, "f", {}) for call_id in ids])).tool_calls]
    assert len(set(found)) == len(ids)
    assert all(found)
    assert [call_id for call_id in found if call_id == "x"] == ["x"] * ("x" in ids)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ('{"a": NaN}', "NaN is no JSON number"),
        ('{"a": [-Infinity]}', "-Infinity is no JSON number"),
        ('{"a": 1e999}', "inf is no JSON number"),
        ({"a": float("nan")}, "nan is no JSON number"),
        ({"a": {"b": float("-inf")}}, "-inf is no JSON number"),
        ("[" * 100_000, "nests too deep"),
        ('{"a":' * 500 + "1" + "}" * 500, "nest"),
        ('{"a": 1', "line 1"),
        ("[1]", "JSON list"),
        ("null", "JSON NoneType"),
        (None, "NoneType"),
        ([1], "list"),
        ({"a": {1}}, "set is no JSON value"),
    ],
)
def test_arguments_that_are_no_json_object_never_run(arguments: Any, why: str) -> None:
    answer = answering(arguments)
    assert answer.problems is not None
    assert "not a JSON object" in answer.problems["x"]
    assert why in answer.problems["x"]
    assert list(answer.tool_calls[0].arguments) == ["unreadable_arguments"]
    assert normalize(answer).problems == answer.problems, "what is known of a call outlives a second look"


@pytest.mark.parametrize(("text", "arguments"), [("", {}), (" \n", {}), ('{"a": 1.5}', {"a": 1.5})])
def test_arguments_as_text(text: str, arguments: Any) -> None:
    answer = answering(text)
    assert (answer.tool_calls[0].arguments, answer.problems) == (arguments, None)


@every_mode
def test_blocks_travel_back_with_the_answer(mode: str) -> None:
    """In every lane, the message that is recorded, and so sent again, holds the blocks of its answer."""
    first = Response("", [ToolCall("x", "note", {})], content_blocks=[THOUGHT])
    provider = Scripted(first, Response("done", content_blocks=(THOUGHT,)))
    ran = drive(mode, provider, [Note()], held())
    assert blocks(provider.requests[1]) == [(THOUGHT,)]
    assert blocks(ran.messages) == [(THOUGHT,), (THOUGHT,)]
    shown = [event.message for event in ran.bus if isinstance(event, ModelResponseEvent)]
    assert blocks(shown) == blocks(ran.messages)


def blocks(messages: Iterable[Message]) -> list[Any]:
    return [message.content_blocks for message in messages if message.role == "assistant"]
