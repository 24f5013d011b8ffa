from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.text import clean, clip, details, headline, lay_out, one_line
from chimera.types import ToolCall


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ä 漢 🙂\n\tx", "plain ä 漢 🙂\n\tx"),
        ("ls\x1b[2K\x1b[1Gecho", "ls␛[2K␛[1Gecho"),
        ("rm -rf /\recho hello", "rm -rf /␍echo hello"),
        ("a\r\nb", "a\nb"),
        ("a\x08b\x7f\x00", "a␈b␡␀"),
        ("\x9b2J", "<U+009B>2J"),
        ("safe\u202eevil", "safe<U+202E>evil"),
        ("zero\u200bwidth\ufeff", "zero<U+200B>width<U+FEFF>"),
        ("half \ud83d", "half <U+D83D>"),
    ],
)
def test_what_could_deceive_is_made_visible(text: str, shown: str) -> None:
    assert clean(text) == shown


@given(st.text(st.characters(exclude_categories=())))
def test_clean_text_can_be_encoded_and_moves_no_cursor(text: str) -> None:
    shown = clean(text)
    shown.encode("utf-8")
    assert not set(shown) & {chr(code) for code in (*range(9), *range(11, 32), *range(127, 160), 0x202E, 0x2066)}
    assert clean(shown) == shown


@given(st.text(), st.integers(4, 50))
def test_one_line_is_one_short_line(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert "\n" not in line


def test_clip_counts_what_it_leaves_out() -> None:
    assert clip("a\nb\nc\nd\n", 2) == ("a\nb", 2)
    assert clip("a\nb\n\n", 2) == ("a\nb", 0)
    assert clip("  indented\n", 5) == ("  indented", 0)


@pytest.mark.parametrize(
    ("call", "about"),
    [
        (ToolCall("1", "bash", {"command": "git  status\nls"}), "git status ls"),
        (ToolCall("1", "write_file", {"path": "a.py", "content": "x" * 500}), "a.py"),
        (ToolCall("1", "delegate", {"task": "look"}), "look"),
        (ToolCall("1", "todo", {"todos": [{"content": "a"}, {"content": "b"}]}), "a, b"),
        (ToolCall("1", "todo", {"todos": ["a", 2]}), "a, 2"),
        (ToolCall("1", "todo", {"todos": 3}), ""),
        (ToolCall("1", "todo", {}), ""),
        (ToolCall("1", "bash", {"command": ["ls"]}), '{"command": ["ls"]}'),
        (ToolCall("1", "other", {"b": "ä"}), '{"b": "ä"}'),
        (ToolCall("1", "other"), ""),
    ],
)
def test_a_headline_says_what_a_call_is_about(call: ToolCall, about: str) -> None:
    assert headline(call) == about


def test_details_hold_every_argument_whole() -> None:
    value = {"nested": ["x" * 300]}
    assert list(details({"text": "a\x1bb\n" * 50, "odd\nkey": value})) == [
        ("text", "a␛b\n" * 50),
        ("odd key", json.dumps(value)),
    ]


def test_items_of_an_enumeration_get_lines_of_their_own() -> None:
    assert lay_out("Ways: (1) a; (2) b. f(3) x (y)") == "Ways:\n  (1) a;\n  (2) b. f(3) x (y)"
