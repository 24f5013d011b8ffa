"""What the program says about a run, without secrets: reasons and errors may quote what a policy stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from chimera.core.loop_events import LoopEvent, LoopEventType, LoopResult
from chimera.types import ToolCall, ToolResult

__all__ = ["scrubbed", "scrubbed_text"]

_PLAIN_REASONS = frozenset({"completed", "max_turns", "aborted"})


def scrubbed(event: LoopEvent) -> LoopEvent:
    """Return an event whose decisions, errors and reasons hold no secret; the same one where there was none.

    What the model says and reads, calls and outputs of tools, is the conversation, and left as policies made it.
    """
    scrub = _SCRUBS.get(event.type)
    if scrub is None:
        return event
    data = scrub(event.data)
    return event if data is event.data else LoopEvent(event.type, data, event.turn)


def scrubbed_text(text: str) -> str:
    """Return a reason or an error without secrets."""
    return str(_detector()(text))


@cache
def _detector() -> Callable[[str], str]:
    from chimera.secrets import SecretDetector

    return SecretDetector().scrub


def _decision(event: Any) -> Any:
    from chimera.secrets import scrub_value

    return scrub_value(event, _detector()) if event.reason else event


def _result(data: tuple[ToolCall, ToolResult]) -> tuple[ToolCall, ToolResult]:
    call, result = data
    error = scrubbed_text(result.error) if result.error else result.error
    return data if error is result.error else (call, ToolResult(result.output, error, result.metadata))


def _end(result: LoopResult) -> LoopResult:
    """Scrub the reason, and the output of a run that failed: it repeats the reason."""
    if result.reason in _PLAIN_REASONS:
        return result
    return replace(result, reason=scrubbed_text(result.reason), output=scrubbed_text(result.output))


def _text(data: Any) -> Any:
    return scrubbed_text(data) if isinstance(data, str) else data


_SCRUBS: dict[LoopEventType, Callable[[Any], Any]] = {
    LoopEventType.INTERCEPTOR: _decision,
    LoopEventType.TOOL_RESULT: _result,
    LoopEventType.SYSTEM: _text,
    LoopEventType.ERROR: _text,
    LoopEventType.RESULT: _end,
}
