"""How the lanes of a race stand, as lines of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text

from chimera.text import one_line
from chimera.tui.lane_state import LaneState
from chimera.tui.state import AppState
from chimera.tui.status import duration, tokens

__all__ = ["scoreboard"]

_HEAD = ("state", "tests", "time", "tokens", "cost", "blocks", "files")
_WIDTHS = (9, 6, 6, 6, 8, 6, 5)
_COLOURS = {"finished": "done", "failed": "failed", "cancelled": "warning", "passed": "done", "asks you": "warning"}


def scoreboard(state: AppState, width: int, styles: Mapping[str, Style]) -> Text:
    """Return one line for each lane, in their order, with a crown for the best one that succeeded; empty without a
    race."""
    scores = {score.name: score for score in state.scores()}
    if not scores:
        return Text()
    room = max(8, width - sum(_WIDTHS) - len(_WIDTHS) - 5)
    room = min(room, max(cell_len(name) for name in scores))
    best = next((name for name, score in scores.items() if score.won), None) if not state.running else None
    quiet = styles.get("quiet", Style.null())
    lines = [_line(f"{'':5}{'lane':<{room}}", _HEAD, {}, quiet)]
    for number, (name, lane) in enumerate(state.lanes.items(), 1):
        mark = "▶" if name == state.current else " "
        crown = "★" if name == best else " "
        label = f"{mark}{crown}{number:>2} {set_cell_size(one_line(name), room)}"
        own = styles.get("name", Style.null()) if name == state.current else Style.null()
        lines.append(_line(label, _cells(lane, scores[name]), styles, own))
    return Text("\n").join(lines)


def _line(label: str, cells: tuple[str, ...], styles: Mapping[str, Style], style: Style) -> Text:
    line = Text(label, style)
    for number, (cell, width) in enumerate(zip(cells, _WIDTHS, strict=True)):
        text = f"{cell:<{width}}" if number < 2 else f"{cell:>{width}}"
        line.append(" ")
        line.append(text, styles.get(_COLOURS.get(cell, ""), Style.null()))
    return line


def _cells(lane: LaneState, score: Any) -> tuple[str, ...]:
    check = "" if score.check is None else "passed" if score.check.passed else "failed"
    used = max(lane.used.tokens_in + lane.used.tokens_out, score.input_tokens + score.output_tokens)
    return (
        "asks you" if lane.asking else score.state,
        check or "-",
        duration(score.seconds),
        tokens(used),
        f"${max(lane.used.cost, score.cost_usd):.4f}",
        str(score.blocks),
        str(score.files) if score.ended else "-",
    )
