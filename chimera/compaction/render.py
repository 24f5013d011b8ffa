"""Writing a conversation down as plain text."""

from __future__ import annotations

import json
from collections.abc import Sequence

from chimera.types import Message

__all__ = ["render"]

_LONGEST = 4_000  # characters of one entry
_GAP = "\n[... {} characters left out ...]\n"


def render(messages: Sequence[Message], limit: int) -> str:
    """Write `messages` as a record of at most about `limit` characters; long entries and the middle are cut."""
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    return _cut("\n\n".join(_cut(_entry(message, names), _LONGEST) for message in messages), limit)


def _entry(message: Message, names: dict[str, str]) -> str:
    if message.role == "tool":
        return f"RESULT of {names.get(message.call_id or '', 'a tool')}:\n{message.content}"
    lines = [f"{message.role.upper()}:"]
    if message.content:
        lines.append(message.content)
    if message.content_blocks:
        lines.append(f"[{len(message.content_blocks)} further content blocks]")
    for call in message.tool_calls:
        lines.append(f"CALLS {call.name} {json.dumps(call.arguments, default=str, ensure_ascii=False)}")
    return "\n".join(lines)


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = max(limit // 2, 1)
    return text[:half] + _GAP.format(len(text) - 2 * half) + text[-half:]
