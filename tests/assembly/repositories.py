"""Small projects on disk, under git and without."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

__all__ = ["contents", "git", "new_repository", "state_of", "write_project"]

WHO = ("-c", "user.name=someone", "-c", "user.email=someone@localhost", "-c", "commit.gpgsign=false")


def git(folder: Path, *words: str) -> str:
    """Run git in a folder and return what it prints."""
    done = subprocess.run(["git", *WHO, *words], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode("utf-8", "surrogateescape")


def write_project(folder: Path) -> Path:
    """Write a project with a program, a link, an ignored file and a folder."""
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "main.py").write_text("print('one')\n")
    (folder / "readme.md").write_text("read me\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("readme.md")
    (folder / ".gitignore").write_text("*.log\nbuild/\n")
    (folder / "debug.log").write_text("ignored\n")
    return folder


def new_repository(folder: Path) -> Path:
    """Write the project, commit it, and go on working: a change, a staged file, a new file and a deletion."""
    write_project(folder)
    (folder / "old.txt").write_text("old\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "First")
    (folder / "readme.md").write_text("changed, not committed\n")
    (folder / "staged.txt").write_text("staged\n")
    git(folder, "add", "staged.txt")
    (folder / "new.txt").write_text("untracked\n")
    (folder / "old.txt").unlink()
    return folder


def contents(folder: Path) -> dict[str, str]:
    """Return every file below a folder but those of git: its mode and content, or where a link leads."""
    found = {}
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        for name in (*files, *(name for name in folders if Path(place, name).is_symlink())):
            path = Path(place, name)
            if name == ".git":
                continue
            key = os.fsencode(path.relative_to(folder)).decode("utf-8", "backslashreplace")
            if path.is_symlink():
                found[key] = f"-> {path.readlink()}"
            else:
                mode = "x" if path.stat().st_mode & 0o100 else "-"
                found[key] = f"{mode} {path.read_bytes().decode('latin-1')}"
    return found


def state_of(repository: Path) -> list[str]:
    """Return all that the person who works there sees of git."""
    index = (repository / ".git" / "index").read_bytes().hex() if (repository / ".git" / "index").exists() else ""
    return [
        index,
        git(repository, "status", "--porcelain=v2", "--branch"),
        git(repository, "for-each-ref"),
        git(repository, "stash", "list"),
        git(repository, "config", "--local", "--list"),
        git(repository, "worktree", "list"),
    ]
