"""Ignore rules are those of git."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chimera.tools._paths import Project
from chimera.tools._walk import walk

PATTERNS = [
    "*.log", "!keep.log", "/a", "a/", "b/*.log", "**/b", "!b", "c", "!c/", "# x", "", "\\", "!", "?.txt", "[ab].log",
    "a/**/c", " ", "*", "!*/", "!*.log", "/*", "!/a", "a/*", "!a/c", "\\!x", "x.log ", "d/**/x", "b/**", "/b/",
]  # fmt: skip
RULES = st.lists(st.sampled_from(PATTERNS), max_size=5)
FILES = [
    "x.log",
    "keep.log",
    "a.log",
    "a/x.log",
    "a/c",
    "a/b/x.log",
    "a/b/c/d",
    "b/x.log",
    "b/keep.log",
    "c/d",
    "d/a/x",
    "1.txt",
]


@settings(max_examples=40)
@given(top=RULES, inner=RULES)
def test_what_is_listed_is_what_git_does_not_ignore(
    tmp_path_factory: pytest.TempPathFactory, top: list[str], inner: list[str]
) -> None:
    root = tmp_path_factory.mktemp("repo")
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    for folder, rules in ((root, top), (root / "a", inner)):
        (folder / ".gitignore").write_text("\n".join(rules) + "\n")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    command = ["git", "ls-files", "--others", "--exclude-standard", "-z"]
    wanted = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.split("\0")
    found = [str(entry.place) for entry in walk(Project(root).locate(".")) if entry.kind == "file"]
    assert found == sorted(filter(None, wanted), key=lambda name: name.split("/"))
