"""Making an answer fit to work with before anything else sees it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from chimera.core.identity import new_id
from chimera.frozen import freeze
from chimera.providers.base import Response
from chimera.types import ToolCall

__all__ = ["Answer", "normalize"]


@dataclass(frozen=True, slots=True)
class Answer(Response):
    """A response whose calls are read-only, with unique ids. `problems` maps the id of a call that cannot run to the
    reason."""

    problems: dict[str, str] | None = None


def normalize(response: Any) -> Answer:
    """Return `response`, from any duck-typed provider, as an `Answer`. Raises `TypeError` for what is no response."""
    content = getattr(response, "content", None)
    if content is not None and not isinstance(content, str):
        raise TypeError(f"the provider answered with a {type(content).__name__} where text is due")
    calls: tuple[ToolCall, ...] = ()
    problems: dict[str, str] | None = None
    raw_calls = getattr(response, "tool_calls", None)
    if raw_calls:
        calls, problems = _calls(raw_calls)
    return Answer(
        content or "",
        calls,
        getattr(response, "usage", None) or {},
        getattr(response, "thinking", "") or "",
        getattr(response, "finish_reason", None),
        problems,
    )


def _calls(raw_calls: Iterable[Any]) -> tuple[tuple[ToolCall, ...], dict[str, str] | None]:
    calls: list[ToolCall] = []
    problems: dict[str, str] = {}
    taken: set[str] = set()
    for raw in raw_calls:
        call_id = str(raw.id) if raw.id else ""
        if not call_id or call_id in taken:
            call_id = new_id("call")
        taken.add(call_id)
        arguments, problem = _arguments(raw.arguments)
        if problem is not None:
            problems[call_id] = problem
        calls.append(ToolCall(call_id, str(raw.name or ""), arguments))
    return tuple(calls), problems or None


def _arguments(raw: Any) -> tuple[dict[str, Any], str | None]:
    """Return a read-only JSON object, and what is wrong when the model did not write one."""
    value = raw
    if isinstance(raw, str):
        try:
            value = json.loads(raw) if raw.strip() else {}
        except ValueError:
            value = None
    if isinstance(value, dict) and all(type(key) is str for key in value):
        frozen: dict[str, Any] = freeze(value)
        return frozen, None
    kept: dict[str, Any] = freeze({"unreadable_arguments": raw if isinstance(raw, str) else repr(raw)})
    return kept, "The arguments are not a JSON object, so the call was not run. Send one JSON object."
