"""Any service that speaks OpenAI's chat completions protocol: the vendor, routers, and servers of one's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from chimera.providers.answers import BodyReader, EventReader, Reader
from chimera.providers.chat_protocol import ChatAssembler, read_completion, render_messages
from chimera.providers.vendor import Vendor
from chimera.providers.wire import Ask, WireProvider

__all__ = ["OpenAICompatibleProvider"]

_REASONING = re.compile(r"(?:openai/)?(?:o\d|gpt-(?:[5-9]|1\d)(?!\d))", re.IGNORECASE)


def _load() -> Any:
    import openai

    return openai


class OpenAICompatibleProvider(WireProvider):
    """A model behind the chat completions protocol, through the official `openai` SDK.

    Nothing is read from the environment (`create_provider` does that): without `api_key` none is sent. `reasoning` says
    that the model is one of those that take no temperature and limit their output by `max_completion_tokens`; its name
    decides when that is None. The other arguments are those of `WireProvider`.
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
        **options: Any,
    ) -> None:
        credential = {"Authorization": f"Bearer {api_key.strip()}"} if api_key else {}
        super().__init__(model, base_url=base_url, headers={**credential, **(headers or {})}, **options)
        self._reasoning = reasoning

    def _body(self, model: str, ask: Ask) -> dict[str, Any]:
        reasoning = bool(_REASONING.match(model)) if self._reasoning is None else self._reasoning
        body: dict[str, Any] = {"model": model, "messages": render_messages(ask.messages)}
        if ask.tools:
            body["tools"] = list(ask.tools)
        if not reasoning:
            body["temperature"] = ask.temperature
        body["max_completion_tokens" if reasoning else "max_tokens"] = ask.max_tokens
        return body

    def _amend(self, body: dict[str, Any], stream: bool) -> None:
        super()._amend(body, stream)
        if stream:
            body.setdefault("stream_options", {"include_usage": True})

    def _new_reader(self, stream: bool) -> Reader:
        return EventReader(ChatAssembler(), read_completion) if stream else BodyReader(read_completion)
