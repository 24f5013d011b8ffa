"""The record of what was decided: by interceptors, by permissions, by the person at the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from chimera.events import Event, InterceptorEvent, PermissionEvent
from chimera.tui.diffs import DiffLine, call_diff, text_diff
from chimera.types import Message, ToolCall, ToolResult

__all__ = ["FILTERS", "Decision", "Timeline", "decision_of", "detail_lines"]

FILTERS = ("lane", "seam", "verdict")


@dataclass(frozen=True, slots=True)
class Decision:
    """One verdict. `time` is in seconds since the epoch; `microseconds` is None where nothing was timed."""

    time: float
    lane: str
    seam: str
    verdict: str
    interceptor: str
    version: str = ""
    tool: str = ""
    reason: str = ""
    microseconds: float | None = None
    depth: int = 0
    run: str = ""
    before: Any = field(default=None, repr=False)
    after: Any = field(default=None, repr=False)

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it from every other decision."""
        return self.time, self.lane, self.run, self.seam, self.interceptor, self.verdict, self.tool

    @property
    def bad(self) -> bool:
        return self.verdict in ("blocked", "denied", "error")


class Timeline:
    """All decisions, and which of them are wanted: each filter is a value, or empty for all."""

    def __init__(self) -> None:
        self.decisions: list[Decision] = []
        self.version = 0
        self._places: dict[tuple[object, ...], int] = {}
        self.wanted = dict.fromkeys(FILTERS, "")

    def add(self, decision: Decision) -> None:
        """Take a decision. One that was heard of before takes its place: over a bus it comes sooner, from the loop with
        what it changed."""
        at = self._places.get(decision.key)
        if at is None:
            self._places[decision.key] = len(self.decisions)
            self.decisions.append(decision)
        elif decision.before is not None or decision.after is not None:
            self.decisions[at] = decision
        self.version += 1

    def visible(self) -> list[Decision]:
        """Return what passes the filters, the oldest first."""
        wanted = [(name, value) for name, value in self.wanted.items() if value]
        return [item for item in self.decisions if all(getattr(item, name) == value for name, value in wanted)]

    def choices(self, name: str) -> list[str]:
        """Return the values that the filter `name` can take."""
        return sorted({getattr(item, name) for item in self.decisions})

    def cycle(self, name: str) -> str:
        """Move the filter on to its next value, after the last one to all, and return it."""
        values = ["", *(value for value in self.choices(name) if value)]
        now = self.wanted[name]
        self.wanted[name] = values[(values.index(now) + 1) % len(values)] if now in values else ""
        return self.wanted[name]

    def counts(self, lane: str) -> dict[str, int]:
        """Return how often each verdict fell in a lane."""
        found: dict[str, int] = {}
        for item in self.decisions:
            if item.lane == lane:
                found[item.verdict] = found.get(item.verdict, 0) + 1
        return found


def decision_of(event: Event, lane: str) -> Decision | None:
    """Return what an event says was decided; None for one that decides nothing."""
    if isinstance(event, InterceptorEvent):
        return Decision(
            event.timestamp,
            lane,
            event.seam,
            event.decision,
            event.interceptor,
            event.version,
            event.tool_name or "",
            event.reason or "",
            event.duration_us,
            event.depth,
            event.run_id,
            event.before,
            event.after,
        )
    if isinstance(event, PermissionEvent):
        return _permission(event, lane)
    return None


def _permission(event: PermissionEvent, lane: str) -> Decision | None:
    if event.action == "deny":
        verdict = "denied"
    elif event.action == "allow" and event.source == "user":
        verdict = "approved"
    else:
        return None
    who = f"rule {event.rule}" if event.rule else event.source
    call = event.call
    return Decision(
        event.timestamp,
        lane,
        "permission",
        verdict,
        who,
        "",
        call.name,
        event.reason,
        None,
        event.depth,
        event.run_id,
        call,
    )


def detail_lines(decision: Decision) -> list[DiffLine]:
    """Return what a decision changed, as a difference; the call alone where it was refused."""
    before, after = decision.before, decision.after
    if isinstance(before, ToolCall):
        return call_diff(before, after if isinstance(after, ToolCall) else before)
    if before is None and after is None:
        return []
    return text_diff("\n".join(_lines(before)), "\n".join(_lines(after)))


def _lines(value: Any) -> Iterator[str]:
    match value:
        case Message():
            yield f"{value.role}: {value.content}"
            yield from (f"  call {call.name} {call.arguments}" for call in value.tool_calls)
        case ToolResult():
            yield value.output
            if value.error is not None:
                yield f"error: {value.error}"
        case dict():
            for name, item in value.items():
                yield f"{name}:"
                yield from (f"  {line}" for line in _lines(item))
        case list() | tuple():
            for item in value:
                yield from _lines(item)
        case None:
            return
        case _:
            yield str(value)
