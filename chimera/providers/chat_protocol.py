"""The chat completions protocol: conversations to request bodies, answers and their pieces to responses.

Services that speak it differ in many small ways. Rendering keeps to what all of them take; reading takes what any of
them is known to send.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from chimera.errors import ProviderProtocolError
from chimera.providers.base import Response, StreamChunk
from chimera.providers.failures import WireError
from chimera.providers.reading import (
    as_items,
    as_mapping,
    as_text,
    dump_arguments,
    make_call,
    parse_arguments,
    read_usage,
)
from chimera.types import Message, ToolCall

__all__ = ["ChatAssembler", "read_completion", "render_messages"]

_FINISH_REASONS = {
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_length": "length",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "safety": "content_filter",
}
_REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")
_FOREIGN_BLOCKS = ("thinking", "redacted_thinking")


def render_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the `messages` of a request body."""
    return [_render(message) for message in messages]


def _render(message: Message) -> dict[str, Any]:
    rendered: dict[str, Any] = {"role": message.role, "content": _content(message)}
    if message.role == "tool":
        rendered["tool_call_id"] = message.call_id or ""
    if message.tool_calls:
        rendered["tool_calls"] = [_render_call(call) for call in message.tool_calls]
        rendered["content"] = rendered["content"] or None
    return rendered


def _content(message: Message) -> str | list[Any]:
    blocks = [block for block in message.content_blocks if block.get("type") not in _FOREIGN_BLOCKS]
    if not blocks:
        return message.content
    text = [{"type": "text", "text": message.content}] if message.content else []
    return [*text, *blocks]


def _render_call(call: ToolCall) -> dict[str, Any]:
    arguments = json.dumps(dump_arguments(call.arguments), ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def read_completion(payload: Mapping[str, Any]) -> Response:
    """Read a whole answer. Raises `WireError` when it holds none."""
    assembler = ChatAssembler()
    if not as_items(payload.get("choices")):
        raise WireError("the answer has no choices", ProviderProtocolError)
    assembler.add(payload)
    return assembler.response()


class ChatAssembler:
    """Builds one response from the chunks of a stream, or from a whole completion as its only chunk."""

    def __init__(self) -> None:
        self.ended = False
        self.finished = False
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._refusals: list[str] = []
        self._calls = _CallSlots()
        self._usage = read_usage(0, 0, 0, 0)
        self._finish_reason: str | None = None

    def add(self, payload: Mapping[str, Any]) -> StreamChunk | None:
        """Take the next chunk; return what of it can be shown at once."""
        usage = as_mapping(payload.get("usage"))
        if usage:
            self._usage = _read_usage(usage)
        shown = [self._choice(choice) for choice in as_items(payload.get("choices")) if not choice.get("index")]
        text, thinking = "".join(text for text, _ in shown), "".join(thought for _, thought in shown)
        return StreamChunk(text, thinking) if text or thinking else None

    def response(self) -> Response:
        calls = tuple(self._calls.calls())
        reason = self._finish_reason
        if calls and reason in (None, "stop"):
            reason = "tool_calls"
        text = "".join(self._texts) or "".join(self._refusals)
        return Response(text, calls, self._usage, "".join(self._thoughts), reason)

    def _choice(self, choice: Mapping[str, Any]) -> tuple[str, str]:
        reason = as_text(choice.get("finish_reason"))
        if choice.get("error") or reason == "error":
            raise WireError.from_body({"error": choice.get("error") or {"type": "server_error"}})
        if reason:
            self.ended = True
            self._finish_reason = _FINISH_REASONS.get(reason.lower(), reason.lower())
        whole = as_mapping(choice.get("message"))
        delta = whole or as_mapping(choice.get("delta"))
        self._take_calls(delta, bool(whole))
        text = as_text(delta.get("content")) or as_text(choice.get("text"))
        thinking = next((found for name in _REASONING_FIELDS if (found := as_text(delta.get(name)))), "")
        self._texts.append(text)
        self._thoughts.append(thinking)
        self._refusals.append(as_text(delta.get("refusal")))
        return text, thinking

    def _take_calls(self, delta: Mapping[str, Any], whole: bool) -> None:
        for entry in as_items(delta.get("tool_calls")):
            self._calls.add(entry, whole)
        old_style = as_mapping(delta.get("function_call"))
        if old_style:
            self._calls.add({"index": 0, "function": old_style}, whole)


class _Slot:
    """One tool call while its pieces arrive."""

    def __init__(self) -> None:
        self.id: object = None
        self.name = ""
        self.parts: list[str] = []
        self.object: dict[str, Any] | None = None

    def add(self, call_id: object, name: str, arguments: object) -> None:
        self.id = self.id or call_id
        if not self.name or (name != self.name and not self.has_arguments):
            self.name += name
        if isinstance(arguments, dict):
            self.object = arguments
        elif isinstance(arguments, str):
            self.parts.append(arguments)
        elif arguments is not None:
            self.parts.append(json.dumps(arguments))

    @property
    def has_arguments(self) -> bool:
        return self.object is not None or any(self.parts)

    @property
    def arguments(self) -> object:
        text = "".join(self.parts)
        return self.object if self.object is not None and not text.strip() else text

    @property
    def closed(self) -> bool:
        return self.has_arguments and isinstance(parse_arguments(self.arguments), dict)


class _CallSlots:
    """Sorts the pieces of tool calls: by index where there is one, else by id, else to the call that came last."""

    def __init__(self) -> None:
        self._slots: list[_Slot] = []
        self._by_index: dict[int, _Slot] = {}

    def add(self, entry: Mapping[str, Any], whole: bool) -> None:
        function = as_mapping(entry.get("function")) or entry
        name, call_id, arguments = as_text(function.get("name")), entry.get("id"), function.get("arguments")
        index = entry.get("index")
        index = index if isinstance(index, int) else None
        slot = None if whole else self._find(index, call_id)
        if slot is None or _starts_another(slot, index, call_id, name, arguments):
            slot = _Slot()
            self._slots.append(slot)
        if index is not None:
            self._by_index[index] = slot
        slot.add(call_id, name, arguments)

    def calls(self) -> Iterator[ToolCall]:
        for slot in self._slots:
            if slot.id or slot.name or slot.has_arguments:
                yield make_call(slot.id, slot.name, slot.arguments)

    def _find(self, index: int | None, call_id: object) -> _Slot | None:
        if index is not None:
            return self._by_index.get(index)
        if call_id:
            return next((slot for slot in reversed(self._slots) if slot.id == call_id), None)
        return self._slots[-1] if self._slots else None


def _starts_another(slot: _Slot, index: int | None, call_id: object, name: str, arguments: object) -> bool:
    """Tell a new call from the next piece of one, where a service gives several calls the same index, or none."""
    if call_id and slot.id and call_id != slot.id:
        return True
    if not name or not slot.name:
        return False
    if index is None and not call_id:
        return True
    more = arguments.strip() if isinstance(arguments, str) else arguments
    return bool(more) and slot.closed


def _read_usage(usage: Mapping[str, Any]) -> dict[str, int]:
    details = as_mapping(usage.get("prompt_tokens_details"))
    return read_usage(
        usage.get("prompt_tokens", usage.get("input_tokens")),
        usage.get("completion_tokens", usage.get("output_tokens")),
        details.get("cached_tokens", usage.get("prompt_cache_hit_tokens")),
        details.get("cache_write_tokens"),
    )
