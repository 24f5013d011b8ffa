"""Any service that speaks OpenAI's chat completions protocol: the vendor, routers, and servers of one's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, get_args

from chimera.errors import ConfigError
from chimera.providers.answers import BodyReader, EventReader, Reader
from chimera.providers.chat_protocol import ChatAssembler, read_completion, render_messages
from chimera.providers.schema_answers import SchemaAssembler, read_constrained
from chimera.providers.schema_tools import constrain, in_words
from chimera.providers.vendor import Vendor
from chimera.providers.wire import Ask, WireProvider

__all__ = ["OpenAICompatibleProvider", "ToolCalling"]

ToolCalling = Literal["native", "schema"]
_REASONING = re.compile(r"(?:openai/)?(?:o\d|gpt-(?:[5-9]|1\d)(?!\d))", re.IGNORECASE)


def _load() -> Any:
    import openai

    return openai


class OpenAICompatibleProvider(WireProvider):
    """A model behind the chat completions protocol, through the official `openai` SDK.

    Nothing is read from the environment (`create_provider` does that): without `api_key` none is sent. `reasoning` says
    that the model is one of those that take no temperature and limit their output by `max_completion_tokens`; its name
    decides when that is None.

    `tool_calling` says how tools are offered. `native` sends them as `tools`, and the model answers with tool calls.
    `schema` is for models that do not obey `tools`, on servers that constrain answers by a JSON schema
    (`response_format`): the tools are described in the system message, and the answer is one JSON object, which is read
    back into one tool call or into a final text, streamed or not. Earlier calls and results travel as plain text then.

    The other arguments are those of `WireProvider`. Raises what it raises, and `ConfigError` for another way.
    """

    vendor: ClassVar[Vendor] = Vendor(
        extra="openai",
        load=_load,
        client="OpenAI",
        path="/chat/completions",
        base_url="https://api.openai.com/v1",
        ambient="OPENAI_CUSTOM_HEADERS",
        own_headers=("Authorization", "OpenAI-Organization", "OpenAI-Project"),
        key_help=(
            "set OPENAI_API_KEY (it is sent to api.openai.com, to OPENAI_BASE_URL and to this machine), "
            "set CHIMERA_API_KEY for any other service, or pass api_key"
        ),
    )

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        reasoning: bool | None = None,
        tool_calling: ToolCalling = "native",
        **options: Any,
    ) -> None:
        credential = {"Authorization": f"Bearer {api_key.strip()}"} if api_key else {}
        super().__init__(model, base_url=base_url, headers={**credential, **(headers or {})}, **options)
        self._reasoning = reasoning
        if tool_calling not in get_args(ToolCalling):
            raise ConfigError(f"tool calling is 'native' or 'schema', not {tool_calling!r}")
        self._by_schema = tool_calling == "schema"

    def _body(self, model: str, ask: Ask) -> dict[str, Any]:
        messages = in_words(ask.messages, ask.tools) if self._by_schema else ask.messages
        reasoning = bool(_REASONING.match(model)) if self._reasoning is None else self._reasoning
        body: dict[str, Any] = {"model": model, "messages": render_messages(messages)}
        if ask.tools:
            body["tools"] = list(ask.tools)
        if not reasoning:
            body["temperature"] = ask.temperature
        body["max_completion_tokens" if reasoning else "max_tokens"] = ask.max_tokens
        return body

    def _amend(self, body: dict[str, Any], stream: bool) -> None:
        super()._amend(body, stream)
        if self._by_schema:
            constrain(body)
        if stream:
            body.setdefault("stream_options", {"include_usage": True})

    def _new_reader(self, stream: bool, ask: Ask) -> Reader:
        constrained = self._by_schema and bool(ask.tools)
        read_whole = read_constrained if constrained else read_completion
        if not stream:
            return BodyReader(read_whole)
        return EventReader(SchemaAssembler() if constrained else ChatAssembler(), read_whole)
