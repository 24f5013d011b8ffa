"""What a provider is: the one place where a conversation leaves the process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chimera.frozen import quick_init
from chimera.threads import in_thread
from chimera.types import Message, ToolCall

__all__ = ["Provider", "Response", "StreamChunk"]


@quick_init
@dataclass(frozen=True, slots=True)
class Response:
    """What the model answered. `usage` counts tokens under `input_tokens` and `output_tokens`.

    A call whose arguments the model wrote badly carries the text it wrote in `arguments`: such a call never runs.
    `content_blocks` holds what must travel back with the answer though it is no plain text (signed thoughts, say), as
    JSON objects in the provider's own terms: they become the `content_blocks` of the recorded message.
    """

    content: str
    tool_calls: Sequence[ToolCall] = ()
    usage: Mapping[str, int] = field(default_factory=dict)
    thinking: str = ""
    finish_reason: str | None = None
    content_blocks: Sequence[Mapping[str, Any]] = ()


@quick_init
@dataclass(frozen=True, slots=True)
class StreamChunk:
    """A piece of a streamed answer. The last chunk of every stream carries the whole `response`."""

    text: str = ""
    thinking: str = ""
    response: Response | None = None


class Provider(ABC):
    """A model behind some protocol. Only `complete` must be written; the rest is built on it.

    `tools` is a list of function schemas: `{"type": "function", "function": {"name", "description", "parameters"}}`.
    A provider that sends HTTP headers exposes them as `request_headers` (a `dict[str, str]`). When it can also send
    other headers for one call, it sets `accepts_call_headers` and takes them as the keyword `extra_headers`: the
    complete set for that call, in which a header of its own that is missing is not sent. A provider that can use
    another model for one call sets `accepts_call_model` and takes its name as the keyword `model`.
    """

    accepts_call_headers: bool = False
    accepts_call_model: bool = False

    @abstractmethod
    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None = None,
        temperature: float = 0.0,
        max_tokens: int | None = None,
        **kwargs: Any,
    ) -> Response:
        """Send the conversation and return the whole answer.

        Raises `ProviderError` (or a subclass) when the service fails.
        """

    def stream(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None = None,
        temperature: float = 0.0,
        max_tokens: int | None = None,
        **kwargs: Any,
    ) -> Iterator[StreamChunk]:
        """Yield the answer in pieces, ending with a chunk that carries the whole response."""
        response = self.complete(messages, tools, temperature, max_tokens, **kwargs)
        yield StreamChunk(response.content, response.thinking)
        yield StreamChunk(response=response)

    async def async_complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None = None,
        temperature: float = 0.0,
        max_tokens: int | None = None,
        **kwargs: Any,
    ) -> Response:
        """`complete` without blocking the event loop."""
        return await in_thread(self.complete, messages, tools, temperature, max_tokens, **kwargs)

    async def async_stream(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None = None,
        temperature: float = 0.0,
        max_tokens: int | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[StreamChunk]:
        """`stream` without blocking the event loop."""
        response = await self.async_complete(messages, tools, temperature, max_tokens, **kwargs)
        yield StreamChunk(response.content, response.thinking)
        yield StreamChunk(response=response)

    @property
    @abstractmethod
    def model_name(self) -> str:
        """The name that the service knows the model by."""

    @property
    def context_window(self) -> int:
        """How many tokens a conversation may hold."""
        return 128_000

    @property
    def supports_tool_use(self) -> bool:
        return True

    def cost_usd(self, usage: Mapping[str, int]) -> float:
        """What a call with this usage costs, in US dollars; 0.0 when no price is known."""
        return 0.0
