"""The beginning and the end of an output are kept, however long it is."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.tools._output import HeadTail


def collected(limit: int, *chunks: bytes) -> str:
    output = HeadTail(limit)
    for chunk in chunks:
        output.add(chunk)
    return output.text()


@given(st.lists(st.text(max_size=9), max_size=20))
def test_short_output_is_kept_whole(texts: list[str]) -> None:
    assert collected(10_000, *(text.encode() for text in texts)) == "".join(texts)


@given(data=st.binary(max_size=400), size=st.integers(1, 50), limit=st.integers(2, 60))
def test_of_long_output_both_ends_are_kept(data: bytes, size: int, limit: int) -> None:
    text = collected(limit, *(data[at : at + size] for at in range(0, len(data), size)))
    whole = data.decode("utf-8", "replace")
    found = re.search(r"\n?\[\.\.\. (\d+) bytes left out \.\.\.\]\n", text)
    if len(data) <= limit - limit % 2:
        assert text == whole
    else:
        assert found is not None
        assert 0 < int(found[1]) < len(data)


def test_the_cut_is_made_between_lines() -> None:
    lines = "".join(f"line {n:04}\n" for n in range(1000))
    text = collected(1000, lines.encode())
    assert re.fullmatch(r"(line \d{4}\n)+\[\.\.\. \d+ bytes left out \.\.\.\]\n(line \d{4}\n)+", text)
    assert text.startswith("line 0000\n")
    assert text.endswith("line 0999\n")


def test_lines_that_are_too_long_are_cut_all_the_same() -> None:
    assert collected(10, b"a" * 100 + b"b" * 100) == "aaaaa\n[... 190 bytes left out ...]\nbbbbb"


def test_endless_output_takes_little_memory() -> None:
    output = HeadTail(1000)
    for _ in range(10_000):
        output.add(b"x" * 1000)
    assert output.total == 10_000_000
    assert len(output._tail) <= 3000


@pytest.mark.parametrize("data", [b"\xff\xfe", "é".encode()[:1]])
def test_what_is_no_text_does_not_break_it(data: bytes) -> None:
    assert collected(10, data) == data.decode("utf-8", "replace")
