"""The messages protocol of Anthropic: conversations to request bodies, answers and their pieces to responses."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from chimera.errors import ProviderProtocolError
from chimera.providers.base import Response, StreamChunk
from chimera.providers.failures import WireError
from chimera.providers.reading import as_count, as_items, as_mapping, as_text, dump_arguments, make_call, read_usage
from chimera.types import Message, ToolCall

__all__ = [
    "Block",
    "MessagesAssembler",
    "may_think",
    "read_message",
    "render_conversation",
    "render_system",
    "render_tools",
]

_FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
_THOUGHTS = ("thinking", "redacted_thinking")
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")

Block = Mapping[str, Any]


def render_system(messages: Sequence[Message]) -> str | list[Block]:
    """Return the `system` of a request: the text of all system messages, as blocks where they hold blocks."""
    systems = [message for message in messages if message.role == "system"]
    blocks = [block for message in systems for block in _blocks(message)]
    if any(message.content_blocks for message in systems):
        return blocks
    return "\n\n".join(block["text"] for block in blocks)


def render_conversation(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the `messages` of a request: everything but the system messages, with neighbours of one role merged.

    Tool messages become results in a user message; empty texts, which the service refuses, are left out.
    """
    turns: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = [] if message.role == "system" else list(_blocks(message))
        if blocks and turns and turns[-1]["role"] == role:
            turns[-1]["content"].extend(blocks)
        elif blocks:
            turns.append({"role": role, "content": blocks})
    return turns


def _blocks(message: Message) -> Iterator[Block]:
    if message.role == "tool":
        yield _tool_result(message)
        return
    thoughts = [block for block in message.content_blocks if block.get("type") in _THOUGHTS]
    yield from thoughts
    if message.content.strip():
        yield {"type": "text", "text": message.content}
    yield from (block for block in message.content_blocks if block.get("type") not in _THOUGHTS)
    yield from (_tool_use(call) for call in message.tool_calls)


def _tool_result(message: Message) -> Block:
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": _wire_id(message.call_id or "")}
    if message.content_blocks:
        text = [{"type": "text", "text": message.content}] if message.content.strip() else []
        result["content"] = [*text, *message.content_blocks]
    elif message.content:
        result["content"] = message.content
    return result


def _tool_use(call: ToolCall) -> Block:
    return {"type": "tool_use", "id": _wire_id(call.id), "name": call.name, "input": dump_arguments(call.arguments)}


def _wire_id(call_id: str) -> str:
    """Return an id that the service takes; ids from other services may hold characters that it refuses."""
    if _ID.fullmatch(call_id):
        return call_id
    return f"call_{hashlib.sha256(call_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def render_tools(tools: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the tools in the service's form; what is in that form already stays as it is."""
    return [_render_tool(tool["function"]) if "function" in tool else tool for tool in tools]


def _render_tool(function: Mapping[str, Any]) -> Mapping[str, Any]:
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    return {"name": function["name"], "description": function.get("description", ""), "input_schema": schema}


def may_think(turns: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether the service takes `thinking` with a budget for this conversation.

    It refuses when the turn that it is to go on with, results of tools, was begun without signed thoughts.
    """
    last_assistant = next((turn for turn in reversed(turns) if turn["role"] == "assistant"), None)
    if last_assistant is None or not any(block.get("type") == "tool_result" for block in turns[-1]["content"]):
        return True
    return last_assistant["content"][0].get("type") in _THOUGHTS


def read_message(payload: Mapping[str, Any]) -> Response:
    """Read a whole answer. Raises `WireError` when it holds none."""
    if not isinstance(payload.get("content"), list):
        raise WireError("the answer has no content", ProviderProtocolError)
    assembler = MessagesAssembler()
    assembler.add({"type": "message_start", "message": payload})
    assembler.add({"type": "message_delta", "delta": payload})
    for index, block in enumerate(as_items(payload["content"])):
        assembler.add({"type": "content_block_start", "index": index, "content_block": block})
    return assembler.response()


class MessagesAssembler:
    """Builds one response from the events of a stream."""

    def __init__(self) -> None:
        self.ended = False
        self.finished = False
        self._blocks: dict[int, _Block] = {}
        self._usage: dict[str, Any] = {}
        self._finish_reason: str | None = None
        self._events = {
            "message_start": self._start,
            "content_block_start": self._block_start,
            "content_block_delta": self._block_delta,
            "message_delta": self._delta,
            "message_stop": self._stop,
        }

    def add(self, payload: Mapping[str, Any]) -> StreamChunk | None:
        """Take the next event, of any type; return what of it can be shown at once."""
        handle = self._events.get(as_text(payload.get("type")))
        return handle(payload) if handle else None

    def response(self) -> Response:
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        return Response(
            "".join(block.text for block in blocks),
            tuple(block.call() for block in blocks if block.kind == "tool_use"),
            self._read_usage(),
            "".join(block.thinking for block in blocks),
            self._finish_reason,
            tuple(block.thought() for block in blocks if block.kind in _THOUGHTS),
        )

    def _start(self, payload: Mapping[str, Any]) -> None:
        self._usage.update(as_mapping(as_mapping(payload.get("message")).get("usage")))

    def _block_start(self, payload: Mapping[str, Any]) -> StreamChunk | None:
        block = _Block(as_mapping(payload.get("content_block")))
        self._blocks[as_count(payload.get("index"))] = block
        return StreamChunk(block.text, block.thinking) if block.text or block.thinking else None

    def _block_delta(self, payload: Mapping[str, Any]) -> StreamChunk | None:
        block = self._blocks.setdefault(as_count(payload.get("index")), _Block({}))
        return block.add(as_mapping(payload.get("delta")))

    def _delta(self, payload: Mapping[str, Any]) -> None:
        usage = as_mapping(payload.get("usage"))
        self._usage.update({name: value for name, value in usage.items() if value is not None})
        reason = as_text(as_mapping(payload.get("delta")).get("stop_reason"))
        if reason:
            self.ended = True
            self._finish_reason = _FINISH_REASONS.get(reason, reason)

    def _stop(self, _payload: Mapping[str, Any]) -> None:
        self.finished = True

    def _read_usage(self) -> dict[str, int]:
        read, written = self._usage.get("cache_read_input_tokens"), self._usage.get("cache_creation_input_tokens")
        total = as_count(self._usage.get("input_tokens")) + as_count(read) + as_count(written)
        return read_usage(total, self._usage.get("output_tokens"), read, written)


class _Block:
    """One block of an answer while its pieces arrive."""

    def __init__(self, start: Mapping[str, Any]) -> None:
        self.kind = as_text(start.get("type"))
        self._start = start
        self._texts = [as_text(start.get("text"))]
        self._thoughts = [as_text(start.get("thinking"))]
        self._signature = as_text(start.get("signature"))
        self._json: list[str] = []

    def add(self, delta: Mapping[str, Any]) -> StreamChunk | None:
        text, thinking = as_text(delta.get("text")), as_text(delta.get("thinking"))
        self._texts.append(text)
        self._thoughts.append(thinking)
        self._json.append(as_text(delta.get("partial_json")))
        self._signature += as_text(delta.get("signature"))
        return StreamChunk(text, thinking) if text or thinking else None

    @property
    def text(self) -> str:
        return "".join(self._texts)

    @property
    def thinking(self) -> str:
        return "".join(self._thoughts)

    def call(self) -> ToolCall:
        arguments = "".join(self._json)
        given = arguments if arguments.strip() else self._start.get("input")
        return make_call(self._start.get("id"), self._start.get("name"), given)

    def thought(self) -> Block:
        if self.kind == "thinking":
            return {"type": "thinking", "thinking": self.thinking, "signature": self._signature}
        return self._start
