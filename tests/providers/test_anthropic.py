from __future__ import annotations

from typing import Any

import pytest

from chimera.providers.anthropic import AnthropicProvider
from chimera.types import Message, ToolCall
from tests.providers.vendors import ANTHROPIC, KEY, run_async, run_sync
from tests.providers.wire_server import WireServer, events, json_reply, stream_reply

HELLO = [Message.system("be brief"), Message.user("hello")]
TOOLS = [{"type": "function", "function": {"name": "f", "description": "does f", "parameters": {"type": "object"}}}]
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "sig"}
BUDGET = {"type": "enabled", "budget_tokens": 2048}


def sent(server: WireServer, *args: Any, messages: Any = HELLO, call: Any = None, **options: Any) -> Any:
    """Make one call with these arguments after the messages, and return the body that was sent."""
    server.answer_with(ANTHROPIC.whole())
    AnthropicProvider("some-model", base_url=server.url, **options).complete(messages, *args, **(call or {}))
    return server.requests[-1].json


def test_the_body_of_a_call(server: WireServer) -> None:
    assert sent(server, TOOLS, 0.5, 9) == {
        "model": "some-model",
        "max_tokens": 9,
        "system": "be brief",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}],
        "tools": [{"name": "f", "description": "does f", "input_schema": {"type": "object"}}],
    }
    received = server.requests[0]
    assert received.path == "/v1/messages"
    assert received.header("anthropic-version")


def test_defaults(server: WireServer) -> None:
    body = sent(server, messages=[Message.user("hello")])
    assert body["max_tokens"] == 16_384
    assert body.keys() == {"model", "max_tokens", "messages"}
    assert sent(server, max_tokens=100)["max_tokens"] == 100


def test_temperature_is_sent_where_it_is_wanted(server: WireServer) -> None:
    assert sent(server, None, 0.5, sends_temperature=True)["temperature"] == 0.5


def test_caching_is_asked_for_at_the_vendor_and_on_demand(server: WireServer) -> None:
    assert sent(server, prompt_caching=True)["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in sent(server)
    assert AnthropicProvider("some-model", api_key=KEY)._caches


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
def test_the_address_may_end_as_other_services_do(server: WireServer, ending: str) -> None:
    server.answer_with(ANTHROPIC.whole())
    ANTHROPIC.make(f"{server.url}{ending}").complete(HELLO)
    assert server.requests[0].path == "/v1/messages"


def test_a_key_in_a_header_of_its_own_is_replaced_too(server: WireServer) -> None:
    server.answer_with(ANTHROPIC.whole())
    provider = ANTHROPIC.make(server.url, api_key=None, headers={"x-api-key": KEY})
    provider.complete(HELLO)
    provider.complete(HELLO, extra_headers={"X-Api-Key": "[redacted]"})
    provider.complete(HELLO, extra_headers={})
    provider.complete(HELLO)
    keys = [received.header("x-api-key") for received in server.requests]
    assert keys == [KEY, "[redacted]", None, KEY]
    assert [received.header("authorization") for received in server.requests] == [None] * 4


def test_thinking_is_left_out_where_it_would_be_refused(server: WireServer) -> None:
    plain = [*HELLO, Message.assistant("", [ToolCall("x", "f", {})]), Message.tool("x", "done")]
    signed = [*HELLO, Message("assistant", "", (ToolCall("x", "f", {}),), None, (THOUGHT,)), Message.tool("x", "done")]
    asked = {"thinking": BUDGET}
    assert sent(server, call=asked)["thinking"] == BUDGET
    assert "thinking" not in sent(server, messages=plain, call=asked)
    body = sent(server, messages=signed, call=asked)
    assert body["thinking"] == BUDGET
    assert body["messages"][1]["content"][0] == THOUGHT
    assert sent(server, messages=plain, call={"thinking": {"type": "adaptive"}})["thinking"] == {"type": "adaptive"}


def test_thinking_goes_without_a_temperature(server: WireServer) -> None:
    assert "temperature" not in sent(server, sends_temperature=True, call={"thinking": BUDGET})


CONTENT: list[Any] = [
    THOUGHT,
    {"type": "text", "text": "ok"},
    {"type": "tool_use", "id": "x", "name": "f", "input": {"a": "é"}},
]
ANSWER = {"content": CONTENT, "stop_reason": "tool_use", "usage": {"input_tokens": 4, "output_tokens": 2}}
STREAM: list[Any] = [
    {"type": "message_start", "message": {"usage": {"input_tokens": 4, "output_tokens": 0}}},
    {"type": "ping"},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig"}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "ok"}},
    {"type": "content_block_start", "index": 2, "content_block": {**CONTENT[2], "input": {}}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"a": "'}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": 'é"}'}},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]


@pytest.mark.parametrize("shape", ["whole", "gzipped", "streamed", "byte by byte", "gzipped stream", "unnamed stream"])
async def test_an_answer_however_it_is_sent(server: WireServer, shape: str) -> None:
    stream = events(*STREAM, named=True)
    reply = {
        "whole": json_reply(ANSWER),
        "gzipped": json_reply(ANSWER, zipped=True),
        "streamed": stream_reply(stream),
        "byte by byte": stream_reply(*(stream[index : index + 1] for index in range(len(stream)))),
        "gzipped stream": stream_reply(stream, zipped=True),
        "unnamed stream": stream_reply(events(*STREAM)),
    }[shape]
    server.answer_with(reply)
    provider = ANTHROPIC.make(server.url)
    streamed = "stream" in shape or shape == "byte by byte"
    for response in (run_sync(provider, HELLO, streamed), await run_async(provider, HELLO, streamed)):
        assert (response.content, response.thinking, response.finish_reason) == ("ok", "hm", "tool_calls")
        assert response.tool_calls == (ToolCall("x", "f", {"a": "é"}),)
        assert response.usage == {"input_tokens": 4, "output_tokens": 2}
        assert response.content_blocks == (THOUGHT,)
    await provider.aclose()


def test_prices_and_windows() -> None:
    provider = AnthropicProvider("claude-sonnet-4-5")
    assert provider.context_window == 200_000
    assert provider.cost_usd({"input_tokens": 1000, "output_tokens": 10}) > 0
