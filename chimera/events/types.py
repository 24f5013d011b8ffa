"""What can be observed. Events are records of what happened; nothing that a subscriber does changes it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from chimera.types import AgentResult, Message, PendingApproval, ToolCall, ToolResult

__all__ = [
    "CompactionEvent",
    "Event",
    "InterceptorEvent",
    "ModelRequestEvent",
    "ModelResponseEvent",
    "PermissionEvent",
    "RunFinishedEvent",
    "RunStartedEvent",
    "ToolCallEvent",
    "ToolResultEvent",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What every event says: its type, when (seconds since the epoch), and in which run, conversation and lane."""

    type: str = "event"
    timestamp: float = field(default_factory=time.time)
    run_id: str = ""
    conversation_id: str = ""
    lane: str = ""
    depth: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class InterceptorEvent(Event):
    """An interceptor blocked, replaced, or failed. `decision` is `blocked`, `replaced` or `error`.

    `interceptor` names the callable, `duration_us` is the time it took in microseconds, `version` is the version of
    the plugin that registered it, where there is one.

    `before` and `after` say what a replacement changed: the call or the result, the messages that differ, or the fields
    of the envelope that differ; of a blocked call, `before` is the call. They hold what a policy took out: they are
    there for whoever watches a run as it goes (`LoopEvent`s), never come over an event bus, and are not to be stored.
    """

    type: str = "interceptor"
    seam: str = ""
    decision: str = ""
    reason: str | None = None
    tool_name: str | None = None
    call_id: str | None = None
    interceptor: str = ""
    duration_us: float = 0.0
    version: str = ""
    before: Any = field(default=None, repr=False)
    after: Any = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionEvent(Event):
    """A permission was decided for the effective call. `action` is `allow`, `deny` or `ask`; `source` says who decided
    (`policy`, `hook`, `user`, `nobody`)."""

    type: str = "permission"
    call: ToolCall
    action: str = ""
    reason: str = ""
    rule: str | None = None
    source: str = "policy"
    approval: PendingApproval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallEvent(Event):
    """The effective call is about to run."""

    type: str = "tool_call"
    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultEvent(Event):
    """The effective call was answered: by its tool, or by what kept it from running (`outcome` other than `ran`)."""

    type: str = "tool_result"
    call: ToolCall
    result: ToolResult
    outcome: str = "ran"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequestEvent(Event):
    """A provider call is about to be made; counts only, since the envelope may hold what must not be logged."""

    type: str = "model_request"
    model: str = ""
    messages: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResponseEvent(Event):
    """The model answered; `cost` in US dollars, tokens as the provider counted them."""

    type: str = "model_response"
    message: Message
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionEvent(Event):
    """The durable conversation was shortened from `before` to `after` messages."""

    type: str = "compaction"
    before: int = 0
    after: int = 0
    strategy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStartedEvent(Event):
    """A run begins."""

    type: str = "run_started"
    loop: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinishedEvent(Event):
    """A run ended; `result` is None when it raised."""

    type: str = "run_finished"
    reason: str = ""
    result: AgentResult | None = None
