"""Claude models through the official `anthropic` SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from chimera.providers.answers import BodyReader, EventReader, Reader
from chimera.providers.messages_protocol import (
    MessagesAssembler,
    may_think,
    read_message,
    render_conversation,
    render_system,
    render_tools,
)
from chimera.providers.vendor import Vendor
from chimera.providers.wire import Ask, WireProvider

__all__ = ["AnthropicProvider"]


def _load() -> Any:
    import anthropic

    return anthropic


class AnthropicProvider(WireProvider):
    """A model behind the messages protocol.

    Nothing is read from the environment (`create_provider` does that): without `api_key` none is sent. The key travels
    as the SDK sends it, in `Authorization`; for a service that wants it elsewhere pass `headers={"x-api-key": ...}`.

    `max_tokens` limits the answers of calls that give no limit. The protocol of today takes no temperature, so it is
    sent only with `sends_temperature`, for services and models that do. `prompt_caching` asks the service to keep the
    conversation so far, which costs a little once and saves most of the price of every further step; None means: at the
    vendor's own address. Thinking is asked for by the keyword argument `thinking` of a call; it is left out while the
    service would refuse it, in the middle of tool calls whose signed thoughts are not in the conversation. The other
    arguments are those of `WireProvider`.
    """

    vendor: ClassVar[Vendor] = Vendor(
        extra="anthropic",
        load=_load,
        client="Anthropic",
        path="/v1/messages",
        base_url="https://api.anthropic.com",
        ambient="ANTHROPIC_CUSTOM_HEADERS",
        own_headers=("Authorization", "X-Api-Key"),
        key_help="set ANTHROPIC_API_KEY (CHIMERA_API_KEY for a service of your own), or pass api_key",
    )

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        max_tokens: int = 16_384,
        sends_temperature: bool = False,
        prompt_caching: bool | None = None,
        **options: Any,
    ) -> None:
        credential = {"Authorization": f"Bearer {api_key.strip()}"} if api_key else {}
        address = base_url.rstrip("/").removesuffix("/v1") if base_url else None
        super().__init__(model, base_url=address, headers={**credential, **(headers or {})}, **options)
        self._max_tokens = max_tokens
        self._sends_temperature = sends_temperature
        self._caches = self._base_url == self.vendor.base_url if prompt_caching is None else prompt_caching

    def _body(self, model: str, ask: Ask) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": model,
            "max_tokens": ask.max_tokens or self._max_tokens,
            "system": render_system(ask.messages) or None,
            "messages": render_conversation(ask.messages),
        }
        if self._caches:
            body["cache_control"] = {"type": "ephemeral"}
        if ask.tools:
            body["tools"] = render_tools(ask.tools)
        if self._sends_temperature:
            body["temperature"] = ask.temperature
        return body

    def _amend(self, body: dict[str, Any], stream: bool) -> None:
        super()._amend(body, stream)
        thinking = body.get("thinking")
        if not isinstance(thinking, Mapping) or thinking.get("type") != "enabled":
            return
        if may_think(body["messages"]):
            body.pop("temperature", None)
        else:
            del body["thinking"]

    def _new_reader(self, stream: bool, ask: Ask) -> Reader:
        return EventReader(MessagesAssembler(), read_message) if stream else BodyReader(read_message)
