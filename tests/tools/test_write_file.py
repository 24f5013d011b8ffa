"""write_file replaces a file in one step and keeps its habits."""

from __future__ import annotations

import codecs
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.tools import ReadFileTool, WriteFileTool
from chimera.tools._atomic import is_leftover
from tests.tools.support import failure, output, tree


def test_a_new_file_in_new_folders(tmp_path: Path) -> None:
    result = WriteFileTool(tmp_path).execute({"path": "a/b/c.txt", "content": "x\r\ny\n"})
    assert result.output == "Created a/b/c.txt (2 lines, 5 bytes)."
    assert result.metadata == {"path": "a/b/c.txt", "bytes": 5, "created": True}
    assert tree(tmp_path) == {"a": None, "a/b": None, "a/b/c.txt": b"x\r\ny\n"}


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"a\n", "x\ny\n", b"x\ny\n"),
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"a\rb\r", "x\ny\n", b"x\ry\r"),
        (b"a\r\nb\r\n", "x\r\ny\n", b"x\r\ny\n"),
        (b"", "x\n", b"x\n"),
        (codecs.BOM_UTF8 + b"a\n", "x\n", codecs.BOM_UTF8 + b"x\n"),
        (codecs.BOM_UTF8 + b"a\n", "\ufeffx\n", codecs.BOM_UTF8 + b"x\n"),
        ("a\n".encode("utf-16"), "ü\n", "ü\n".encode("utf-16")),
        (b"caf\xe9\n", "th\u00e9 \u20ac\n", b"th\xe9 \x80\n"),
    ],
)
def test_line_ends_encoding_and_mark_are_kept(tmp_path: Path, before: bytes, content: str, after: bytes) -> None:
    (tmp_path / "x").write_bytes(before)
    output(WriteFileTool(tmp_path), path="x", content=content)
    assert (tmp_path / "x").read_bytes() == after


def test_the_answer_says_what_was_kept(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes("a\r\nb\r\n".encode("utf-16"))
    answer = output(WriteFileTool(tmp_path), path="x", content="ü\n")
    assert answer == "Replaced x (1 lines, 8 bytes; kept CRLF line ends and utf-16-le with byte order mark)."
    (tmp_path / "y").write_bytes(b"a\rb\xe9\r")
    assert "kept CR line ends and cp1252)" in output(WriteFileTool(tmp_path), path="y", content="ü\n")


def test_the_mode_is_kept(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("old")
    (tmp_path / "run.sh").chmod(0o751)
    output(WriteFileTool(tmp_path), path="run.sh", content="new")
    assert (tmp_path / "run.sh").stat().st_mode & 0o7777 == 0o751


@given(content=st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=200))
def test_what_is_written_is_what_is_read(tmp_path_factory: pytest.TempPathFactory, content: str) -> None:
    root = tmp_path_factory.getbasetemp()
    (root / "round").unlink(missing_ok=True)
    output(WriteFileTool(root), path="round", content=content)
    assert (root / "round").read_bytes() == content.encode()
    assert output(ReadFileTool(root), path="round", limit=2000) == (
        content.removeprefix("\ufeff") or "[the file is empty]"
    )


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("d", "x", "is a folder"),
        ("b", "x", "binary file, which is not overwritten; remove it first"),
        ("latin", "→", "cannot hold '→'"),
        ("new", "\ud83d", "half of a character"),
        ("x/y", "x", "is a file"),
        (".git/hooks/pre-commit", "x", "belongs to git"),
    ],
)
def test_errors_change_nothing(tmp_path: Path, name: str, content: str, words: str) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "b").write_bytes(b"\0\1")
    (tmp_path / "latin").write_bytes(b"\xe9\n")
    (tmp_path / "x").touch()
    before = tree(tmp_path)
    assert words in failure(WriteFileTool(tmp_path), path=name, content=content)
    assert tree(tmp_path) == before


def test_a_huge_file_can_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"a\r\n" * 8_000_000)
    output(WriteFileTool(tmp_path), path="x", content="b\n")
    assert (tmp_path / "x").read_bytes() == b"b\r\n"


SIZE = 50 * 1024 * 1024
WRITER = f"""
import sys
from pathlib import Path
from chimera.tools import WriteFileTool
tool = WriteFileTool(Path(sys.argv[1]))
texts = ["a" * {SIZE}, "b" * {SIZE}]
print("ready", flush=True)
while True:
    for text in reversed(texts):
        assert tool.execute({{"path": "big.txt", "content": text}}).success
"""


def killed_in_mid_write(root: Path, share: float) -> None:
    """Start a process that rewrites the file for ever, and kill it when that share of a new content is on disk."""
    with subprocess.Popen([sys.executable, "-c", WRITER, str(root)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        give_up = time.monotonic() + 60
        while not any(SIZE * share <= size < SIZE for size in leftovers(root).values()):
            assert writer.poll() is None
            assert time.monotonic() < give_up
        os.kill(writer.pid, signal.SIGKILL)


def leftovers(root: Path) -> dict[str, int]:
    sizes = {}
    for path in root.iterdir():
        try:
            if is_leftover(path.name):
                sizes[path.name] = path.stat().st_size
        except FileNotFoundError:  # it took its final name just now
            continue
    return sizes


@pytest.mark.parametrize("share", [0.0, 0.2, 0.7])
def test_a_kill_in_the_middle_leaves_the_old_or_the_new_content(tmp_path: Path, share: float) -> None:
    (tmp_path / "big.txt").write_bytes(b"a" * SIZE)
    killed_in_mid_write(tmp_path, share)
    content = (tmp_path / "big.txt").read_bytes()
    assert content in (b"a" * SIZE, b"b" * SIZE)
    assert set(tree_names(tmp_path)) == {"big.txt", *leftovers(tmp_path)}
    hour_ago = time.time() - 3600
    for name in leftovers(tmp_path):
        os.utime(tmp_path / name, (hour_ago, hour_ago))
    output(WriteFileTool(tmp_path), path="small.txt", content="")
    assert tree_names(tmp_path) == ["big.txt", "small.txt"]


def tree_names(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())
