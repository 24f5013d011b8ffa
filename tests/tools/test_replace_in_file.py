"""replace_in_file takes SEARCH/REPLACE blocks, all of them or none."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.tools import ReplaceInFileTool
from chimera.tools.replace_in_file import Block, parse_blocks
from tests.tools.support import failure, output, tree


def block(search: str, replace: str | None) -> str:
    middle = "" if replace is None else replace + "\n"
    return f"<<<<<<< SEARCH\n{search}\n=======\n{middle}>>>>>>> REPLACE\n"


def replaced(root: Path, data: bytes, diff: str) -> bytes:
    (root / "x").write_bytes(data)
    output(ReplaceInFileTool(root), path="x", diff=diff)
    return (root / "x").read_bytes()


@pytest.mark.parametrize(
    ("data", "diff", "after"),
    [
        (b"a\nb\nc\n", block("b", "x\ny"), b"a\nx\ny\nc\n"),
        (b"a\r\nb\r\nc\r\n", block("a\nb", "x\ny\nz"), b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\nb\nc\n", block("b", None), b"a\nc\n"),
        (b"a\nb\nc", block("c", None), b"a\nb"),
        (b"a", block("a", None), b""),
        (b"a\nb\n", block("a", ""), b"\nb\n"),
        (b"foobar\nfoo\n", block("foo", "x"), b"foobar\nx\n"),
        (b"a\nb\nc\n", block("c", "z") + block("a", "x"), b"x\nb\nz\n"),
        (b"a\nb\n", block("a", "b") + block("b", "a"), b"b\na\n"),
        (b"a\nb\n", "```\n" + block("a", "x") + "```\n\n" + block("b", "y"), b"x\ny\n"),
        (b"a\nb\n", "------- SEARCH\na\n=======\nx\n+++++++ REPLACE", b"x\nb\n"),
        (b"a\nb\n", block("a", "x").replace("\n", "\r\n"), b"x\nb\n"),
        (b"\n\na\n", block("\na", "x"), b"\nx\n"),
    ],
)
def test_blocks_replace_whole_lines(tmp_path: Path, data: bytes, diff: str, after: bytes) -> None:
    assert replaced(tmp_path, data, diff) == after


@pytest.mark.parametrize(
    ("diff", "words"),
    [
        ("", "holds no block"),
        ("just text", "'just text' stands outside of a block"),
        (block("a", "x") + "<<<<<< SEARCH\nb\n=======\ny\n>>>>>>> REPLACE", "stands outside of a block"),
        (block("", "x"), "SEARCH part is empty"),
        (block("a\n=======\nb", "x"), "has '=======' where '>>>>>>> REPLACE' is due; use edit_file"),
        ("<<<<<<< SEARCH\na\n>>>>>>> REPLACE\n", "where '=======' is due"),
        ("<<<<<<< SEARCH\na\n=======\nx\n<<<<<<< SEARCH\n", "where '>>>>>>> REPLACE' is due"),
        ("<<<<<<< SEARCH\na\n=======\nx\n", "may be cut off. Nothing was changed"),
        ("<<<<<<< SEARCH\na\n", "ends without '======='"),
        (block("a", "x") + block("nope", "y"), "SEARCH part of block 2 was not found"),
        (block("b", "x"), "SEARCH part of block 1 is not unique: it starts at lines 2, 4"),
        (block("a\nb", "x") + block("b\nc", "y"), "two blocks change the same lines, at line 2"),
        (block("a", "a"), "nothing to change"),
    ],
)
def test_one_bad_block_and_nothing_changes(tmp_path: Path, diff: str, words: str) -> None:
    (tmp_path / "x").write_text("a\nb\nc\nb\n")
    before = tree(tmp_path)
    assert words in failure(ReplaceInFileTool(tmp_path), path="x", diff=diff)
    assert tree(tmp_path) == before


def test_the_answer(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a\nb\n")
    result = ReplaceInFileTool(tmp_path).execute({"path": "x", "diff": block("a", "x") + block("b", "y")})
    assert result.output == "Edited x: 2 blocks replaced."
    assert result.metadata == {"path": "x", "replacements": 2}


LINE = st.text("ab <>=+-", max_size=6).filter(lambda line: not line.startswith(("<<<<<<<", "-------", "=======")))


@given(search=st.lists(LINE, min_size=1, max_size=4).filter(any), replace=st.lists(LINE, max_size=4))
def test_what_is_written_is_parsed(search: list[str], replace: list[str]) -> None:
    text = block("\n".join(search), "\n".join(replace) if replace else None)
    assert parse_blocks(text) == [Block("\n".join(search), "\n".join(replace) if replace else None)]


@given(data=st.data(), crlf=st.booleans())
def test_blocks_are_replacements_of_lines(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, crlf: bool
) -> None:
    """Take unique lines, replace some of them in any order of blocks, and compare with doing it by hand."""
    root = tmp_path_factory.getbasetemp()
    lines = [f"line {n}" for n in range(data.draw(st.integers(1, 12)))]
    chosen = data.draw(st.lists(st.sampled_from(range(len(lines))), unique=True, min_size=1))
    news = {index: data.draw(st.lists(LINE, max_size=3)) for index in chosen}
    end = "\r\n" if crlf else "\n"
    diff = "".join(block(lines[index], "\n".join(new) if new else None) for index, new in news.items())
    after = replaced(root, "".join(line + end for line in lines).encode(), diff)
    wanted = [new for index, line in enumerate(lines) for new in news.get(index, [line])]
    assert after.decode() == "".join(line + end for line in wanted)
