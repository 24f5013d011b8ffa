"""Estimating how long a conversation is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chimera.types import Message

__all__ = ["estimate_tokens", "message_tokens"]

CHARACTERS_PER_TOKEN = 4  # a common rule of thumb for English text and code
_OVERHEAD = 4  # tokens for the role and the separators of a message
_MEDIA = 1_500  # tokens for an image or another block that is no text


def estimate_tokens(messages: Iterable[Message]) -> int:
    """Return about how many tokens `messages` take."""
    return sum(map(message_tokens, messages))


def message_tokens(message: Message) -> int:
    """Return about how many tokens one message takes, its calls and content blocks included."""
    characters = len(message.content)
    for call in message.tool_calls:
        characters += len(call.name) + _length(call.arguments)
    blocks = sum(_block_tokens(block) for block in message.content_blocks)
    return -(-characters // CHARACTERS_PER_TOKEN) + blocks + _OVERHEAD


def _block_tokens(block: Mapping[str, Any]) -> int:
    text = block.get("text")
    return -(-len(text) // CHARACTERS_PER_TOKEN) if isinstance(text, str) else _MEDIA


def _length(value: Any) -> int:
    """Return about how many characters `value` takes as JSON."""
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, Mapping):
        return 2 + sum(len(str(key)) + 4 + _length(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return 2 + sum(1 + _length(item) for item in value)
    return len(str(value))
