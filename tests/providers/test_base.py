from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from chimera.providers.base import Provider, Response, StreamChunk
from chimera.types import Message

HELLO = [Message.user("hello")]
ANSWER = Response("hello", thinking="hm")


class Smallest(Provider):
    """Writes only what must be written."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None = None,
        temperature: float = 0.0,
        max_tokens: int | None = None,
        **kwargs: Any,
    ) -> Response:
        self.calls.append((messages, tools, temperature, max_tokens, kwargs, threading.get_ident()))
        return ANSWER

    @property
    def model_name(self) -> str:
        return "smallest"


def test_complete_and_a_name_are_owed() -> None:
    with pytest.raises(TypeError, match="complete"):
        Provider()  # type: ignore[abstract]


async def test_everything_else_is_built_on_them() -> None:
    provider = Smallest()
    chunks = [StreamChunk("hello", "hm"), StreamChunk(response=ANSWER)]
    assert list(provider.stream(HELLO, None, 0.5, 9, a=1)) == chunks
    assert await provider.async_complete(HELLO, None, 0.5, 9, a=1) == ANSWER
    assert [chunk async for chunk in provider.async_stream(HELLO, None, 0.5, 9, a=1)] == chunks
    assert [call[:-1] for call in provider.calls] == [(HELLO, None, 0.5, 9, {"a": 1})] * 3


async def test_the_event_loop_is_not_blocked() -> None:
    provider = Smallest()
    await provider.async_complete(HELLO)
    assert provider.calls[0][-1] != threading.get_ident()


def test_what_it_says_of_itself() -> None:
    provider = Smallest()
    assert (provider.context_window, provider.supports_tool_use) == (128_000, True)
    assert provider.cost_usd({"input_tokens": 5}) == 0.0
    assert not provider.accepts_call_headers
    assert not hasattr(provider, "request_headers")
