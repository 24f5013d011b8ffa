"""Both vendors' providers behind one face, for what must hold of either."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chimera.providers.anthropic import AnthropicProvider
from chimera.providers.base import Response, StreamChunk
from chimera.providers.compatible import OpenAICompatibleProvider
from chimera.providers.wire import WireProvider
from tests.providers.wire_server import Ending, Reply, events, json_reply, stream_reply

__all__ = ["ANTHROPIC", "KEY", "OPENAI", "VENDORS", "VendorCase", "run_async", "run_sync"]

KEY = "sk-the-real-key-0123456789"


@dataclass(frozen=True, slots=True)
class VendorCase:
    """One vendor: how to make its provider and how its service answers."""

    name: str
    provider_class: type[WireProvider]

    def make(self, url: str, **options: Any) -> Any:
        options = {"api_key": KEY, "retry_delay": 0.001, "max_retries": 0, **options}
        return self.provider_class("some-model", base_url=url, **options)

    def body(self, text: str) -> dict[str, Any]:
        """Write a whole answer."""
        return _chat(text) if self is OPENAI else _message(text)

    def whole(self, text: str = "hello") -> Reply:
        return json_reply(self.body(text))

    def pieces(self, *texts: str) -> list[bytes]:
        """Write a stream that is complete, as one chunk of bytes an event."""
        if self is OPENAI:
            deltas: list[Any] = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]
            last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": _chat("")["usage"]}
            return [events(item) for item in (*deltas, last, "[DONE]")]
        start = {"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 0}}}
        block: Any = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        deltas = [
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}} for text in texts
        ]
        end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}
        return [events(item, named=True) for item in (start, block, *deltas, end, {"type": "message_stop"})]

    def streamed(self, *texts: str) -> Reply:
        return stream_reply(*self.pieces(*texts))

    def broken_off(self, *texts: str, ending: Ending = "cut") -> Reply:
        """Answer with the beginning of a stream, up to and with the texts."""
        return stream_reply(*self.pieces(*texts)[:-2], ending=ending)

    def error(
        self,
        status: int,
        kind: str = "some_error",
        message: str = "it went wrong",
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        return json_reply(self.error_body(kind, message), status, headers)

    def error_body(self, kind: str, message: str) -> dict[str, Any]:
        outer = {} if self is OPENAI else {"type": "error"}
        return {**outer, "error": {"type": kind, "message": message}}


def _chat(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 3, "completion_tokens": 5}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}


def _message(text: str) -> dict[str, Any]:
    usage = {"input_tokens": 3, "output_tokens": 5}
    content = [{"type": "text", "text": text}]
    return {"type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn", "usage": usage}


OPENAI = VendorCase("openai", OpenAICompatibleProvider)
ANTHROPIC = VendorCase("anthropic", AnthropicProvider)
VENDORS = (OPENAI, ANTHROPIC)


def run_sync(provider: Any, messages: Sequence[Any], streamed: bool, **kwargs: Any) -> Response:
    if not streamed:
        response: Response = provider.complete(messages, **kwargs)
        return response
    return _last(list(provider.stream(messages, **kwargs)))


async def run_async(provider: Any, messages: Sequence[Any], streamed: bool, **kwargs: Any) -> Response:
    if not streamed:
        response: Response = await provider.async_complete(messages, **kwargs)
        return response
    return _last([chunk async for chunk in provider.async_stream(messages, **kwargs)])


def _last(chunks: list[StreamChunk]) -> Response:
    assert chunks[-1].response is not None
    assert all(chunk.response is None for chunk in chunks[:-1])
    return chunks[-1].response
