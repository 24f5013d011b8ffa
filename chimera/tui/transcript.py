"""The transcript of a lane on the screen."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from chimera.tui.colours import component_styles
from chimera.tui.entries import Entry
from chimera.tui.lane_state import LaneState
from chimera.tui.layout import Layout
from chimera.tui.render import STYLES, Lines, render_entry

__all__ = ["Transcript"]


class Transcript(ScrollView, can_focus=True):
    """Shows one lane, and follows its end until somebody scrolls away. Only lines that are seen are drawn."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "previous call", show=False),
        Binding("down,j", "move(1)", "next call", show=False),
        Binding("enter,space", "unfold", "unfold", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"transcript--cursor", *(f"transcript--{name}" for name in STYLES)}

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lane: LaneState | None = None
        self._layout = Layout(self._draw)
        self._styles: dict[str, Style] = {}
        self._following = True
        self._cursor: Entry | None = None
        self._width = 0

    @property
    def lane(self) -> LaneState | None:
        return self._lane

    @property
    def styles_of_parts(self) -> dict[str, Style]:
        """The styles that the stylesheet gives to parts of a transcript."""
        if not self._styles:
            self._styles = component_styles(self, "transcript", STYLES)
        return self._styles

    def show(self, lane: LaneState) -> None:
        """Show another lane, from its end."""
        self._lane, self._cursor, self._following = lane, None, True
        self._layout.reset()
        self.sync()

    def restyle(self) -> None:
        """Draw everything anew, in the colours of another theme."""
        self._styles = {}
        self._layout.reset()
        self.sync()

    def sync(self) -> None:
        """Bring the screen up to the state; does nothing when nothing has changed."""
        if self._lane is None or not self._width or not self._layout.update(self._lane.entries):
            return
        self._fit()
        self.refresh()

    def unfold_all(self) -> None:
        """Unfold every call, or fold them again when all are open."""
        entries = [entry for entry in self._lane.entries if entry.foldable] if self._lane else []
        wanted = not all(entry.open for entry in entries)
        for entry in entries:
            if entry.open is not wanted:
                entry.toggle()
        self.sync()

    def action_move(self, step: int) -> None:
        """Move the cursor to the next entry that can be unfolded."""
        if self._lane is None:
            return
        foldable = [entry for entry in self._lane.entries if entry.foldable]
        if not foldable:
            return
        last = len(foldable) - 1
        at = foldable.index(self._cursor) + step if self._cursor in foldable else last
        self._cursor = foldable[max(0, min(at, last))]
        self._reveal(self._cursor)
        self.refresh()

    def action_unfold(self) -> None:
        if self._cursor is not None:
            self._cursor.toggle()
            self._reveal(self._cursor)
            self.sync()

    def on_click(self, event: events.Click) -> None:
        row = self._layout.row_at(event.y + self.scroll_offset.y)
        if row is None or self._lane is None:
            return
        entry = self._lane.entries[row]
        if entry.foldable:
            self._cursor = entry
            entry.toggle()
            self._following = False
            self.sync()

    def on_resize(self) -> None:
        width = self.scrollable_content_region.width
        if width != self._width:
            self._width = width
            self._layout.reset()
        self.sync()
        self._fit()

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        self._following = new_value >= self.max_scroll_y
        if not self._following:
            self._layout.settle(round(new_value), self.size.height)
            self._resize_content()
        super().watch_scroll_y(old_value, new_value)

    def render_line(self, y: int) -> Strip:
        number = y + self.scroll_offset.y
        width = self.size.width
        base = self.rich_style
        row = self._layout.row_at(number)
        marked = (
            row is not None
            and self._lane is not None
            and self.has_focus
            and self._cursor is self._lane.entries[row]
            and number - self._layout.top_of(row) >= 1
        )
        if marked:
            base += component_styles(self, "transcript", ["cursor"])["cursor"]
        return Strip(self._layout.line(number)).adjust_cell_length(width).apply_style(base)

    def _draw(self, entry: Entry) -> Lines:
        if not self._styles:
            self._styles = {name: self.get_component_rich_style(f"transcript--{name}", partial=True) for name in STYLES}
        return render_entry(entry, self._width, self._styles, dark=self.app.current_theme.dark)

    def _fit(self) -> None:
        """Measure what is seen, and stay at the end when that is where one was."""
        height = self.size.height
        if self._following:
            self._layout.settle_end(height)
        else:
            self._layout.settle(self.scroll_offset.y, height)
        following = self._following
        self._resize_content()
        if following:
            self.scroll_to(y=self.max_scroll_y, animate=False)
            self._following = True

    def _resize_content(self) -> None:
        self.virtual_size = Size(self._width, self._layout.total)

    def _reveal(self, entry: Entry) -> None:
        if self._lane is None:
            return
        row = self._lane.entries.index(entry)
        top, height = self._layout.top_of(row), self._layout.height_of(row)
        if top < self.scroll_offset.y:
            self.scroll_to(y=top, animate=False)
        elif top + height > self.scroll_offset.y + self.size.height:
            self.scroll_to(y=min(top, top + height - self.size.height), animate=False)
