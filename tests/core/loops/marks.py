"""Interceptors that leave a mark in whatever they see, and reading which seams have seen a thing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from chimera.core.interception import InterceptDecision, Interceptors, ProviderRequest
from chimera.types import Message, ToolCall, ToolResult

__all__ = ["marking", "seen_by_body", "seen_by_request", "tool_messages"]

CONTEXT = "[context seam]"
REQUEST = "[provider_request seam]"
CALL = "tool_call_seam"
RESULT = "[tool_result seam]"


def marking() -> Interceptors:
    return Interceptors([mark_context], [mark_request], [mark_call], [mark_result])


def mark_context(messages: list[Message]) -> InterceptDecision:
    return InterceptDecision.replace([*messages, Message.system(CONTEXT)])


def mark_request(request: ProviderRequest) -> InterceptDecision:
    return InterceptDecision.replace(replace(request, messages=[*request.messages, Message.system(REQUEST)]))


def mark_call(call: ToolCall) -> InterceptDecision:
    return InterceptDecision.replace(replace(call, arguments={**call.arguments, CALL: True}))


def mark_result(call: ToolCall, result: ToolResult) -> InterceptDecision:
    return InterceptDecision.replace(replace(result, output=f"{result.output} {RESULT}"))


def seen_by_request(request: Any) -> set[str]:
    """Return the seams that saw the envelope of a recorded request."""
    texts = [message.content for message in request.messages]
    return {seam for seam, mark in (("context", CONTEXT), ("provider_request", REQUEST)) if mark in texts}


def seen_by_body(arguments: dict[str, Any], answer: str) -> set[str]:
    """Return the seams that saw a call whose body was entered with `arguments` and whose answer reads so."""
    return {seam for seam, seen in (("tool_call", CALL in arguments), ("tool_result", RESULT in answer)) if seen}


def tool_messages(messages: Iterable[Message]) -> list[str]:
    return [message.content for message in messages if message.role == "tool"]
