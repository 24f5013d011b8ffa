"""Copies of a project, and some work in one of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chimera.assembly.edits import Edit
from chimera.assembly.worktrees import Workspace, Worktrees

__all__ = ["WORK", "trees_of", "work_in"]


@contextmanager
def trees_of(project: Path) -> Iterator[Worktrees]:
    """Make copies of the project possible, next to it, inside the block."""
    trees = Worktrees(project, project.parent / "races")
    try:
        yield trees
    finally:
        trees.close()


def work_in(workspace: Workspace) -> None:
    """Change, add, delete, make executable, point elsewhere, replace a file by a folder and a folder by a file."""
    root = workspace.root
    (root / "readme.md").write_text("by the lane\n")
    (root / "deep" / "er").mkdir(parents=True)
    (root / "deep" / "er" / "added.bin").write_bytes(b"\0\xff\n")
    (root / "run.sh").chmod(0o644)
    (root / "link").unlink()
    (root / "link").symlink_to("run.sh")
    (root / "src" / "main.py").unlink()
    (root / "src").rmdir()
    (root / "src").write_text("a file now\n")
    (root / "more.log").write_text("ignored\n")


WORK = [
    Edit("deep/er/added.bin", "added"),
    Edit("link", "modified"),
    Edit("readme.md", "modified"),
    Edit("run.sh", "modified"),
    Edit("src", "added"),
    Edit("src/main.py", "deleted"),
]
