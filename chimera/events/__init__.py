"""Observation: an event bus and the events that runs publish on it."""

from chimera.events.bus import EventBus, EventMiddleware, Subscriber
from chimera.events.types import (
    CompactionEvent,
    Event,
    InterceptorEvent,
    ModelRequestEvent,
    ModelResponseEvent,
    PermissionEvent,
    RunFinishedEvent,
    RunStartedEvent,
    ToolCallEvent,
    ToolResultEvent,
)

__all__ = [
    "CompactionEvent",
    "Event",
    "EventBus",
    "EventMiddleware",
    "InterceptorEvent",
    "ModelRequestEvent",
    "ModelResponseEvent",
    "PermissionEvent",
    "RunFinishedEvent",
    "RunStartedEvent",
    "Subscriber",
    "ToolCallEvent",
    "ToolResultEvent",
]
