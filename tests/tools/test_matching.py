"""Finding a text, and helping when it is not there."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.errors import ToolError
from chimera.tools._matching import find_all, find_lines, line_number, nearest, only_match, places

SMALL = st.text("ab\n", max_size=30)
WANTED = st.text("ab\n", min_size=1, max_size=4)


@given(view=SMALL, wanted=WANTED)
def test_all_occurrences_are_found(view: str, wanted: str) -> None:
    assert list(find_all(view, wanted)) == [match.start() for match in re.finditer(re.escape(wanted), view)]
    overlapping = [at for at in range(len(view)) if view.startswith(wanted, at)]
    assert list(find_all(view, wanted, overlapping=True)) == overlapping


@given(view=SMALL, wanted=st.lists(st.text("ab", max_size=2), min_size=1, max_size=3).filter(any))
def test_whole_lines_are_runs_of_lines(view: str, wanted: list[str]) -> None:
    lines = view.removesuffix("\n").split("\n")
    starts = find_lines(lines, wanted)
    assert starts == [at for at in range(len(lines)) if lines[at : at + len(wanted)] == wanted]
    offsets = [sum(len(line) + 1 for line in lines[:at]) for at in starts]
    assert list(find_all(view, "\n".join(wanted), whole_lines=True, overlapping=True)) == offsets


def test_one_match_is_required() -> None:
    assert only_match("a\nb\n", "b", "it") == 2
    with pytest.raises(
        ToolError, match=r"it is not unique: it starts at lines 1, 3\. Add lines around it until it is, ok"
    ):
        only_match("a\nb\na\n", "a", "it", advice=", ok")
    with pytest.raises(ToolError, match="it was not found"):
        only_match("a\nb\n", "c", "it")


def test_occurrences_that_overlap_are_no_single_match() -> None:
    with pytest.raises(ToolError, match="not unique"):
        only_match("aaa", "aa", "it")


def test_many_places_are_not_all_named() -> None:
    with pytest.raises(ToolError, match=r"lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and more"):
        only_match("a\n" * 1000, "a", "it")
    assert places([1, 2]) == "lines 1, 2"


def test_line_numbers_count_from_one() -> None:
    assert [line_number("a\nb\n", index) for index in range(5)] == [1, 1, 2, 2, 3]


@pytest.mark.parametrize(
    ("view", "wanted", "words"),
    [
        ("x\n    return 1\n", "return 1\n", "line 2 of the file has\n    return 1\n"),
        ("def f():\n\treturn 1\n", "def f():\n    return 1", "line 1 of the file has\ndef f():\n\treturn 1\n"),
        ("alpha\nbeta = 12\n", "beta = 13", "line 2: 'beta = 12'"),
        ("alpha\nbeta\n", "zzzzzzzz", "No line of the file resembles"),
        ("", "a", "No line of the file resembles"),
        ("a", "\n\n", "No line of the file resembles"),
    ],
)
def test_the_nearest_text_is_shown(view: str, wanted: str, words: str) -> None:
    assert words in nearest(view, wanted)


def test_a_long_line_is_not_shown_whole() -> None:
    assert len(nearest("x" * 100_000, "x" * 99_999)) < 500
    assert len(nearest(" y\n" * 10_000, "y\n" * 10_000)) < 2500
