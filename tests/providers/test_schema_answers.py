from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.core import AgentLoop, tool
from chimera.providers.base import Response
from chimera.providers.schema_answers import AnswerText, read_answer
from chimera.types import Message, ToolCall
from tests.providers.vendors import OPENAI, run_async, run_sync
from tests.providers.wire_server import WireServer

TOOLS = [{"type": "function", "function": {"name": "look", "description": "", "parameters": {}}}]
HELLO = [Message.user("hello")]


def shown(*pieces: str) -> str:
    text = AnswerText()
    return "".join(text.feed(piece) for piece in pieces)


@st.composite
def cut(draw: st.DrawFn, text: st.SearchStrategy[str]) -> list[str]:
    """A text in pieces, cut anywhere."""
    whole = draw(text)
    cuts = sorted({0, len(whole), *draw(st.lists(st.integers(0, len(whole)), max_size=8))})
    return [whole[a:b] for a, b in pairwise(cuts)]


ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()) | st.sampled_from('"\\/{}\n\t😀\ud83d\ude00'))


@given(st.data(), ANY_TEXT, st.booleans(), st.sampled_from([None, 2]))
def test_a_final_text_is_shown_as_it_arrives(data: st.DataObject, text: str, ascii_only: bool, indent: Any) -> None:
    spelled = json.dumps({"answer": text}, ensure_ascii=ascii_only, indent=indent)
    assert shown(*data.draw(cut(st.just(spelled)))) == json.loads(spelled)["answer"]
    assert read_answer(Response(spelled)).content == json.loads(spelled)["answer"]


def test_nothing_is_held_back_that_can_be_shown() -> None:
    text = AnswerText()
    pieces = ['{"ans', 'wer" :', ' "he', "llo\\", "n", "\\ud83d", "\\ude00.", '"', "}"]
    assert [text.feed(piece) for piece in pieces] == ["", "", "he", "llo", "\n", "", "😀.", "", ""]


@pytest.mark.parametrize(
    ("spelled", "said"),
    [
        ("plain words", "plain words"),
        ("  {not json", "  {not json"),
        ('{"other": 1}', '{"other": 1}'),
        ('{"answer": 5}', '{"answer": 5}'),
        ('{"answer": null}', '{"answer": null}'),
        ('["answer"]', '["answer"]'),
        ("7", "7"),
        ("[" * 100_000, "[" * 100_000),
        ('{"answer": "cut o', "cut o"),
        ('{"answer": "bad \\x escape"}', "bad \\x escape"),
        ('{"answer": "raw\nline"}', "raw\nline"),
        ('{"answer": "whole"', "whole"),
        ("", ""),
    ],
)
def test_texts_of_any_shape(spelled: str, said: str) -> None:
    """What is shown in pieces and what the answer says at the end are the same."""
    assert shown(*spelled) == said
    assert read_answer(Response(spelled, finish_reason="length")) == Response(said, finish_reason="length")


@pytest.mark.parametrize(
    ("spelled", "arguments"),
    [
        ('{"tool": "look", "arguments": {"far": [true]}}', {"far": [True]}),
        (' {\n "tool" : "look" , "arguments" : { } }', {}),
        ('{"arguments": {}, "tool": "look"}', {}),
        ('{"tool": "look"}', {}),
        ('{"tool": "look", "arguments": [1]}', "[1]"),
    ],
)
def test_calls(spelled: str, arguments: Any) -> None:
    response = read_answer(Response(spelled, finish_reason="stop", usage={"input_tokens": 1}))
    call = ToolCall("", "look", arguments)
    assert response == Response("", (call,), {"input_tokens": 1}, "", "tool_calls")


@pytest.mark.parametrize("spelled", ['{"tool": "look", "arguments": {"far": tr', '{"tool": "look", "arguments":'])
def test_a_call_that_was_cut_off_cannot_run(spelled: str) -> None:
    response = read_answer(Response(spelled, finish_reason="length"))
    assert response == Response("", (ToolCall("", "look", spelled),), finish_reason="length")  # type: ignore[arg-type]
    assert shown(*spelled) == ""


def test_half_the_name_of_a_tool_is_no_call() -> None:
    response = Response('{"tool": "lo', finish_reason="length")
    assert read_answer(response) == response


def test_calls_of_the_service_itself_stay() -> None:
    response = Response('{"answer": "x"}', (ToolCall("x", "f", {}),))
    assert read_answer(response) is response


async def test_answers_of_a_server(server: WireServer, streamed: bool) -> None:
    pieces = ['{"ans', 'wer": "hel', 'lo"}']
    server.answer_with(OPENAI.streamed(*pieces) if streamed else OPENAI.whole("".join(pieces)))
    provider = OPENAI.make(server.url, tool_calling="schema")
    for response in (
        run_sync(provider, HELLO, streamed, tools=TOOLS),
        await run_async(provider, HELLO, streamed, tools=TOOLS),
    ):
        assert (response.content, response.tool_calls, response.finish_reason) == ("hello", (), "stop")
        assert response.usage == {"input_tokens": 3, "output_tokens": 5}
    plain = run_sync(provider, HELLO, streamed)
    assert plain.content == "".join(pieces), "without tools, an answer is what it says"
    if streamed:
        assert [chunk.text for chunk in provider.stream(HELLO, TOOLS)] == ["hel", "lo", ""]
    await provider.aclose()


@tool
def look(far: bool) -> str:
    """Look around."""
    return "a door" if far else "nothing"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_is_used_and_its_result_read(server: WireServer, stream: bool) -> None:
    answers = ['{"tool": "look", "arguments": {"far": true}}', '{"answer": "I see a door"}']
    server.answer_with(*(OPENAI.streamed(text) if stream else OPENAI.whole(text) for text in answers))
    provider = OPENAI.make(server.url, tool_calling="schema")
    options: Any = {"tools": [look], "provider": provider, "system_prompt": "be brief", "stream": stream}
    events = [event async for event in AgentLoop().run([Message.user("go")], **options)]
    assert events[-1].data.output == "I see a door"
    asked, answered = server.requests[1].json["messages"][-2:]
    assert asked == {"role": "assistant", "content": answers[0]}
    assert answered == {"role": "user", "content": "Result of look:\na door"}
    said = "".join(event.data for event in events if event.type == "assistant_chunk")
    assert said == ("I see a door" if stream else "")
    await provider.aclose()
