"""read_file returns what is in the file, says what it left out, and what to do when it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.tools import ReadFileTool
from chimera.tools._base import OUTPUT_CHARS
from tests.tools.support import failure, output


def test_the_content_comes_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("def f():\n\treturn 'ü'\n")
    result = ReadFileTool(tmp_path).execute({"path": "x.py"})
    assert result.output == "def f():\n\treturn 'ü'\n"
    assert result.metadata == {"path": "x.py", "first_line": 1, "last_line": 2, "total_lines": 2}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"\xef\xbb\xbfa\n", "a\n"),
        ("ü\n".encode("utf-16"), "ü\n"),
        (b"caf\xe9\n", "café\n"),
        (b"no end", "no end"),
        ("a\u2028b\x0cc\n".encode(), "a\u2028b\x0cc\n"),
        (b"", "[the file is empty]"),
    ],
)
def test_encodings_and_line_ends_do_not_show(tmp_path: Path, data: bytes, text: str) -> None:
    (tmp_path / "x").write_bytes(data)
    assert output(ReadFileTool(tmp_path), path="x") == text


def test_a_part_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("".join(f"{n}\n" for n in range(1, 11)))
    tool = ReadFileTool(tmp_path)
    assert output(tool, path="x", offset=9) == "9\n10\n"
    assert output(tool, path="x", offset=3, limit=2) == "3\n4\n[6 more lines; go on with offset=5]"
    assert "has 10 lines, so there is no line 11" in failure(tool, path="x", offset=11)


@given(
    lines=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0\ufeff"), max_size=20), max_size=30)
)
def test_following_the_offsets_yields_the_whole_file(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    root = tmp_path_factory.getbasetemp()
    (root / "parts").write_bytes("".join(line + "\n" for line in lines).encode())
    tool, offset, seen = ReadFileTool(root), 1, ""
    while True:
        result = tool.execute({"path": "parts", "offset": offset, "limit": 7})
        seen += result.output
        if result.metadata["last_line"] == result.metadata["total_lines"]:
            break
        seen = seen[: seen.rindex("[")]
        offset = result.metadata["last_line"] + 1
    assert seen == ("".join(line + "\n" for line in lines) or "[the file is empty]")


def test_a_long_file_comes_in_parts(tmp_path: Path) -> None:
    (tmp_path / "many").write_text("x\n" * 5000)
    (tmp_path / "wide").write_text(("x" * 999 + "\n") * 100)
    tool = ReadFileTool(tmp_path)
    assert output(tool, path="many").endswith("x\n[3000 more lines; go on with offset=2001]")
    assert output(tool, path="many", limit=10**9).count("x") == 2000
    wide = output(tool, path="wide")
    assert wide.endswith("[72 more lines; go on with offset=29]")
    assert len(wide) < OUTPUT_CHARS + 100


def test_a_line_that_is_too_long_is_clipped_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a" * 1_000_000 + "\nb")
    text = output(ReadFileTool(tmp_path), path="x")
    assert len(text) < 5000
    assert "[... 996001 more characters of this line ...]\nb\n[some lines are too long" in text


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "b").write_bytes(b"\0\1\2")
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(1 << 30)
    tool = ReadFileTool(tmp_path)
    assert "use list_files" in failure(tool, path="d")
    assert "binary file" in failure(tool, path="b")
    assert "too big (1073.7 MB" in failure(tool, path="huge")
    assert "list_files" in failure(tool, path="none")
