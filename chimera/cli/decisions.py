"""The record of what was decided in a session: by interceptors, by permissions, by the person at the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from chimera.core.loop_events import LoopEvent, LoopEventType
from chimera.events import Event, EventBus, EventMiddleware, InterceptorEvent, PermissionEvent
from chimera.text import one_line

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Decision", "DecisionLog", "decision_table"]

_STYLES = {"blocked": "red", "denied": "red", "error": "bold red", "replaced": "yellow", "approved": "green"}


@dataclass(frozen=True, slots=True)
class Decision:
    """One verdict. `seam` is one of the four seams, or `permission`; `microseconds` is None where nothing was timed.

    `decision` is `blocked`, `replaced` or `error` on a seam, `denied` or `approved` by permissions. `depth` is 0 for
    the agent itself and counts up for sub-agents. `version` is that of the plugin that decided, where one did.
    """

    seam: str
    decision: str
    tool: str | None
    interceptor: str
    reason: str | None
    microseconds: float | None
    call_id: str | None = None
    depth: int = 0
    version: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class DecisionLog:
    """Keeps every decision that is published on a bus. What merely passed is not kept.

    With `follows_events` it keeps those that `see` is shown, for a loop that has no bus.
    """

    def __init__(self, bus: EventBus, *, follows_events: bool = False) -> None:
        self.entries: list[Decision] = []
        self._scrub = _scrubber() if follows_events else None
        self._undo: list[Callable[[], None]] = [
            bus.subscribe(InterceptorEvent, self._on_interceptor),
            bus.subscribe(PermissionEvent, self._on_permission),
        ]

    def close(self) -> None:
        """Stop listening."""
        for undo in self._undo:
            undo()

    def see(self, event: LoopEvent) -> None:
        """Look at an event of the run that a front end shows."""
        if self._scrub is not None and event.type is LoopEventType.INTERCEPTOR:
            scrubbed = self._scrub(event.data)
            if scrubbed is not None:
                self._on_interceptor(scrubbed)

    def _on_interceptor(self, event: Event) -> None:
        assert isinstance(event, InterceptorEvent)
        self.entries.append(
            Decision(
                event.seam,
                event.decision,
                event.tool_name,
                event.interceptor,
                event.reason,
                round(event.duration_us, 1),
                event.call_id,
                event.depth,
                event.version,
            )
        )

    def _on_permission(self, event: Event) -> None:
        assert isinstance(event, PermissionEvent)
        if event.action == "deny":
            verdict = "denied"
        elif event.action == "allow" and event.source == "user":
            verdict = "approved"
        else:
            return
        who = f"rule {event.rule}" if event.rule else event.source
        call = event.call
        self.entries.append(
            Decision("permission", verdict, call.name, who, event.reason or None, None, call.id, event.depth)
        )


def _scrubber() -> EventMiddleware:
    from chimera.secrets import RedactionMiddleware

    return RedactionMiddleware()


def decision_table(entries: Iterable[Decision]) -> Table:
    """Return the entries as a table that fits on 80 columns."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("seam", no_wrap=True)
    table.add_column("decision", no_wrap=True)
    table.add_column("tool", overflow="fold", min_width=12)
    table.add_column("interceptor and reason", overflow="fold")
    table.add_column("µs", justify="right", no_wrap=True)
    for entry in entries:
        who = Text(one_line(entry.interceptor))
        if entry.reason:
            who.append(f"\n{one_line(entry.reason, 160)}", "dim")
        verdict = Text(entry.decision, _STYLES.get(entry.decision, ""))
        spent = "" if entry.microseconds is None else f"{entry.microseconds:.0f}"
        table.add_row(entry.seam, verdict, Text(one_line(entry.tool or "-", 40)), who, spent)
    return table
