from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from chimera.cli.wrapping import Wrapper


def written(pieces: list[str], width: int = 20, *, terminal: bool = True) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=terminal, color_system=None, highlight=False, markup=False)
    wrapper = Wrapper(console)
    for piece in pieces:
        wrapper.write(piece)
    wrapper.close()
    return out.getvalue()


def test_lines_break_between_words_wherever_the_pieces_end() -> None:
    text = "The quick brown fox jumps over the lazy dog."
    lines = "The quick brown fox\njumps over the lazy\ndog.\n"
    assert written([text]) == lines
    assert written(list(text)) == lines


def test_the_texts_own_lines_and_indents_stay() -> None:
    assert written(["def f():\n    return 1\n\nend"]) == "def f():\n    return 1\n\nend\n"


def test_a_word_that_is_longer_than_a_line_is_left_whole() -> None:
    assert written(["a " + "x" * 30 + " b"]) == "a\n" + "x" * 30 + "\nb\n"


def test_wide_characters_count_as_two() -> None:
    assert written(["漢字漢字 漢字漢字"], width=10) == "漢字漢字\n漢字漢字\n"


def test_nothing_is_broken_where_no_terminal_is() -> None:
    assert written(["word " * 20], terminal=False) == "word " * 19 + "word\n"


def test_nothing_written_ends_no_line() -> None:
    assert written([]) == ""
    assert written(["", "\n"]) == "\n"


@given(st.text(st.sampled_from("ab \n"), max_size=200), st.integers(1, 7))
def test_wrapping_loses_no_word_and_no_line(text: str, size: int) -> None:
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    shown = written(pieces)
    assert shown.split() == text.split()
    assert shown.count("\n") >= text.count("\n")
    assert shown == written([text])
    assert all(len(line) <= 20 or " " not in line.strip() for line in shown.split("\n"))
