"""Text from models, tools and files, made fit for a terminal: it is shown, never obeyed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from chimera.types import ToolCall

__all__ = ["clean", "clip", "details", "headline", "lay_out", "one_line"]

_NAMED = {"bash": "command", "delegate": "task", "search": "pattern", "think": "thought"}
_HEADLINE_LIMIT = 100
# Controls but tab and line feed, marks that reorder or hide text, halves of characters that nobody can encode.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)


def clean(text: str) -> str:
    """Return `text` with everything that could move the cursor, hide or reorder what is shown made visible.

    A person decides by what stands on the screen; an escape sequence in a command must not be able to change that.
    """
    return _UNSAFE.sub(_picture, text.replace("\r\n", "\n"))


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"<U+{code:04X}>"


def one_line(text: str, limit: int = _HEADLINE_LIMIT) -> str:
    """Return `text` as one clean line of at most `limit` characters."""
    line = " ".join(clean(text).split())
    return line if len(line) <= limit else f"{line[: limit - 3]}..."


def clip(text: str, lines: int) -> tuple[str, int]:
    """Return the first `lines` lines of the clean text, and how many were left out."""
    every = clean(text).rstrip("\n").split("\n")
    return "\n".join(every[:lines]), max(0, len(every) - lines)


def headline(call: ToolCall, limit: int = _HEADLINE_LIMIT) -> str:
    """Return what a call is about, in one line: its command, its path, or its arguments."""
    key = _NAMED.get(call.name, "path")
    value = call.arguments.get(key)
    if isinstance(value, str):
        return one_line(value, limit)
    if call.name == "todo":
        todos = call.arguments.get("todos")
        return one_line(", ".join(_todo(item) for item in todos), limit) if isinstance(todos, list) else ""
    return one_line(_json(call.arguments), limit) if call.arguments else ""


def lay_out(text: str) -> str:
    """Return `text` with each item of an enumeration, `(1) ...; (2) ...`, on a line of its own."""
    return re.sub(r" (?=\([1-9]\) )", "\n  ", text)


def details(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield every argument with its whole value as clean text."""
    for key, value in arguments.items():
        yield one_line(str(key)), clean(value if isinstance(value, str) else _json(value))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _todo(item: Any) -> str:
    return str(item.get("content", "")) if isinstance(item, Mapping) else str(item)
