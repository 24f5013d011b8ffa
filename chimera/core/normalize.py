"""Making an answer fit to work with before anything else sees it."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from chimera.core.identity import new_id
from chimera.frozen import FrozenDict, freeze_json, quick_init
from chimera.providers.base import Response
from chimera.types import ToolCall

__all__ = ["Answer", "normalize"]

_UNREADABLE = "unreadable_arguments"


@quick_init
@dataclass(frozen=True, slots=True)
class Answer(Response):
    """A response whose calls are read-only, with unique ids. `problems` maps the id of a call that cannot run to the
    reason."""

    problems: Mapping[str, str] | None = None


def normalize(response: Any) -> Answer:
    """Return `response`, from any duck-typed provider, as an `Answer`. Raises `TypeError` for what is no response.

    An `Answer` that comes again, changed or not, keeps what is known of calls that cannot run.
    """
    given = response if isinstance(response, Response) else _as_response(response)
    content, usage = given.content, given.usage
    if content is not None and not isinstance(content, str):
        raise TypeError(f"the provider answered with a {type(content).__name__} where text is due")
    calls: tuple[ToolCall, ...] = ()
    problems: dict[str, str] | None = None
    if given.tool_calls:
        calls, problems = _calls(given.tool_calls, getattr(given, "problems", None) or {})
    return Answer(
        content or "",
        calls,
        usage if type(usage) is dict or isinstance(usage, Mapping) else {},
        given.thinking or "",
        given.finish_reason,
        _blocks(given.content_blocks) if given.content_blocks else (),
        problems,
    )


def _as_response(duck: Any) -> Response:
    """Return what another kind of object says as a `Response`, whatever its fields hold."""
    if not hasattr(duck, "content"):
        _refuse(duck)
    names = ("content", "tool_calls", "usage", "thinking", "finish_reason", "content_blocks", "problems")
    said: list[Any] = [getattr(duck, name, None) for name in names]
    return Answer(*said)


def _refuse(response: Any) -> NoReturn:
    if inspect.iscoroutine(response):
        response.close()
    raise TypeError(f"the provider answered with a {type(response).__name__}, which is no response")


def _blocks(raw: Any) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(raw, list | tuple) or not all(isinstance(block, dict) for block in raw):
        raise TypeError("the provider answered with content blocks that are no list of JSON objects")
    return tuple(freeze_json(block) for block in raw)


def _calls(
    raw_calls: Iterable[Any], known_problems: Mapping[str, str]
) -> tuple[tuple[ToolCall, ...], dict[str, str] | None]:
    calls: list[ToolCall] = []
    problems: dict[str, str] = {}
    taken: set[str] = set()
    for raw in raw_calls:
        call_id = str(getattr(raw, "id", None) or "")
        arguments, problem = _arguments(getattr(raw, "arguments", None))
        if problem is None and _UNREADABLE in arguments and len(arguments) == 1:
            problem = known_problems.get(call_id)
        if not call_id or call_id in taken:
            call_id = new_id("call")
        taken.add(call_id)
        if problem is not None:
            problems[call_id] = problem
        calls.append(ToolCall(call_id, str(getattr(raw, "name", None) or ""), arguments))
    return tuple(calls), problems or None


def _arguments(raw: Any) -> tuple[dict[str, Any], str | None]:
    """Return a read-only JSON object, and what is wrong when the model did not write one."""
    try:
        value = _parsed(raw) if isinstance(raw, str) else raw
        if isinstance(value, dict):
            frozen: dict[str, Any] = freeze_json(value)
            return frozen, None
        why = f"this is a JSON {type(value).__name__}" if isinstance(raw, str) else f"this is {type(raw).__name__}"
    except (ValueError, TypeError) as exc:
        why = str(exc)
    except RecursionError:
        why = "it nests too deep"
    kept = FrozenDict({_UNREADABLE: raw if isinstance(raw, str) else repr(raw)})
    return kept, f"The arguments are not a JSON object ({why}), so the call was not run. Send one JSON object."


def _parsed(text: str) -> Any:
    return json.loads(text, parse_constant=_no_number) if text.strip() else {}


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")
