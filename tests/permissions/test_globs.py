"""Globs mean the same to the tools that use them and to the rules that judge them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chimera.permissions.globs import compiled, expand_braces, file_filter
from chimera.permissions.paths import parse_path_pattern
from chimera.permissions.uses import searched
from chimera.tools._paths import Project
from chimera.tools._walk import glob_filter, walk


@pytest.mark.parametrize(
    ("pattern", "expanded"),
    [
        ("*.py", ["*.py"]),
        ("*.{ts,tsx}", ["*.ts", "*.tsx"]),
        ("{a,b}/{c,d}", ["a/c", "b/c", "a/d", "b/d"]),
        ("{a,{b,c}}", ["a", "b", "a", "c"]),
        ("a{b", ["a{b"]),
        ("a}b", ["a}b"]),
        ("{}", [""]),
    ],
)
def test_braces(pattern: str, expanded: list[str]) -> None:
    assert sorted(expand_braces(pattern)) == sorted(expanded)


def test_malformed_patterns_match_nothing() -> None:
    spec = compiled(["!", "\\", "x\\", "*.log"])
    assert spec.match_file("a.log")
    assert not spec.match_file("x")


def test_very_many_choices_are_not_written_out() -> None:
    assert not file_filter("{a,b}" * 40).match_file("a" * 40)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    for name in ("secrets/key.txt", "a/secrets/key.txt", "a/b/.env", "x.py/.env", "plain", "a/x.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


PIECES = [
    "secrets", "key.txt", ".env", "x.py", "a", "b", "*", "**", "?", "/", "[", "]", "^", "!", "{", "}", ",", " ", "\\",
    "s*", "*.txt", "*.py", "#", "k", "E",
]  # fmt: skip


@settings(max_examples=300)
@given(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join),
    st.sampled_from([".", "a", "secrets", "a/b"]),
    st.sampled_from(["secrets/**", "**/secrets/**", ".env", "*.txt"]),
)
@example("secrets", ".", "secrets/**")
@example("secret?", ".", "secrets/**")
@example("[^x]ey.txt", ".", "secrets/**")
@example("key.txt ", ".", "secrets/**")
@example("\\key.txt", ".", "secrets/**")
@example("*.py", ".", ".env")
@example("x.py/", ".", ".env")
def test_what_a_glob_lets_the_tool_see_is_seen_by_the_rules(project: Path, glob: str, start: str, rule: str) -> None:
    place = Project(project).locate(start)
    wanted, pattern = glob_filter(glob, place), parse_path_pattern(rule, project)
    files = [str(project / str(entry.place)) for entry in walk(place) if entry.kind == "file" and wanted(entry.place)]
    found = searched(str(project / start), pattern, glob)
    assert (found is not None) == pattern.forbids(files)
