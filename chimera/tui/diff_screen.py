"""What a lane has done to the project."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from chimera.text import one_line
from chimera.tui.colours import component_styles
from chimera.tui.diffs import unified_lines
from chimera.tui.render import diff_text

__all__ = ["DiffScreen"]

_PARTS = ("added", "removed", "heading", "quiet")
_LINES = 5_000


class DiffScreen(ModalScreen[None]):
    """Shows a unified difference."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,ctrl+g", "dismiss", "close")]
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"diff--{name}" for name in _PARTS}

    def __init__(self, lane: str, diff: str) -> None:
        super().__init__()
        self._lane, self._diff = lane, diff

    def compose(self) -> ComposeResult:
        yield Static(f"What {one_line(self._lane)} did", id="diff-title", markup=False)
        with VerticalScroll(id="diff-body"):
            yield Static(id="diff-text")
        yield Static("Esc: close · /apply does it to the project", id="diff-hint")

    def on_mount(self) -> None:
        styles = component_styles(self, "diff", _PARTS)
        lines = list(unified_lines(self._diff))
        shown = [diff_text(line, styles) for line in lines[:_LINES]]
        if len(lines) > _LINES:
            shown.append(Text(f"… {len(lines) - _LINES} more lines", styles["quiet"]))
        self.query_one("#diff-text", Static).update(Text("\n").join(shown) if shown else "It changed nothing.")
        self.query_one("#diff-body").focus()
