"""Crowded texts: the frequent literals are followed in another way, and every answer stays what it was."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chimera.secrets import DEFAULT_RULES, SecretDetector
from chimera.secrets.prefilter import BLOCK

DETECTOR = SecretDetector()
STARTS = sorted({start for rule in DEFAULT_RULES for start in rule.starts})
KEY = "sk-ant-abcdefgh0123"
RUNS = st.lists(
    st.tuples(
        st.sampled_from([*STARTS, KEY, " ", "x", "://a:b@", "é", f" {KEY} ", "task-", "eyJhbGciOi.", "\n"]),
        st.integers(1, 3 * BLOCK),
    ),
    min_size=1,
    max_size=8,
).map(lambda runs: "".join((piece * count)[: 2 * BLOCK] for piece, count in runs))


def whole_pass() -> SecretDetector:
    """Return a detector that goes through the whole text, as it does without the literal search."""
    detector = SecretDetector()
    detector._prefilter = None
    return detector


@settings(max_examples=40, deadline=None)
@given(RUNS)
def test_a_crowd_changes_no_answer(text: str) -> None:
    assert DETECTOR.find(text) == whole_pass().find(text)


@pytest.mark.parametrize("start", STARTS)
def test_a_secret_in_a_crowd_of_any_start_is_found(start: str) -> None:
    crowd = (start + " ") * (3 * BLOCK // len(start))
    text = f"{crowd}{KEY} {crowd}"
    assert f" {KEY} " not in DETECTOR.scrub(text)
    assert DETECTOR.scrub(text) == whole_pass().scrub(text)


def test_crowds_that_follow_one_another_are_all_looked_through() -> None:
    """More of them than a walk changes its ways for."""
    crowds = [(start + " ") * (BLOCK // len(start)) for start in STARTS[::12]]
    text = f" {KEY} ".join(crowds)
    assert DETECTOR.scrub(text).count("[redacted]") >= len(crowds) - 1
    assert DETECTOR.find(text) == whole_pass().find(text)


def test_the_longest_start_wins_in_a_crowd_of_a_shorter_one() -> None:
    text = "sk- " * BLOCK + KEY + " sk-" * BLOCK
    assert [match.rule for match in DETECTOR.find(text)] == ["anthropic-key"]


def test_what_is_remembered_of_crowds_is_bounded() -> None:
    detector = SecretDetector()
    for first in STARTS[:50]:
        detector.scrub((first + " ") * BLOCK)
    assert 0 < len(detector._parts) <= 32
