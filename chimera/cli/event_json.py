"""Events of a run as JSON objects, for programs that read the output of `chimera code -p`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chimera.cli.decisions import Decision
from chimera.core.loop_events import LoopEvent, LoopEventType, LoopResult
from chimera.events import CompactionEvent, InterceptorEvent
from chimera.types import Message, ToolCall, ToolResult

__all__ = ["answer", "event_json", "result_json"]


def answer(result: LoopResult) -> str:
    """Return what a run answered: nothing where somebody ended it before it could."""
    return "" if result.reason == "aborted" else result.output


def event_json(event: LoopEvent, decisions: Sequence[Decision]) -> dict[str, Any]:
    """Return one event: `type`, `turn`, and what its data holds. The last one, `result`, is that of `result_json`."""
    if event.type is LoopEventType.RESULT:
        fields = result_json(event.data, decisions)
    else:
        fields = _FIELDS[event.type](event.data)
    return {"type": str(event.type), "turn": event.turn, **fields}


def result_json(result: LoopResult, decisions: Sequence[Decision]) -> dict[str, Any]:
    """Return how a run ended. `steps` counts answers of the model, `duration_ms` is in milliseconds."""
    return {
        "text": answer(result),
        "reason": result.reason,
        "success": result.success,
        "usage": dict(result.usage),
        "cost_usd": result.cost_usd,
        "steps": result.turn_count,
        "duration_ms": round(result.duration_ms, 1),
        "decisions": [decision.as_json() for decision in decisions],
    }


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "arguments": call.arguments}


def _message(message: Message) -> dict[str, Any]:
    return {"text": message.content, "tool_calls": [_call(call) for call in message.tool_calls]}


def _result(data: tuple[ToolCall, ToolResult]) -> dict[str, Any]:
    call, result = data
    return {"call": _call(call), "output": result.output, "error": result.error}


def _decision(event: InterceptorEvent) -> dict[str, Any]:
    return {
        "seam": event.seam,
        "decision": event.decision,
        "tool": event.tool_name,
        "call_id": event.call_id,
        "interceptor": event.interceptor,
        "version": event.version,
        "reason": event.reason,
        "microseconds": round(event.duration_us, 1),
        "depth": event.depth,
    }


def _boundary(event: CompactionEvent) -> dict[str, Any]:
    return {"before": event.before, "after": event.after, "strategy": event.strategy}


def _system(data: Message | str) -> dict[str, Any]:
    return {"text": data.content if isinstance(data, Message) else data}


_FIELDS: dict[LoopEventType, Callable[[Any], dict[str, Any]]] = {
    LoopEventType.STREAM_START: lambda model: {"model": model},
    LoopEventType.ASSISTANT_CHUNK: lambda text: {"text": text},
    LoopEventType.THINKING_CHUNK: lambda text: {"text": text},
    LoopEventType.ASSISTANT: _message,
    LoopEventType.TOOL_USE: lambda call: {"call": _call(call)},
    LoopEventType.TOOL_RESULT: _result,
    LoopEventType.INTERCEPTOR: _decision,
    LoopEventType.COMPACT_BOUNDARY: _boundary,
    LoopEventType.SYSTEM: _system,
    LoopEventType.ERROR: lambda text: {"text": text},
}
