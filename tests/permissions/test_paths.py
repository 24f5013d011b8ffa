"""Matching files: anchors, wildcards, and paths that try to look like others."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.errors import ConfigError
from chimera.permissions.paths import absolute, expanded, parse_path_pattern, places

ROOT = Path("/nowhere/project")


def verdicts(pattern: str, path: str, root: Path = ROOT) -> tuple[bool, bool]:
    """Say whether a rule with `pattern` forbids and whether it permits `path`."""
    parsed, found = parse_path_pattern(pattern, root), places(path, [root])
    return parsed.forbids(found), parsed.permits(found)


BOTH, NEITHER, FORBIDS = (True, True), (False, False), (True, False)


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("src/**", "src/a/b.py", BOTH),
        ("src/**", "./src//a.py", BOTH),
        ("src/**", "srcx/a.py", NEITHER),
        ("src/**", "a/src/b.py", NEITHER),
        ("src/**", "src", FORBIDS),
        ("src/*", "src/a.py", BOTH),
        ("src/*", "src/a/b.py", FORBIDS),
        ("/src/*.py", "src/a.py", BOTH),
        ("src/", "src/a.py", BOTH),
        ("src/a.py", "src/a.py", BOTH),
        ("src/a", "src/a/b", FORBIDS),
        ("src/**/*.py", "src/a.py", BOTH),
        ("src/**/*.py", "src/x/y/a.py", BOTH),
        ("src/**/*.py", "src/x/y/a.js", NEITHER),
        ("**/test/**", "a/test/b", BOTH),
        ("**", "anything/at/all", BOTH),
        (".env", ".env", BOTH),
        (".env", "deep/down/.env", BOTH),
        (".env", "x.env", NEITHER),
        (".env", "/elsewhere/.env", FORBIDS),
        ("*.pem", "keys/a.pem", BOTH),
        ("*.pem", "keys/A.PEM", FORBIDS),
        ("a?c", "abc", BOTH),
        ("a?c", "a/c", NEITHER),
        ("[ab].py", "a.py", BOTH),
        ("[!ab].py", "a.py", NEITHER),
        ("[!ab].py", "c.py", BOTH),
        ("[^ab].py", "c.py", BOTH),
        ("[a-c].py", "b.py", BOTH),
        ("x[/]y", "x/y", NEITHER),
        (r"\*.py", "*.py", BOTH),
        (r"\*.py", "a.py", NEITHER),
        ("a[", "a[", BOTH),
        ("//etc/passwd", "/etc/passwd", BOTH),
        ("//etc/passwd", "etc/passwd", NEITHER),
        ("/etc/**", "/etc/passwd", FORBIDS),
        ("//**", "/anything", BOTH),
        ("../other/**", "../other/x", BOTH),
        ("é.py", "e\N{COMBINING ACUTE ACCENT}.py", FORBIDS),
    ],
)
def test_patterns(pattern: str, path: str, expected: tuple[bool, bool]) -> None:
    assert verdicts(pattern, path) == expected


def test_home_is_home_however_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/nowhere/home")
    for path in ("~/.ssh/id", "/nowhere/home/.ssh/id", "../home/.ssh/id", "~/x/../.ssh/id"):
        assert verdicts("~/.ssh/**", path) == BOTH
    assert verdicts("~/.ssh/**", "~/.sshx/id") == NEITHER
    assert verdicts("~", "~/.ssh/id") == FORBIDS
    assert expanded("~no-such-user-here/x") == "~no-such-user-here/x"


@pytest.mark.parametrize(
    "path", ["src/../secret/key", "./secret/key", "secret/./key", "secret//key", "x/../secret/key"]
)
def test_dots_lead_nowhere_else(path: str) -> None:
    assert verdicts("secret/**", path) == BOTH
    assert verdicts("src/**", path) == NEITHER


def test_a_symlink_is_where_it_leads_and_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "link").symlink_to(tmp_path / "secret")
    assert verdicts("secret/**", "src/link/key", tmp_path) == FORBIDS
    assert verdicts("src/**", "src/link/key", tmp_path) == FORBIDS
    assert verdicts("secret/**", "src/link/../secret/key", tmp_path)[0]


def test_a_pattern_below_a_symlink_means_the_same_files_by_their_real_path(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "data")
    assert verdicts("alias/**", "data/x", tmp_path) == BOTH
    assert verdicts("alias/**", "alias/x", tmp_path) == BOTH


def test_a_root_behind_a_symlink_is_the_same_root(tmp_path: Path) -> None:
    (tmp_path / "real" / "src").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert verdicts("src/**", "src/a", tmp_path / "link") == BOTH


@pytest.mark.parametrize("path", ["", "a\0b", "\0"])
def test_a_path_that_cannot_exist_is_an_error(path: str) -> None:
    with pytest.raises(ValueError, match="path"):
        places(path, [ROOT])


def test_no_place_is_permitted_by_nothing() -> None:
    assert not parse_path_pattern("**", ROOT).permits(())


@pytest.mark.parametrize("pattern", ["", "  ", "!x", "a\0b", "a/*/../b", "a/**/./b/.."])
def test_a_pattern_without_a_meaning_is_an_error(pattern: str) -> None:
    with pytest.raises(ConfigError):
        parse_path_pattern(pattern, ROOT)


def test_absolute_paths_follow_no_symlink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to("/")
    monkeypatch.chdir(tmp_path)
    assert absolute("link/../x") == tmp_path / "x"
    assert absolute(None) == tmp_path
    assert absolute("/a//b") == Path("/a/b")


NAMES = st.lists(st.sampled_from(["a", "b", "src", ".env", "x.py", "..", "."]), min_size=1, max_size=6)


@given(NAMES, NAMES)
def test_what_is_permitted_is_also_forbidden_by_the_same_pattern(pattern: list[str], path: list[str]) -> None:
    forbids, permits = verdicts("/".join(pattern), "/".join(path))
    assert forbids or not permits


@given(NAMES)
def test_whatever_leaves_the_root_is_not_permitted_by_a_pattern_of_the_root(path: list[str]) -> None:
    outside = not str(absolute(ROOT / "/".join(path))).startswith(f"{ROOT}/")
    assert verdicts("**", "/".join(path))[1] is not outside
