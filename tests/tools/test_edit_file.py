"""edit_file replaces one exact text and leaves every other byte alone."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.tools import EditFileTool
from tests.tools.support import failure, output, tree


def edit(root: Path, data: bytes, old: str, new: str, **options: bool) -> bytes:
    (root / "x").write_bytes(data)
    output(EditFileTool(root), path="x", old_string=old, new_string=new, **options)
    return (root / "x").read_bytes()


@pytest.mark.parametrize(
    ("data", "old", "new", "after"),
    [
        (b"a = 1\nb = 2\n", "b = 2", "b = 3", b"a = 1\nb = 3\n"),
        (b"a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "a\r\nb\r\n", "x\r\n", b"x\r\nc\r\n"),
        (b"a\rb\rc\r", "a\nb\n", "x\n", b"x\rc\r"),
        (b"a\nb\r\nc\nd\n", "c\n", "x\ny\n", b"a\nb\r\nx\ny\nd\n"),
        (b"a\r\nb\nc\r\n", "b", "x\ny", b"a\r\nx\r\ny\nc\r\n"),
        (codecs.BOM_UTF8 + b"a\n", "a", "b", codecs.BOM_UTF8 + b"b\n"),
        ("grün\n".encode("utf-16"), "grün", "rot", "rot\n".encode("utf-16")),
        (b"caf\xe9 x\n", "caf\u00e9 x", "th\u00e9", b"th\xe9\n"),
        (b"x\ny", "y", "", b"x\n"),
        (b"whole", "whole", "", b""),
        (b"a\x0cb\xe2\x80\xa8c\n", "b", "x", b"a\x0cx\xe2\x80\xa8c\n"),
    ],
)
def test_bytes_around_the_edit_are_kept(tmp_path: Path, data: bytes, old: str, new: str, after: bytes) -> None:
    assert edit(tmp_path, data, old, new) == after


def test_every_occurrence(tmp_path: Path) -> None:
    assert edit(tmp_path, b"a.a\r\na\r\n", "a", "b\n", replace_all=True) == b"b\r\n.b\r\n\r\nb\r\n\r\n"


def test_the_answer_says_where(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a\nb\na\n")
    tool = EditFileTool(tmp_path)
    assert output(tool, path="x", old_string="b", new_string="c") == "Edited x: 1 replacement at line 2."
    result = tool.execute({"path": "x", "old_string": "a", "new_string": "c", "replace_all": True})
    assert result.output == "Edited x: 2 replacements at lines 1, 3."
    assert result.metadata == {"path": "x", "replacements": 2}


def test_the_mode_is_kept(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a")
    (tmp_path / "x").chmod(0o755)
    output(EditFileTool(tmp_path), path="x", old_string="a", new_string="b")
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    ("old", "new", "options", "words"),
    [
        ("b", "x", {}, "not unique: it starts at lines 2, 4. Add lines around it until it is, or set replace_all"),
        ("nope", "x", {}, "was not found"),
        ("nope", "x", {"replace_all": True}, "was not found"),
        ("  value = 1", "x", {}, "White space differs: line 5 of the file has\n    value = 1\n"),
        ("", "x", {}, "old_string is empty; use write_file"),
        ("a", "a", {}, "nothing to change"),
    ],
)
def test_errors_help_and_change_nothing(
    tmp_path: Path, old: str, new: str, options: dict[str, bool], words: str
) -> None:
    (tmp_path / "x").write_text("a\nb\nc\nb\n    value = 1\n")
    before = tree(tmp_path)
    if "White" in words:
        old = "\tvalue = 1"
    assert words in failure(EditFileTool(tmp_path), path="x", old_string=old, new_string=new, **options)
    assert tree(tmp_path) == before


def test_a_missing_file(tmp_path: Path) -> None:
    assert "list_files" in failure(EditFileTool(tmp_path), path="x", old_string="a", new_string="b")


TEXT = st.text(st.sampled_from("ab \n"), max_size=30)


@given(
    before=TEXT, old=st.text(st.sampled_from("ab \n"), min_size=1, max_size=5), new=TEXT, after=TEXT, crlf=st.booleans()
)
def test_an_edit_is_a_replacement_of_text(
    tmp_path_factory: pytest.TempPathFactory, before: str, old: str, new: str, after: str, crlf: bool
) -> None:
    root = tmp_path_factory.getbasetemp()
    # Two lines that no edit touches settle which line ends the file has.
    text = f"#\n#\n{before}<{old}>{after}\n"
    newline = "\r\n" if crlf else "\n"
    data = edit(root, text.replace("\n", newline).encode(), f"<{old}>", f"<{new}>!")
    assert data.decode() == f"#\n#\n{before}<{new}>!{after}\n".replace("\n", newline)


@given(text=TEXT, old=st.text(st.sampled_from("ab"), min_size=1, max_size=3))
def test_replace_all_is_that_of_python(tmp_path_factory: pytest.TempPathFactory, text: str, old: str) -> None:
    root = tmp_path_factory.getbasetemp()
    assert (
        edit(root, (text + old).encode(), old, "<new>", replace_all=True) == (text + old).replace(old, "<new>").encode()
    )
