from __future__ import annotations

from pathlib import Path

from chimera.tui.files import project_files


def test_files_that_git_would_ignore_are_left_out(tmp_path: Path) -> None:
    for name in (".git/config", "src/a.py", "build/out.o", "b.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / ".gitignore").write_text("build/\n")
    assert project_files(tmp_path) == [".gitignore", "b.txt", "src/a.py"]


def test_a_folder_that_is_gone_has_none(tmp_path: Path) -> None:
    assert project_files(tmp_path / "gone") == []
