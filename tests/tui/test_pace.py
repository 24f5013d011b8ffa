from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from chimera.tui.pace import REPAINTS_PER_SECOND, Pace


def repaints(pace: Pace, costs: list[float], typing: bool = False, seconds: float = 3.0) -> list[float]:
    """Ask again and again for some seconds, and return when it was time."""
    now, found = 0.0, []
    while now < seconds:
        if typing:
            pace.typed(now)
        if pace.due(now):
            found.append(now)
            now += costs[len(found) % len(costs)]
            pace.painted(now)
        now += 0.01
    return found


@settings(max_examples=30)
@given(st.lists(st.floats(0, 0.2), min_size=1, max_size=5), st.booleans())
def test_never_more_than_fifteen_a_second_and_never_too_seldom(costs: list[float], typing: bool) -> None:
    found = repaints(Pace(), costs, typing)
    gaps = [later - earlier for earlier, later in pairwise(found)]
    assert all(gap >= 1 / REPAINTS_PER_SECOND - 1e-9 for gap in gaps)
    assert all(gap <= 1.25 for gap in gaps)
    assert found


def test_slow_repaints_leave_time_for_keys() -> None:
    found = repaints(Pace(), [0.06])
    assert 3.0 * 0.2 < len(found) * 0.06 < 3.0 * 0.3


def test_while_somebody_types_it_is_seldom() -> None:
    assert len(repaints(Pace(), [0.001], typing=True)) <= 7
    assert len(repaints(Pace(), [0.001])) > 35
