from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.core.loops._plans import answer_in, failure_of, plan_steps

LINE = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=30)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("", []),
        ("Nothing to do.", []),
        ("1. a\n2. b", ["a", "b"]),
        ("Here it is:\n\n 1) a\n 2) b\n\nThat is all.", ["a", "b"]),
        ("- a\n* b\n+ c", ["a", "b", "c"]),
        ("1. a\n   - detail\n2. b", ["a", "b"]),
        ("1. a\n      1. deeper\n2. b", ["a", "b"]),
        ("1.a\n2.b", []),
        ("1. \n2. b", ["b"]),
        ("It took 3. 5 seconds", []),
        ("1. a\r\n2. b\r\n", ["a", "b"]),
        ("-5 degrees\n--- \n-- x", []),
    ],
)
def test_lists_are_read(text: str, steps: list[str]) -> None:
    assert plan_steps(text) == steps


@given(st.lists(LINE, max_size=12))
def test_a_numbered_list_reads_as_it_was_written(lines: list[str]) -> None:
    assert plan_steps("\n".join(f"{n}. {line}" for n, line in enumerate(lines, 1))) == lines


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    assert all(step.strip() for step in plan_steps(text))
    assert failure_of(text) is None or failure_of(text)


@pytest.mark.parametrize(
    ("plan", "answer"),
    [
        ("ANSWER: 4", "4"),
        ("\n**ANSWER:** 4\n5\n", "4\n5"),
        ("ANSWER:", ""),
        ("ANSWER 4", None),
        ("The ANSWER: 4", None),
        ("1. find the ANSWER: it is there", None),
        ("", None),
    ],
)
def test_answers_are_read(plan: str, answer: str | None) -> None:
    assert answer_in(plan) == answer


@pytest.mark.parametrize(
    ("report", "failure"),
    [
        ("STEP FAILED: no paint", "no paint"),
        ("I tried.\n  **STEP FAILED:** no paint\n", "no paint"),
        ("> STEP FAILED no paint", "no paint"),
        ("STEP FAILED", "no reason was given"),
        ("STEP FAILED:", "no reason was given"),
        ("FAILED tests/test_a.py::test_b", None),
        ("The step failed at first, and then it worked.", None),
        ("It said STEP FAILED: x, which I mended.", None),
        ("STEP FAILEDX", None),
    ],
)
def test_failures_are_read(report: str, failure: str | None) -> None:
    assert failure_of(report) == failure
