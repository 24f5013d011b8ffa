"""What a running agent tells its front end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from chimera.frozen import quick_init
from chimera.types import Message

__all__ = ["LoopEvent", "LoopEventType", "LoopResult"]


class LoopEventType(StrEnum):
    """The kinds of `LoopEvent`, with what their `data` holds."""

    STREAM_START = "stream_start"  # the model's name: a provider call begins
    ASSISTANT_CHUNK = "assistant_chunk"  # str
    THINKING_CHUNK = "thinking_chunk"  # str
    ASSISTANT = "assistant"  # Message, with the calls as they left the tool_call seam
    TOOL_USE = "tool_use"  # ToolCall that is about to run
    TOOL_RESULT = "tool_result"  # (effective ToolCall, ToolResult)
    INTERCEPTOR = "interceptor"  # InterceptorEvent
    COMPACT_BOUNDARY = "compact_boundary"  # CompactionEvent
    SYSTEM = "system"  # Message that entered the conversation from a queue, or a str
    ERROR = "error"  # str
    RESULT = "result"  # LoopResult


@quick_init
@dataclass(frozen=True, slots=True)
class LoopEvent:
    """One thing that happened in `turn` (counted from 1; 0 before the first provider call)."""

    type: LoopEventType
    data: Any = None
    turn: int = 0


@dataclass(frozen=True, slots=True)
class LoopResult:
    """How a run ended.

    `reason` is `completed`, `max_turns`, `aborted`, `interceptor_blocked: <reason>`, `blocked_steps_limit: <text>` or
    `error: <text>`. `messages` is the durable conversation without the system prompt, `usage` sums tokens, `cost_usd`
    is in US dollars, `duration_ms` in milliseconds. `policies` are the versions of the plugins that had a say in it.
    """

    reason: str
    messages: list[Message] = field(default_factory=list)
    usage: Mapping[str, int] = field(default_factory=dict)
    cost_usd: float = 0.0
    duration_ms: float = 0.0
    turn_count: int = 0
    output: str = ""
    policies: tuple[str, ...] = ()

    @property
    def success(self) -> bool:
        return self.reason == "completed"

    @property
    def error(self) -> str | None:
        """The reason when it is no success."""
        return None if self.success else self.reason
