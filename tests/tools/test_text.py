"""Text comes out with plain line ends, and goes back with every byte that nobody changed."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.errors import ToolError
from chimera.tools._paths import Project
from chimera.tools._text import Form, NotText, Text, decode, load_text

ENDS = st.sampled_from(["\n", "\r\n", "\r"])
BODIES = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0\ufeff"), max_size=8)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Texts with any mixture of line ends."""
    return "".join(body + draw(ENDS) for body in draw(st.lists(BODIES, max_size=8))) + draw(BODIES)


@pytest.mark.parametrize(
    ("data", "raw", "encoding"),
    [
        (b"", "", "utf-8"),
        ("grün".encode(), "grün", "utf-8"),
        (codecs.BOM_UTF8 + b"x", "x", "utf-8"),
        (codecs.BOM_UTF16_LE + "grün\n".encode("utf-16-le"), "grün\n", "utf-16-le"),
        (codecs.BOM_UTF16_BE + "grün\n".encode("utf-16-be"), "grün\n", "utf-16-be"),
        (codecs.BOM_UTF32_LE + "grün\n".encode("utf-32-le"), "grün\n", "utf-32-le"),
        (codecs.BOM_UTF32_BE + "grün\n".encode("utf-32-be"), "grün\n", "utf-32-be"),
        ("grün €".encode("cp1252"), "grün €", "cp1252"),
        (b"gr\xfcn \x81", "grün \x81", "latin-1"),
        (b"\x1b[1mbold\x1b[0m \xe9", "\x1b[1mbold\x1b[0m é", "cp1252"),
    ],
)
def test_encodings_are_recognised_and_kept(data: bytes, raw: str, encoding: str) -> None:
    text = decode(data)
    assert (text.raw, text.form.encoding) == (raw, encoding)
    assert text.encode() == data


@pytest.mark.parametrize(
    "data",
    [
        b"a\0b",
        b"\x89PNG\r\n\x1a\n\0\0",
        b"\x1f\x8b\x08\xff\xfe",
        b"\xff\xfea",
        b"\x01\x02\xff",
        codecs.BOM_UTF8 + b"\xff",
    ],
)
def test_binary_data_is_no_text(data: bytes) -> None:
    with pytest.raises(NotText):
        decode(data)


def test_the_start_of_a_longer_file_may_end_within_a_character() -> None:
    data = "ü".encode()[:1]
    assert decode(b"x" + data, cut=True).form.encoding == "utf-8"
    assert decode(b"x" + data).form.encoding == "cp1252"


@pytest.mark.parametrize(
    ("raw", "newline"),
    [
        ("a\nb\n", "\n"),
        ("a\r\nb\r\n", "\r\n"),
        ("a\rb\r", "\r"),
        ("a\r\nb\r\nc\n", "\r\n"),
        ("a\r\nb\n", "\n"),
        ("a\rb\n", "\n"),
        ("", "\n"),
        ("one line", "\n"),
    ],
)
def test_the_line_end_of_most_lines_counts(raw: str, newline: str) -> None:
    assert decode(raw.encode()).form.newline == newline


@given(raw=texts(), data=st.data())
def test_a_splice_changes_what_it_names_and_nothing_else(raw: str, data: st.DataObject) -> None:
    text = decode(raw.encode())
    view = text.view
    start = data.draw(st.integers(0, len(view)))
    end = data.draw(st.integers(start, len(view)))
    new = data.draw(BODIES)
    spliced = text.spliced([(start, end, new)])
    assert spliced.view == view[:start] + new + view[end:] or "\r" in raw
    head, tail = _raw_parts(text, start, end)
    assert spliced.raw == head + new + tail
    assert text.spliced([(start, end, view[start:end])]).view == view or "\r" in raw


def _raw_parts(text: Text, start: int, end: int) -> tuple[str, str]:
    """Find by counting what `spliced` finds by bisection."""
    widths = []
    index = 0
    while index < len(text.raw):
        pair = text.form.newline != "\r" and text.raw.startswith("\r\n", index)
        widths.append(2 if pair else 1)
        index += widths[-1]
    return text.raw[: sum(widths[:start])], text.raw[sum(widths[:end]) :]


@given(raw=texts())
def test_no_splice_no_change(raw: str) -> None:
    text = decode(raw.encode())
    assert text.spliced([]).encode() == raw.encode()
    if text.form.newline != "\r":
        assert text.view == raw.replace("\r\n", "\n")


@given(st.binary(max_size=64))
def test_whatever_is_text_survives_the_round_trip(data: bytes) -> None:
    try:
        text = decode(data)
    except NotText:
        return
    assert text.encode() == data


def test_new_lines_take_the_ends_of_the_file() -> None:
    assert decode(b"a\r\nb\r\n").spliced([(2, 2, "x\ny\n")]).raw == "a\r\nx\r\ny\r\nb\r\n"
    assert Form(newline="\r").localized("a\r\nb\n") == "a\rb\r"


@pytest.mark.parametrize(
    ("form", "text", "words"),
    [(Form(), "a\ud800", "half of a character"), (Form("cp1252"), "→", "cp1252, which cannot hold '→'")],
)
def test_what_the_encoding_cannot_hold(form: Form, text: str, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        form.encode(text)


def test_a_binary_file_says_what_to_use_instead(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"\0" * 20)
    with pytest.raises(ToolError, match=r"'x.bin': it is a binary file \(20 bytes\).*xxd"):
        load_text(Project(tmp_path).locate("x.bin"))
