"""The lines around the prompt, in words: what is going on, and what it has cost."""

from __future__ import annotations

from collections.abc import Sequence

from chimera.tui.lane_state import LaneState
from chimera.tui.state import AppState

__all__ = ["duration", "frame", "status_line", "tokens", "working_line"]

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAMES_PER_SECOND = 8
_GAP = "  "


def frame(seconds: float) -> str:
    """Return the picture of the spinner at a time."""
    return _FRAMES[int(seconds * _FRAMES_PER_SECOND) % len(_FRAMES)]


def duration(seconds: float) -> str:
    """Return `9s`, `1m 05s` or `2h 03m`."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02}m"


def tokens(count: int) -> str:
    """Return `940`, `1.2k`, `34k` or `1.2M`."""
    if count < 1_000:
        return str(count)
    if count < 10_000:
        return f"{count / 1_000:.1f}k"
    return f"{count // 1_000}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"


def working_line(lane: LaneState, now: float) -> str:
    """Return what stands above the prompt while a turn runs; empty at rest."""
    if not lane.running:
        return ""
    seconds = now - lane.started
    out = lane.turn.tokens_out + lane.streamed_tokens
    parts = [duration(seconds), f"{tokens(lane.turn.tokens_in)} in, {tokens(out)} out", "Esc cancels"]
    what = "Waiting for your answer" if lane.asking else "Working"
    return f"{frame(seconds)} {what}  ({' · '.join(parts)})"


def status_line(state: AppState, width: int) -> str:
    """Return the last line of the screen: what fits of it, the most important first."""
    lane = state.lane
    parts = [lane.model or "no model", *_context(lane), f"${lane.used.cost:.4f}", state.about.mode]
    if lane.blocked:
        parts.append(f"{lane.blocked} blocked")
    packs = ", ".join(state.about.plugins) or "no plugins"
    return _fitting([part for part in [*parts, packs] if part], width)


def _context(lane: LaneState) -> list[str]:
    if not lane.window:
        return []
    share = 100 * lane.context / lane.window
    return [f"context {share:.0f}% of {tokens(lane.window)}"]


def _fitting(parts: Sequence[str], width: int) -> str:
    """Join as many parts as fit; a last one that does not fit whole is cut when some of it can be read."""
    line = ""
    for part in parts:
        gap = _GAP if line else ""
        room = width - len(line) - len(gap)
        if len(part) <= room:
            line += gap + part
        elif room >= 8:
            return f"{line}{gap}{part[: room - 1]}…"
        else:
            return line
    return line
