"""Where each entry of a long transcript stands, worked out for what is looked at and guessed for the rest."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence

from rich.segment import Segment

from chimera.tui.entries import Entry
from chimera.tui.render import Lines

__all__ = ["Layout"]

_GUESS = 3
_UNKNOWN = -1


class Layout:
    """Rows of lines, one row for each entry. `draw` makes the lines of an entry; those of the latest rows are kept.

    A row that nobody has looked at has a guessed height, so that a long conversation costs no more than a short one.
    """

    def __init__(self, draw: Callable[[Entry], Lines], *, keep: int = 300) -> None:
        self._draw = draw
        self._keep = keep
        self.reset()

    def reset(self) -> None:
        """Forget everything: the width has changed, or the conversation."""
        self._entries: Sequence[Entry] = ()
        self._heights: list[int] = []
        self._versions: list[int] = []
        self._tops: list[int] = [0]
        self._lines: OrderedDict[int, Lines] = OrderedDict()

    @property
    def total(self) -> int:
        """The number of lines."""
        return self._tops[-1]

    @property
    def rows(self) -> int:
        return len(self._heights)

    def update(self, entries: Sequence[Entry]) -> bool:
        """Look at the entries anew. Returns True when any was added or has changed."""
        if len(entries) < len(self._heights) or (self._heights and entries[0] is not self._entries[0]):
            self.reset()
        changed = len(entries) > len(self._heights) or not self._entries
        self._entries = entries
        for row, (entry, version) in enumerate(zip(entries, self._versions, strict=False)):
            if version not in (entry.version, _UNKNOWN):
                self._versions[row] = _UNKNOWN
                self._lines.pop(row, None)
                changed = True
        for _ in range(len(entries) - len(self._heights)):
            self._heights.append(_GUESS)
            self._versions.append(_UNKNOWN)
            self._tops.append(self._tops[-1] + _GUESS)
        return changed

    def settle(self, top: int, height: int) -> None:
        """Measure the rows that show between `top` and `top + height`."""
        row = self.row_at(max(0, top))
        while row is not None and row < self.rows and self._tops[row] < top + height:
            self._measure(row)
            row += 1

    def settle_end(self, height: int) -> None:
        """Measure the rows that show when the last `height` lines are looked at."""
        needed, row = height, self.rows - 1
        while needed > 0 and row >= 0:
            self._measure(row)
            needed -= self._heights[row]
            row -= 1

    def row_at(self, line: int) -> int | None:
        """Return the row that a line is in, None behind the last one."""
        if not 0 <= line < self.total:
            return None
        return bisect_right(self._tops, line) - 1

    def top_of(self, row: int) -> int:
        return self._tops[row]

    def height_of(self, row: int) -> int:
        return self._heights[row]

    def line(self, number: int) -> list[Segment]:
        """Return a line; an empty one where there is none."""
        row = self.row_at(number)
        if row is None:
            return []
        lines = self._lines_of(row)
        at = number - self._tops[row]
        return lines[at] if at < len(lines) else []

    def _measure(self, row: int) -> None:
        if self._versions[row] == self._entries[row].version:
            return
        height = len(self._lines_of(row))
        self._versions[row] = self._entries[row].version
        if height == self._heights[row]:
            return
        self._heights[row] = height
        for index in range(row, self.rows):
            self._tops[index + 1] = self._tops[index] + self._heights[index]

    def _lines_of(self, row: int) -> Lines:
        lines = self._lines.get(row)
        if lines is None:
            lines = self._lines[row] = self._draw(self._entries[row])
            while len(self._lines) > self._keep:
                self._lines.popitem(last=False)
        else:
            self._lines.move_to_end(row)
        return lines
