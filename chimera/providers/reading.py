"""Tolerant reading of what services answer. They differ; these functions take what is there and invent nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from chimera.types import ToolCall

__all__ = [
    "as_count",
    "as_items",
    "as_mapping",
    "as_text",
    "dump_arguments",
    "join_texts",
    "make_call",
    "parse_arguments",
    "read_usage",
]

_UNREADABLE = "unreadable_arguments"


def as_text(value: object) -> str:
    """Return a text as it is, a list of text parts joined, and anything else as the empty text."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_part_text(part) for part in value)
    return ""


def _part_text(part: object) -> str:
    if isinstance(part, Mapping):
        return as_text(part.get("text")) if part.get("type") in ("text", "output_text", None) else ""
    return part if isinstance(part, str) else ""


def as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def as_items(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a JSON list; nothing for anything that is no list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def as_count(value: object) -> int:
    """Return a number of tokens; 0 for what is no number, or a negative one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        return 0
    return int(value)


def read_usage(input_tokens: object, output_tokens: object, cache_read: object, cache_write: object) -> dict[str, int]:
    """Build a `Response.usage`: both totals always, the cached parts of the input only where there are any."""
    usage = {"input_tokens": as_count(input_tokens), "output_tokens": as_count(output_tokens)}
    parts = {"cache_read_tokens": as_count(cache_read), "cache_write_tokens": as_count(cache_write)}
    return usage | {name: count for name, count in parts.items() if count}


def parse_arguments(value: object) -> dict[str, Any] | str:
    """Return the arguments of a tool call: the JSON object that `value` is or spells, or else the text itself.

    Nothing (None, or a blank text) is an empty object. A text means that the call must not run.
    """
    if isinstance(value, dict):
        return value
    if value is None:
        return {}
    text = value if isinstance(value, str) else json.dumps(value)
    if not text.strip():
        return {}
    try:
        parsed = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return text
    return parsed if isinstance(parsed, dict) else text


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def make_call(call_id: object, name: object, arguments: object) -> ToolCall:
    """Build the call that a service described; the id stays as it came, and a missing one is the empty text."""
    parsed: Any = parse_arguments(arguments)
    number = str(call_id) if isinstance(call_id, int) and not isinstance(call_id, bool) else ""
    return ToolCall(as_text(call_id) or number, as_text(name), parsed)


def dump_arguments(arguments: object) -> dict[str, Any]:
    """Return the arguments of an earlier call as an object that every service takes back.

    A text that was no JSON object is wrapped in one: several services refuse a conversation that holds such a text.
    """
    parsed = parse_arguments(arguments)
    return parsed if isinstance(parsed, dict) else {_UNREADABLE: parsed}


def join_texts(texts: Iterable[str]) -> str:
    """Join the texts that are not blank with an empty line between them."""
    return "\n\n".join(text for text in texts if text.strip())
