"""The decision timeline: every decision as it happens, filters, and what a decision changed."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import DataTable, Static

from chimera.text import clean, one_line
from chimera.tui.colours import component_styles
from chimera.tui.render import diff_text
from chimera.tui.timeline import FILTERS, Decision, Timeline, detail_lines

__all__ = ["TimelineScreen"]

_COLUMNS = {"time": 8, "seam": 16, "verdict": 8, "tool": 10}
_PARTS = ("added", "removed", "heading", "quiet", "bad", "good", "changed")
_STYLES = {"blocked": "bad", "denied": "bad", "error": "bad", "replaced": "changed", "approved": "good"}
_EMPTY = (
    "Nothing was decided yet. What interceptors block, replace or fail at, what rules deny and what you answer "
    "will stand here."
)


class TimelineScreen(ModalScreen[None]):
    """Shows the timeline, the newest decision last and selected. `utc` shows times in UTC, not in those of the
    machine."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+t,q", "dismiss", "close"),
        *(Binding(name[0], f"cycle('{name}')", f"filter by {name}") for name in FILTERS),
        Binding("x", "clear_filters", "no filter"),
        Binding("tab,enter", "switch", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"timeline--{name}" for name in _PARTS}

    def __init__(self, timeline: Timeline, *, lanes: int = 1, utc: bool = False) -> None:
        super().__init__()
        self._timeline = timeline
        self._lanes = lanes
        self._utc = utc
        self._shown: list[Decision] = []
        self._version = -1

    def compose(self) -> ComposeResult:
        yield Static(id="timeline-title")
        yield Static(_EMPTY, id="timeline-empty")
        table: DataTable[Text] = DataTable(id="timeline-table", cursor_type="row", zebra_stripes=False)
        table.cell_padding = 1
        yield table
        with VerticalScroll(id="timeline-detail"):
            yield Static(id="timeline-text")
        yield Static("Enter: to the detail and back · x: no filter · Esc: close", id="timeline-hint")

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        if self._lanes > 1:
            table.add_column("lane", width=12)
        for name, width in _COLUMNS.items():
            table.add_column(name, width=width)
        used = sum(width + 2 for width in _COLUMNS.values()) + 14 * (self._lanes > 1) + 7
        table.add_column("interceptor: reason", width=max(20, self.app.size.width - used - 3))
        table.add_column(Text("µs", justify="right"), width=5)
        self._styles = component_styles(self, "timeline", _PARTS)
        self.sync()
        table.focus()

    def sync(self) -> None:
        """Show what came since; the cursor stays at the end when it was there."""
        if self._timeline.version == self._version:
            return
        self._version = self._timeline.version
        visible = self._timeline.visible()
        table = self.query_one(DataTable)
        at_end = not self._shown or table.cursor_row >= len(self._shown) - 1
        if visible[: len(self._shown)] != self._shown:
            table.clear()
            self._shown = []
        for decision in visible[len(self._shown) :]:
            table.add_row(*self._cells(decision))
        self._shown = visible
        if at_end and visible:
            table.move_cursor(row=len(visible) - 1)
        self._title()
        self.query_one("#timeline-empty").display = not visible
        table.display = self.query_one("#timeline-detail").display = bool(visible)

    def action_cycle(self, name: str) -> None:
        self._timeline.cycle(name)
        self._version = -1
        self.sync()

    def action_clear_filters(self) -> None:
        self._timeline.wanted.update(dict.fromkeys(FILTERS, ""))
        self._version = -1
        self.sync()

    def action_switch(self) -> None:
        detail = self.query_one("#timeline-detail")
        (self.query_one(DataTable) if detail.has_focus else detail).focus()

    def on_data_table_row_selected(self) -> None:
        self.action_switch()

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        if event.cursor_row < len(self._shown):
            self.query_one("#timeline-text", Static).update(self._detail(self._shown[event.cursor_row]))
            self.query_one("#timeline-detail").scroll_home(animate=False)

    def _title(self) -> None:
        filters = [f"[{name[0]}] {name}: {self._timeline.wanted[name] or 'all'}" for name in FILTERS]
        if self._lanes == 1:
            filters = filters[1:]
        total = len(self._timeline.decisions)
        count = f"{len(self._shown)} of {total}" if len(self._shown) != total else str(total)
        noun = "decision" if total == 1 else "decisions"
        self.query_one("#timeline-title", Static).update(Text(f"{count} {noun}   {'   '.join(filters)}"))

    def _cells(self, decision: Decision) -> list[Text]:
        who = one_line(f"{decision.interceptor} {decision.version}".strip(), 80)
        why = f": {one_line(decision.reason, 200)}" if decision.reason else ""
        spent = "" if decision.microseconds is None else f"{decision.microseconds:.0f}"
        cells = [
            Text(self._time(decision)),
            Text(decision.seam),
            Text(decision.verdict, self._style(decision)),
            Text(one_line(decision.tool or "-", _COLUMNS["tool"])),
            Text(f"{who}{why}", no_wrap=True, overflow="ellipsis"),
            Text(spent, justify="right"),
        ]
        return [Text(one_line(decision.lane, 12)), *cells] if self._lanes > 1 else cells

    def _style(self, decision: Decision) -> Style:
        return self._styles.get(_STYLES.get(decision.verdict, ""), Style.null())

    def _time(self, decision: Decision) -> str:
        from datetime import UTC

        zone = UTC if self._utc else None
        return datetime.fromtimestamp(decision.time, zone).strftime("%H:%M:%S")

    def _detail(self, decision: Decision) -> Text:
        version = f" {clean(decision.version)}" if decision.version else ""
        agent = f", sub-agent {decision.depth} deep" if decision.depth else ""
        about = f" {one_line(decision.tool)}" if decision.tool else ""
        parts = [
            Text.assemble(
                (decision.verdict, self._style(decision)),
                f" by {clean(decision.interceptor)}{version} on {decision.seam}{about}{agent}",
            )
        ]
        if decision.reason:
            parts.append(Text(clean(decision.reason)))
        changes = detail_lines(decision)
        if changes:
            heading = "- before  + after" if decision.after is not None else "the call"
            parts.append(Text(heading, self._styles["heading"]))
            parts += (diff_text(line, self._styles) for line in changes)
        return Text("\n").join(parts)
