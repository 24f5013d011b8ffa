"""A hunk goes where its lines are, and nowhere when that is not one place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.errors import ToolError
from chimera.tools._patch import FilePatch, Hunk, Line, added_text, apply_hunks
from chimera.tools._text import Text, decode


def hunk(*lines: str, hint: int | None = None, headings: tuple[str, ...] = (), at_end: bool = False) -> Hunk:
    return Hunk(tuple(Line(line[0], line[1:]) for line in lines), hint, headings, at_end)


def applied(raw: str, *hunks: Hunk) -> str:
    return apply_hunks(decode(raw.encode()), hunks, "x").raw


@pytest.mark.parametrize(
    ("raw", "hunks", "after"),
    [
        ("a\nb\n", [hunk("-a", "+x")], "x\nb\n"),
        ("a\nb", [hunk("-b", "+x")], "a\nx\n"),
        ("a\nb", [hunk(" b", "+x")], "a\nb\nx\n"),
        ("a\nb", [hunk("-a", " b")], "b"),
        ("a\n", [hunk("-a")], ""),
        ("", [hunk("+a", hint=0)], "a\n"),
        ("a\nb\n", [hunk("+x", hint=1)], "a\nx\nb\n"),
        ("a\nb\n", [hunk("+x")], "a\nb\nx\n"),
        ("a\nb", [hunk("+x")], "a\nb\nx\n"),
        (
            "def f():\n    a\ndef g():\n    a\n",
            [hunk("-    a", "+    b", headings=("def g():",))],
            "def f():\n    a\ndef g():\n    b\n",
        ),
        (
            "class A:\n def f\n  x\nclass B:\n def f\n  x\n",
            [hunk("-  x", "+  y", headings=("class B:", "def f"))],
            "class A:\n def f\n  x\nclass B:\n def f\n  y\n",
        ),
        ("def f():\n    a\n", [hunk("+    first", headings=("def f():",))], "def f():\n    first\n    a\n"),
        ("def f():\n    a\n", [hunk("+last", headings=("def f():",), at_end=True)], "def f():\n    a\nlast\n"),
        ("a\nb\na\n", [hunk("-a", "+x", at_end=True)], "a\nb\nx\n"),
        ("a\nb\na\n", [hunk("-a", "+x", hint=2)], "a\nb\nx\n"),
        ("a\nb\na\n", [hunk("-a", "+x", hint=0), hunk("-a", "+y")], "x\nb\ny\n"),
        ("a\r\nb\r\nc\n", [hunk(" a", "-b", "+x", " c")], "a\r\nx\r\nc\n"),
        ("a\rb\r", [hunk("-b", "+x")], "a\rx\r"),
    ],
)
def test_where_hunks_go(raw: str, hunks: list[Hunk], after: str) -> None:
    assert applied(raw, *hunks) == after


@pytest.mark.parametrize(
    ("raw", "hunks", "words"),
    [
        ("a\nb\n", [hunk("-c")], "hunk 1 of 'x' does not fit: its kept and removed lines are not in the file"),
        ("a\nb\na\n", [hunk("-a")], "fits in several places, at lines 1, 3. Add lines of context"),
        ("a\nb\na\nc\n", [hunk("-a", hint=1)], "several places"),
        ("a\nb\n", [hunk("-b"), hunk("-a")], "hunk 2 of 'x' .* its lines stand at line 1, before the hunk above"),
        ("a\nb\n", [hunk("-a"), hunk("-a")], "hunk 2 .* before the hunk above"),
        ("a\nb\n", [hunk("-a", at_end=True)], "not at the end of the file"),
        ("a\n", [hunk("-a", headings=("def f():",))], "the line 'def f\\(\\):' after @@ is not in the file"),
        ("a\n", [hunk("+x", hint=5)], "adds lines after line 5, but the file has 1 lines"),
        ("    a\n", [hunk("-a")], "White space differs: line 1"),
    ],
)
def test_where_they_do_not(raw: str, hunks: list[Hunk], words: str) -> None:
    with pytest.raises(ToolError, match=words):
        applied(raw, *hunks)


def test_a_bare_last_line_stays_bare_only_at_the_end() -> None:
    bare = Hunk((Line("-", "b"), Line("+", "x", bare=True)))
    assert applied("a\nb\n", bare) == "a\nx"
    assert applied("b\nc\n", bare) == "x\nc\n"


def test_added_files() -> None:
    assert added_text(FilePatch("add", "x", (hunk("+a", "+b"),))) == "a\nb\n"
    assert added_text(FilePatch("add", "x", (Hunk((Line("+", "a", bare=True),)),))) == "a"
    assert added_text(FilePatch("add", "x")) == ""
    with pytest.raises(ToolError, match="do not begin with '\\+'"):
        added_text(FilePatch("add", "x", (hunk("+a", " b"),)))


@given(st.lists(st.sampled_from(["a", "b", ""]), max_size=10), st.sampled_from(["\n", "\r\n", "\r"]), st.booleans())
def test_no_hunks_no_change(lines: list[str], newline: str, ended: bool) -> None:
    text = decode((newline.join(lines) + newline * ended).encode())
    assert apply_hunks(text, (), "x") == Text(text.raw, text.form)
