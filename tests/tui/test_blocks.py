from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.tui.blocks import Block, BlockSplitter


def split(*pieces: str) -> list[Block]:
    splitter = BlockSplitter()
    return [block for piece in pieces for block in splitter.feed(piece)] + splitter.close()


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("", []),
        ("\n \n", []),
        ("one\ntwo\n\nthree", [Block("one\ntwo"), Block("three")]),
        ("a\n\n  b", [Block("a\n\n  b")]),
        ("- a\n\n    - b\nrest\n\nc", [Block("- a\n\n    - b\nrest"), Block("c")]),
        ("say\n```py\nx\n\ny\n```\nend", [Block("say"), Block("x\n\ny", True, "py"), Block("end")]),
        ("~~~\n```\n~~~", [Block("```", True)]),
        ("````\n```\n````", [Block("```", True)]),
        ("  ```sh\n  ls\n  ```", [Block("ls", True, "sh")]),
        ("```py\nnever closed", [Block("never closed", True, "py")]),
        ("`a` and ```b``` in a line", [Block("`a` and ```b``` in a line")]),
    ],
)
def test_blocks(text: str, blocks: list[Block]) -> None:
    assert split(text) == blocks


@given(st.lists(st.sampled_from(["a", "b c", "\n", "\n\n", "```", "~~~", " ", "- x", "py"]), max_size=30))
def test_how_it_comes_makes_no_difference(pieces: list[str]) -> None:
    assert split(*pieces) == split("".join(pieces)) == split(*"".join(pieces))


@given(st.text(alphabet="ab \n`", max_size=200))
def test_no_word_is_lost(text: str) -> None:
    kept = "".join(block.text for block in split(text))
    assert [letter for letter in kept if letter in "ab"] == [
        letter for letter in text if letter in "ab"
    ] or "```" in text  # what stands behind a fence is its language


def test_the_tail_is_what_grows() -> None:
    splitter = BlockSplitter()
    assert splitter.tail is None
    splitter.feed("Hello wor")
    assert splitter.tail == Block("Hello wor")
    assert splitter.feed("ld\n\n```py\nx = ") == [Block("Hello world")]
    assert splitter.tail == Block("x = ", True, "py")


@pytest.mark.parametrize("piece", ["word ", "x", "line\n"])
def test_a_block_that_never_ends_is_cut(piece: str) -> None:
    splitter = BlockSplitter()
    text = piece * 10_000
    whole = [block for start in range(0, len(text), 50) for block in splitter.feed(text[start : start + 50])]
    assert max(len(block.text) for block in whole) < 4_200
    assert splitter.tail is None or len(splitter.tail.text) < 4_200
    blocks = [*whole, *splitter.close()]
    assert "".join("".join(block.text.split()) for block in blocks) == "".join(text.split())


def test_a_long_code_block_keeps_its_language() -> None:
    blocks = split("```py\n" + "value = 1\n" * 2_000 + "```\nend")
    assert {(block.code, block.language) for block in blocks[:-1]} == {(True, "py")}
    assert blocks[-1] == Block("end")
    assert sum(block.text.count("value") for block in blocks) == 2_000
