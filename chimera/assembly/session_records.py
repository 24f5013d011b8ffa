"""The lines of a session file: what a record holds, and how messages are written and read. See docs/sessions.md."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from chimera.core.loop_events import LoopResult
from chimera.events import InterceptorEvent
from chimera.types import Message, ToolCall

__all__ = [
    "VERSION",
    "conversation_record",
    "decision_record",
    "encode",
    "header_record",
    "message_json",
    "message_record",
    "read_message",
    "read_time",
    "stamp",
    "turn_record",
]

VERSION = 1
"""The version of the format. It grows when a reader of the version before would rebuild another conversation."""

Record = dict[str, Any]


def encode(record: Mapping[str, Any]) -> bytes:
    """Return a record as one line of ASCII, its line feed included. What JSON does not know is written as text."""
    try:
        text = json.dumps(record, default=str, separators=(",", ":"))
    except (TypeError, ValueError):  # a key that is no text, say: policies may build any arguments
        text = json.dumps(_plain(record), default=str, separators=(",", ":"))
    return text.encode("ascii") + b"\n"


def stamp() -> str:
    """Return the time now, in UTC, as records write it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_time(text: object) -> datetime:
    """Return what `stamp` wrote. Raises `ValueError` for anything else."""
    if not isinstance(text, str):
        raise ValueError("a time is a text")
    when = datetime.fromisoformat(text)
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def header_record(session_id: str, project: str, model: str, lane: str) -> Record:
    """Return the first record of a file."""
    about = {"id": session_id, "project": project, "model": model, "created": stamp()}
    return {"type": "session", "version": VERSION, **about, **({"lane": lane} if lane else {})}


def message_record(message: Message) -> Record:
    """Return the record of a message that was added to the end of the conversation."""
    return {"type": "message", "at": stamp(), **message_json(message)}


def conversation_record(messages: Iterable[Message]) -> Record:
    """Return the record of a conversation that takes the place of all messages so far."""
    return {"type": "conversation", "at": stamp(), "messages": [message_json(message) for message in messages]}


def turn_record(result: LoopResult, reason: str) -> Record:
    """Return the record of how a turn ended; `reason` is that of the result, fit to be stored."""
    return {
        "type": "turn",
        "at": stamp(),
        "reason": reason,
        "usage": dict(result.usage),
        "cost_usd": result.cost_usd,
        "duration_ms": round(result.duration_ms, 1),
        "steps": result.turn_count,
        **({"policies": list(result.policies)} if result.policies else {}),
    }


def decision_record(event: InterceptorEvent, reason: str | None) -> Record:
    """Return the record of a decision, without what it was about; `reason` is that of the event, fit to be stored."""
    return {
        "type": "decision",
        "at": stamp(),
        "seam": event.seam,
        "decision": event.decision,
        "tool": event.tool_name,
        "call_id": event.call_id,
        "interceptor": event.interceptor,
        "version": event.version,
        "reason": reason,
        "microseconds": round(event.duration_us, 1),
        "depth": event.depth,
    }


def read_message(record: Any) -> Message:
    """Return the message that a record holds. Raises `ValueError` when it holds none."""
    if not isinstance(record, dict):
        raise ValueError("a message is an object")
    role, content, call_id = record.get("role"), record.get("content"), record.get("call_id")
    blocks = record.get("content_blocks", [])
    if not isinstance(role, str) or not isinstance(content, str) or not isinstance(call_id, str | None):
        raise ValueError("a message has a role and a content, and both are texts")
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise ValueError("the content blocks of a message are objects")
    calls = record.get("tool_calls", [])
    if not isinstance(calls, list):
        raise ValueError("the calls of a message are a list")
    return Message(role, content, tuple(map(_read_call, calls)), call_id, tuple(blocks))


def _read_call(record: Any) -> ToolCall:
    if not isinstance(record, dict):
        raise ValueError("a call is an object")
    call_id, name, arguments = record.get("id"), record.get("name"), record.get("arguments")
    if not isinstance(call_id, str) or not isinstance(name, str) or not isinstance(arguments, dict):
        raise ValueError("a call has an id, a name and arguments")
    return ToolCall(call_id, name, arguments)


def message_json(message: Message) -> Record:
    """Return a message as records hold it; what is empty is left out."""
    record: Record = {"role": message.role, "content": message.content}
    if message.tool_calls:
        record["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls
        ]
    if message.call_id is not None:
        record["call_id"] = message.call_id
    if message.content_blocks:
        record["content_blocks"] = list(message.content_blocks)
    return record


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
