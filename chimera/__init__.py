"""Chimera: run coding agents under policy."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chimera.assembly.driver import render_event
    from chimera.core.loop_events import LoopEvent, LoopEventType
    from chimera.session import AgentSession, TurnResult, run_agent

__all__ = ["AgentSession", "LoopEvent", "LoopEventType", "TurnResult", "render_event", "run_agent"]

# Loaded when first used: a tool that needs only `chimera.types` does not pay for the whole stack.
_HOMES = {
    "AgentSession": "chimera.session",
    "LoopEvent": "chimera.core.loop_events",
    "LoopEventType": "chimera.core.loop_events",
    "TurnResult": "chimera.session",
    "render_event": "chimera.assembly.driver",
    "run_agent": "chimera.session",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
