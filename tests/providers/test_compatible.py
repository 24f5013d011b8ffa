from __future__ import annotations

from typing import Any

import pytest

from chimera.providers.compatible import OpenAICompatibleProvider
from chimera.types import Message, ToolCall
from tests.providers.vendors import KEY, OPENAI, run_async, run_sync
from tests.providers.wire_server import WireServer, events, json_reply, stream_reply

HELLO = [Message.user("hello")]
TOOLS = [{"type": "function", "function": {"name": "f", "description": "does f", "parameters": {"type": "object"}}}]


def sent(server: WireServer, model: str, *args: Any, **options: Any) -> Any:
    """Make one call with these arguments after the messages, and return the body that was sent."""
    server.answer_with(OPENAI.whole())
    OpenAICompatibleProvider(model, api_key=KEY, base_url=server.url, **options).complete(HELLO, *args)
    return server.requests[-1].json


def test_the_body_of_a_call(server: WireServer) -> None:
    assert sent(server, "some-model", TOOLS, 0.5, 9) == {
        "model": "some-model",
        "messages": [{"role": "user", "content": "hello"}],
        "tools": TOOLS,
        "temperature": 0.5,
        "max_tokens": 9,
    }
    assert server.requests[0].path == "/chat/completions"
    assert "tools" not in sent(server, "some-model", [])


@pytest.mark.parametrize("model", ["o3", "o4-mini", "gpt-5", "gpt-5.5", "gpt-6.2-sol", "gpt-10", "openai/gpt-5"])
def test_models_that_reason_take_no_temperature(server: WireServer, model: str) -> None:
    body = sent(server, model, None, 0.5, 9)
    assert "temperature" not in body
    assert "max_tokens" not in body
    assert body["max_completion_tokens"] == 9


@pytest.mark.parametrize("model", ["gpt-4.1", "gpt-4o", "gpt-35-turbo", "gpt-oss-120b", "llama3.2:3b", "omni"])
def test_other_models_take_one(server: WireServer, model: str) -> None:
    assert sent(server, model)["temperature"] == 0.0


def test_the_name_is_not_the_last_word(server: WireServer) -> None:
    assert sent(server, "gpt-5", reasoning=False)["temperature"] == 0.0
    assert "temperature" not in sent(server, "my-own", reasoning=True)


def test_streams_ask_for_usage_unless_told_not_to(server: WireServer) -> None:
    server.answer_with(OPENAI.streamed("a"))
    provider = OPENAI.make(server.url)
    list(provider.stream(HELLO))
    list(provider.stream(HELLO, stream_options=None))
    first, second = (received.json for received in server.requests)
    assert first["stream_options"] == {"include_usage": True}
    assert "stream_options" not in second


CALL = {"id": "x", "type": "function", "function": {"name": "f", "arguments": '{"a": "é"}'}}
ANSWER = {"choices": [{"message": {"content": None, "tool_calls": [CALL]}, "finish_reason": "tool_calls"}]}
START = {"choices": [{"delta": {"tool_calls": [{**CALL, "index": 0, "function": {"name": "f", "arguments": ""}}]}}]}
PIECES = ['{"a"', ': "é', '"}']
STREAM = [
    ": keep-alive",
    START,
    *({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}}]} for piece in PIECES),
    {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
    {"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 2}},
    "[DONE]",
]


def single_bytes(data: bytes) -> list[bytes]:
    return [data[index : index + 1] for index in range(len(data))]


@pytest.mark.parametrize(
    "shape", ["whole", "gzipped", "streamed", "byte by byte", "gzipped stream", "marked", "object arguments"]
)
async def test_a_tool_call_however_it_is_sent(server: WireServer, shape: str) -> None:
    stream = events(*STREAM)
    ready: Any = {**CALL, "function": {"name": "f", "arguments": {"a": "é"}}}
    reply = {
        "whole": json_reply(ANSWER),
        "gzipped": json_reply(ANSWER, zipped=True),
        "streamed": stream_reply(stream),
        "byte by byte": stream_reply(*single_bytes(stream)),
        "gzipped stream": stream_reply(stream, zipped=True),
        "marked": stream_reply("\ufeff".encode() + stream),
        "object arguments": json_reply({"choices": [{"message": {"tool_calls": [ready]}}]}),
    }[shape]
    server.answer_with(reply)
    provider = OPENAI.make(server.url)
    streamed = "stream" in shape or shape in ("byte by byte", "marked")
    for response in (run_sync(provider, HELLO, streamed), await run_async(provider, HELLO, streamed)):
        assert response.tool_calls == (ToolCall("x", "f", {"a": "é"}),)
        assert response.finish_reason == "tool_calls"
    await provider.aclose()


def test_a_whole_answer_to_a_request_for_a_stream(server: WireServer) -> None:
    server.answer_with(json_reply(ANSWER))
    assert run_sync(OPENAI.make(server.url), HELLO, True).tool_calls == (ToolCall("x", "f", {"a": "é"}),)


def test_an_address_with_a_path(server: WireServer) -> None:
    server.answer_with(OPENAI.whole())
    OPENAI.make(f"{server.url}/some/v1/").complete(HELLO)
    assert server.requests[0].path == "/some/v1/chat/completions"


def test_prices_and_windows_are_those_of_the_service() -> None:
    provider = OpenAICompatibleProvider("gpt-4.1")
    assert provider.cost_usd({"input_tokens": 1_000_000, "output_tokens": 0}) > 0
    assert provider.context_window > 500_000
    local = OpenAICompatibleProvider("gpt-4.1", base_url="http://127.0.0.1:9/v1")
    assert local.cost_usd({"input_tokens": 1_000_000, "output_tokens": 0}) == 0.0
