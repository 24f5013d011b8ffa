from __future__ import annotations

from rich.segment import Segment

from chimera.tui.entries import Entry, Remark
from chimera.tui.layout import Layout
from chimera.tui.render import Lines


class Pen:
    """Draws as many lines as a remark says, and counts."""

    def __init__(self) -> None:
        self.drawn: list[str] = []

    def __call__(self, entry: Entry) -> Lines:
        assert isinstance(entry, Remark)
        self.drawn.append(entry.text)
        return [[Segment(f"{entry.text}.{line}")] for line in range(int(entry.text))]


def text(layout: Layout, line: int) -> str:
    return "".join(part.text for part in layout.line(line))


def test_rows_stand_below_each_other() -> None:
    layout = Layout(Pen())
    assert layout.update([Remark("2"), Remark("3"), Remark("1")])
    layout.settle(0, 10)
    assert layout.total == 6
    assert [layout.row_at(line) for line in range(-1, 7)] == [None, 0, 0, 1, 1, 1, 2, None]
    assert [text(layout, line) for line in (0, 1, 2, 5, 6)] == ["2.0", "2.1", "3.0", "1.0", ""]
    assert (layout.top_of(1), layout.height_of(1)) == (2, 3)


def test_only_what_is_seen_is_drawn() -> None:
    pen = Pen()
    layout = Layout(pen)
    layout.update([Remark("2") for _ in range(10_000)])
    layout.settle_end(10)
    assert len(pen.drawn) == 5
    assert [text(layout, layout.total - 1 - back) for back in range(2)] == ["2.1", "2.0"]
    layout.settle(0, 10)
    assert len(pen.drawn) < 15


def test_what_changed_is_drawn_again_and_nothing_else() -> None:
    pen = Pen()
    layout = Layout(pen)
    entries = [Remark("1"), Remark("2")]
    layout.update(entries)
    layout.settle(0, 10)
    assert not layout.update(entries)
    entries[0].text = "4"
    entries[0].touch()
    assert layout.update(entries)
    layout.settle(0, 10)
    assert pen.drawn == ["1", "2", "4"]
    assert [text(layout, line) for line in (3, 4)] == ["4.3", "2.0"]


def test_another_conversation_starts_from_nothing() -> None:
    layout = Layout(Pen())
    layout.update([Remark("1"), Remark("2")])
    assert layout.update([Remark("3"), Remark("1"), Remark("1")])
    layout.settle(0, 10)
    assert layout.total == 5
    assert layout.update([])
    assert (layout.total, layout.rows) == (0, 0)


def test_lines_are_kept_for_the_latest_rows_only() -> None:
    pen = Pen()
    layout = Layout(pen, keep=3)
    layout.update([Remark("1") for _ in range(6)])
    for _ in range(2):
        layout.settle(0, 10)
    assert len(pen.drawn) == 6
    for line in range(6):
        layout.line(line)
    assert len(pen.drawn) == 6 + 6
