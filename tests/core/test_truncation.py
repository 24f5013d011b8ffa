"""Keeping huge results out of the conversation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.core.truncation import Truncation
from chimera.errors import MisuseError
from chimera.types import ToolResult


def test_what_fits_is_the_same_object() -> None:
    result = ToolResult("x" * 30_000, "y", {"k": 1})
    assert Truncation().apply(result) is result


def test_the_middle_goes_and_the_note_says_how_much() -> None:
    cut = Truncation(100).apply(ToolResult("a" * 500 + "z" * 500)).output
    assert len(cut) <= 100
    assert cut.startswith("a")
    assert cut.endswith("z")
    head, note, tail = cut.split("\n")
    assert note == f"[... {1000 - len(head) - len(tail)} characters left out ...]"


@pytest.mark.parametrize(("share", "edges"), [(0.0, ("\n", "z")), (1.0, ("a", "\n"))])
def test_the_share_of_the_start(share: float, edges: tuple[str, str]) -> None:
    cut = Truncation(100, share).apply(ToolResult("a" * 500 + "z" * 500)).output
    assert (cut[0], cut[-1]) == edges


def test_output_and_error_are_cut_and_metadata_is_not() -> None:
    result = Truncation(50).apply(ToolResult("x" * 900, "y" * 900, {"k": "z" * 900}))
    assert (len(result.output), len(result.error or ""), len(result.metadata["k"])) == (50, 50, 900)
    assert Truncation(50).apply(ToolResult("x", "y" * 900)).output == "x"


@given(st.text(max_size=400), st.integers(0, 300), st.floats(0, 1))
def test_the_limit_holds_and_cutting_twice_is_cutting_once(text: str, limit: int, share: float) -> None:
    truncation = Truncation(limit, share)
    once = truncation.apply(ToolResult(text))
    assert len(once.output) <= max(limit, 0)
    assert truncation.apply(once) is once
    if len(text) <= limit:
        assert once.output == text


@pytest.mark.parametrize(("limit", "share"), [(-1, 0.5), (10, -0.1), (10, 1.1)])
def test_limits_that_are_none(limit: int, share: float) -> None:
    with pytest.raises(MisuseError, match="max_chars must not be negative"):
        Truncation(limit, share)
