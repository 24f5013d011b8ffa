from __future__ import annotations

import pytest

from chimera.tui.lane_state import LaneState
from chimera.tui.state import About, AppState
from chimera.tui.status import duration, frame, status_line, tokens, working_line


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.9, "0s"), (59.9, "59s"), (65, "1m 05s"), (3_599, "59m 59s"), (7_380, "2h 03m")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0"), (999, "999"), (1_234, "1.2k"), (34_900, "34k"), (1_250_000, "1.2M")]
)
def test_tokens(count: int, text: str) -> None:
    assert tokens(count) == text


def state() -> AppState:
    found = AppState(About(mode="ask", plugins=("plan-gate", "redactor")))
    lane = LaneState("", "scripted-1", 128_000)
    lane.context, lane.used.cost, lane.blocked = 12_800, 0.01234, 2
    found.add_lane(lane)
    return found


def test_the_spinner_turns() -> None:
    assert len({frame(tenth / 10) for tenth in range(20)}) == 10


def test_at_rest_nothing_works() -> None:
    assert working_line(state().lane, 1.0) == ""


def test_a_turn_tells_how_long_and_how_much() -> None:
    lane = state().lane
    lane.begin("go", 100.0)
    lane.turn.tokens_in = 1_500
    line = working_line(lane, 165.0)
    assert "Working" in line
    assert "(1m 05s · 1.5k in, 0 out · Esc cancels)" in line
    lane.asking = 1
    assert "Waiting for your answer" in working_line(lane, 165.0)


WHOLE = "scripted-1  context 10% of 128k  $0.0123  ask  2 blocked  plan-gate, redactor"


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (100, WHOLE),
        (len(WHOLE), WHOLE),
        (len(WHOLE) - 3, "scripted-1  context 10% of 128k  $0.0123  ask  2 blocked  plan-gate, reda…"),
        (50, "scripted-1  context 10% of 128k  $0.0123  ask"),
        (10, "scripted-1"),
    ],
)
def test_the_status_line_fits(width: int, line: str) -> None:
    assert status_line(state(), width) == line
    assert len(line) <= max(width, 10)
