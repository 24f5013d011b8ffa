"""Only regular files of a sensible size are read, and nothing else can make a tool wait."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from chimera.errors import ToolError
from chimera.tools._files import is_file, look, read_bytes, read_start, size_text
from chimera.tools._paths import Place, Project


def place(root: Path, name: str) -> Place:
    return Project(root).locate(name)


def test_a_file_and_its_mark(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    (tmp_path / "x").chmod(0o640)
    snapshot = read_bytes(place(tmp_path, "x"))
    assert snapshot.data == b"abc"
    assert (snapshot.mark.size, snapshot.mark.mode) == (3, 0o640)
    assert look(place(tmp_path, "x")) == snapshot.mark
    assert look(place(tmp_path, "y")) is None
    assert look(place(tmp_path, "no/y")) is None


def test_any_change_changes_the_mark(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"abc")
    marks = [look(place(tmp_path, "x"))]
    os.utime(path, ns=(1, 1))
    marks.append(look(place(tmp_path, "x")))
    path.chmod(0o600)
    marks.append(look(place(tmp_path, "x")))
    path.rename(tmp_path / "y")
    path.write_bytes(b"abc")
    os.utime(path, ns=(1, 1))
    path.chmod(0o600)
    marks.append(look(place(tmp_path, "x")))
    assert len(set(marks)) == 4


def test_size_limits(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"a" * 100)
    assert read_bytes(place(tmp_path, "x"), 100).data == b"a" * 100
    with pytest.raises(ToolError, match=r"too big \(100 bytes, the limit is 99 bytes\); use search"):
        read_bytes(place(tmp_path, "x"), 99)
    assert read_start(place(tmp_path, "x"), 10).data == b"a" * 10


def test_a_file_of_many_chunks(tmp_path: Path) -> None:
    data = os.urandom(3 << 20)
    (tmp_path / "x").write_bytes(data)
    assert read_bytes(place(tmp_path, "x")).data == data


def test_folders(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    for read in (read_bytes, look):
        with pytest.raises(ToolError, match="is a folder, not a file; use list_files"):
            read(place(tmp_path, "d"))


def test_pipes_and_sockets_are_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(tmp_path)
        listener.bind("sock")
        for name in ("pipe", "sock"):
            with pytest.raises(ToolError):
                read_bytes(place(tmp_path, name))
            with pytest.raises(ToolError, match="no regular file"):
                look(place(tmp_path, name))


def test_is_file(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    (tmp_path / "link").symlink_to("x")
    assert is_file(place(tmp_path, "x"))
    assert is_file(place(tmp_path, "link"))
    assert not is_file(Place(tmp_path, ("link",)))
    assert not is_file(place(tmp_path, "none"))
    assert not is_file(place(tmp_path, "."))


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 bytes"), (9999, "9999 bytes"), (20_000, "20 kB"), (52_428_800, "52.4 MB")]
)
def test_sizes_for_people(size: int, text: str) -> None:
    assert size_text(size) == text
