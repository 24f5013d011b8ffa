"""redactor: no secrets on the wire, none from tools into the conversation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from chimera.core.decisions import InterceptDecision, Interceptors, ProviderRequest
from chimera.core.identity import current_run
from chimera.frozen import freeze
from chimera.plugins.base import BasePlugin
from chimera.plugins.packs._memo import Memos
from chimera.plugins.packs._options import names
from chimera.plugins.registry import ComponentRegistry
from chimera.secrets import REDACTED, SecretDetector, scrub_value
from chimera.types import Message, ToolCall, ToolResult

__all__ = ["RedactorPlugin"]

_OWN_KEY = frozenset({"authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key"})


_IMAGES = ("image", "image_url", "input_image")


class RedactorPlugin(BasePlugin):
    """Scrubs secrets out of provider requests, and out of what tools answer.

    A request is scrubbed for the wire alone, the conversation keeps its originals: the system prompt, every message,
    tool-call arguments at any depth with the keys of their dicts, tool descriptions and schemas, texts in `kwargs`,
    and headers. Output and error text of a tool are scrubbed for good. What stays as it is: images, the metadata of
    results, ids, roles and tool names.

    Headers named in `headers`, in upper or lower case, are replaced as a whole, and the texts of others are scrubbed.
    Without `Authorization` among them, the headers that carry a provider's own key pass as they are: the service
    cannot be used without it.

    `pattern`, a regular expression, takes the place of the rules of `chimera.secrets`; with a group named `secret`
    only that group is replaced. `replacement` is what stands in the place of a secret.

    The two seams fail open, this pack does not: when scrubbing fails, the request is not sent and the result is
    withheld. Raises `ValueError` or `re.error` for options that cannot work.
    """

    def __init__(
        self,
        *,
        pattern: str | re.Pattern[str] | None = None,
        replacement: str = REDACTED,
        headers: Iterable[str] = ("Authorization",),
    ) -> None:
        if not isinstance(replacement, str):
            raise ValueError(f"replacement is a text, not {replacement!r}")
        self._detector = SecretDetector() if pattern is None else SecretDetector.of(pattern)
        self._replacement = replacement
        self._headers = frozenset(name.lower() for name in names(headers, "headers"))
        self._memos = Memos(self._message)

    @property
    def name(self) -> str:
        return "redactor"

    def interceptors(self) -> Interceptors:
        """Return the chains of this redactor, for use without the plugin system."""
        return Interceptors(provider_request=[self._request], tool_result=[self._result])

    def register_interceptors(self, registry: ComponentRegistry) -> None:
        registry.register_interceptors(self.interceptors())

    def deactivate(self) -> None:
        self._memos.clear()

    def _request(self, request: ProviderRequest) -> InterceptDecision | None:
        try:
            clean = self._clean_request(request)
        except Exception as exc:  # the text of `exc` may hold what must not be shown
            return InterceptDecision.block(
                f"redactor: the request could not be scrubbed ({type(exc).__name__}) and was not sent"
            )
        return None if clean is request else InterceptDecision.replace(clean)

    def _result(self, _call: ToolCall, result: ToolResult) -> InterceptDecision | None:
        try:
            output, error = self._value(result.output), self._value(result.error)
        except Exception as exc:
            return InterceptDecision.block(f"redactor: the result could not be scrubbed ({type(exc).__name__})")
        if output is result.output and error is result.error:
            return None
        return InterceptDecision.replace(ToolResult(output, error, result.metadata))

    def _clean_request(self, request: ProviderRequest) -> ProviderRequest:
        run = current_run()
        conversation = run.conversation_id if run is not None else ""
        clean = {
            "messages": self._memos.messages(conversation, request.messages),
            "tools": self._memos.of(conversation).tools(request.tools, self._tools),
            "kwargs": self._kwargs(request.kwargs),
            "headers": self._cleaned_headers(request.headers),
        }
        changed = {name: value for name, value in clean.items() if value is not getattr(request, name)}
        return replace(request, **changed) if changed else request

    def _message(self, message: Message) -> Message:
        content = self._value(message.content)
        calls = tuple(self._call(call) for call in message.tool_calls)
        blocks = tuple(block for block in map(self._block, message.content_blocks) if block is not None)
        parts = (content, *calls, *blocks)
        before = (message.content, *message.tool_calls, *message.content_blocks)
        if len(parts) == len(before) and _same_items(parts, before):
            return message
        return replace(message, content=content, tool_calls=calls, content_blocks=blocks)

    def _call(self, call: ToolCall) -> ToolCall:
        arguments = self._value(call.arguments)
        return call if arguments is call.arguments else ToolCall(call.id, call.name, arguments)

    def _block(self, block: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Scrub a block. A signed thought is left out when it holds a secret: its signature would no longer fit it."""
        if block.get("type") in _IMAGES:
            return block
        clean: Mapping[str, Any] = self._value(block)
        return None if clean is not block and block.get("signature") else clean

    def _tools(self, tools: Any) -> Any:
        if tools is None:
            return None
        clean = [self._tool(tool) for tool in tools]
        return tools if _same_items(clean, tools) else freeze(clean)

    def _tool(self, tool: Mapping[str, Any]) -> Mapping[str, Any]:
        """Scrub a function schema, but for the name: a call of the model could not be matched to another one."""
        clean: Mapping[str, Any] = {
            self._text(key): value if key == "name" else self._schema_part(key, value) for key, value in tool.items()
        }
        return tool if _same_items(clean.values(), tool.values()) else clean

    def _schema_part(self, key: str, value: Any) -> Any:
        return self._tool(value) if key == "function" and isinstance(value, Mapping) else self._value(value)

    def _kwargs(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        clean = {name: self._value(value) for name, value in kwargs.items()}
        return kwargs if _same_items(clean.values(), kwargs.values()) else clean

    def _cleaned_headers(self, headers: dict[str, str] | None) -> dict[str, str] | None:
        if headers is None:
            return None
        clean = {name: self._header(name, text) for name, text in headers.items()}
        return headers if clean == headers else clean

    def _header(self, name: str, text: str) -> str:
        known = name.lower()
        if known in self._headers:
            return self._replacement
        return text if known in _OWN_KEY and "authorization" not in self._headers else self._text(text)

    def _value(self, value: Any) -> Any:
        return scrub_value(value, self._text)

    def _text(self, text: str) -> str:
        return self._detector.scrub(text, self._replacement)


def _same_items(first: Iterable[Any], second: Iterable[Any]) -> bool:
    return all(one is other for one, other in zip(first, second, strict=True))
