"""list_files shows the work of the project and nothing else."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from chimera.tools import ListFilesTool
from tests.tools.support import Env, failure, output


@pytest.fixture
def project(tmp_path: Path) -> Path:
    names = [
        ".git/config", ".gitignore", "README.md", "build/out.o", "empty/.keep", "src/a.py", "src/b.ts", "src/c.tsx",
        "src/__pycache__/a.pyc", "src/deep/d.py", "src/deep/x.log", "node_modules/m/i.js", ".venv/bin/python",
        ".chimera-0123456789ab.tmp",
    ]  # fmt: skip
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "empty" / ".keep").unlink()
    (tmp_path / ".gitignore").write_text("build/\n*.log\n")
    return tmp_path


def test_the_files_of_the_project(project: Path) -> None:
    result = ListFilesTool(project).execute({})
    assert result.output.split("\n") == [
        ".gitignore", "README.md", "empty/", "src/a.py", "src/b.ts", "src/c.tsx", "src/deep/d.py",
    ]  # fmt: skip
    assert result.metadata == {"entries": 7, "complete": True}


@pytest.mark.parametrize(
    ("args", "lines"),
    [
        ({"path": "src"}, ["src/a.py", "src/b.ts", "src/c.tsx", "src/deep/d.py"]),
        ({"depth": 1}, [".gitignore", "README.md", "empty/", "src/"]),
        ({"path": "src", "depth": 1}, ["src/a.py", "src/b.ts", "src/c.tsx", "src/deep/"]),
        ({"pattern": "*.py"}, ["src/a.py", "src/deep/d.py"]),
        ({"pattern": "src/*.{ts,tsx}"}, ["src/b.ts", "src/c.tsx"]),
        ({"path": "src", "pattern": "/*.py"}, ["src/a.py"]),
        ({"pattern": "**/deep/**"}, ["src/deep/d.py"]),
        ({"path": "build"}, ["build/out.o"]),
        ({"path": "node_modules"}, ["node_modules/m/i.js"]),
        ({"path": "src/__pycache__"}, ["src/__pycache__/a.pyc"]),
        ({"pattern": "*.rs"}, ["[no files match]"]),
        ({"path": "empty"}, ["[no files]"]),
        (
            {"limit": 2},
            [".gitignore", "README.md", "[more than 2 entries; narrow it down with path, pattern or depth]"],
        ),
    ],
)
def test_parts_of_it(project: Path, args: dict[str, object], lines: list[str]) -> None:
    assert output(ListFilesTool(project), **args).split("\n") == lines


def test_rules_of_inner_folders_and_of_the_folders_above(project: Path) -> None:
    (project / "src" / ".gitignore").write_text("*.ts\n!x.log\n")
    listed = output(ListFilesTool(project), path="src/deep")
    assert listed.split("\n") == ["src/deep/d.py", "src/deep/x.log"]
    assert "src/b.ts" not in output(ListFilesTool(project))


def test_rules_that_git_would_not_heed_do_not_count(project: Path) -> None:
    (project / ".gitignore").unlink()
    (project / ".gitignore").mkdir()
    (project / "src" / ".gitignore").symlink_to("../README.md")
    assert "src/deep/x.log" in output(ListFilesTool(project))


def test_symlinks_are_shown_and_not_followed(project: Path) -> None:
    (project / "loop").symlink_to(".")
    (project / "src" / "out").symlink_to("/etc")
    lines = output(ListFilesTool(project)).split("\n")
    assert "loop (symlink)" in lines
    assert "src/out (symlink)" in lines
    assert not any(line.startswith(("loop/", "src/out/")) for line in lines)


def test_names_that_are_no_text(project: Path) -> None:
    (project / os.fsdecode(b"bad\xff\n")).touch()
    assert "bad\ufffd\\n" in output(ListFilesTool(project)).split("\n")


def test_folders_that_cannot_be_read(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def refuse(path: str, flags: int, *args: int, **kwargs: int) -> int:
        if path == "deep":  # the tests may run as root, whom no mode keeps out
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", refuse)
    assert "src/deep/ (cannot be read)" in output(ListFilesTool(project)).split("\n")
    assert "permission denied" in failure(ListFilesTool(project), path="src/deep")


def test_a_long_list_is_cut_and_says_so(project: Path) -> None:
    for number in range(600):
        (project / "src" / f"{'x' * 90}{number:04}").touch()
    result = ListFilesTool(project).execute({"limit": 2000})
    assert len(result.output) < 28_200
    assert "narrow it down" in result.output
    assert not result.metadata["complete"]
    assert ListFilesTool(project).execute({}).metadata["entries"] < 500


def test_errors(project: Path) -> None:
    tool = ListFilesTool(project)
    assert "did you mean 'src'" in failure(tool, path="srcs").lower()
    assert "no folder" in failure(tool, path="README.md")


def test_a_cancelled_run_stops_it(project: Path) -> None:
    env = Env(project)
    env.cancelled = True
    assert ListFilesTool().execute({}, env).error == "cancelled"


def test_a_very_deep_tree(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    result = ListFilesTool(tmp_path).execute({"depth": 100})
    assert result.output == "/".join("d" * 100) + "/"
    subprocess.run(["rm", "-rf", tmp_path / "d"], check=True)  # what Python has for this is recursive
