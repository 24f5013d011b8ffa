"""Which files a call touches: patches and what lies below a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from chimera.permissions import uses
from chimera.permissions.paths import parse_path_pattern
from chimera.permissions.uses import patch_paths, read_paths, searched, tool_paths
from chimera.tools.apply_patch import touched_paths

ENVELOPE = """*** Begin Patch
*** Update File: src/a.py
*** Move to: lib/a.py
@@
-x
+y
*** Add File: new.py
+--- a/no header
+*** Delete File: nothing.py
*** Delete File: old.py
*** End Patch"""
UNIFIED = """diff --git a/src/a.py b/src/a.py
--- a/src/a.py
+++ b/src/a.py
@@ -1,1 +1,1 @@
-x
+y
--- /dev/null
+++ b/new.py
@@ -0,0 +1,1 @@
+x
--- a/old.py\t2024-01-01
+++ /dev/null
@@ -1,1 +0,0 @@
-x
"""
RENAME = """diff --git a/one.py b/two.py
similarity index 100%
rename from one.py
rename to two.py
"""
MODE = """diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
"""
PLAIN = "--- x.py\n+++ x.py\n@@ -1,1 +1,1 @@\n-a\n+b\n"


@pytest.mark.parametrize("patch", [ENVELOPE, UNIFIED, UNIFIED.replace("\n", "\r\n"), RENAME, MODE, PLAIN])
def test_a_patch_names_the_files_that_the_tool_would_touch(patch: str) -> None:
    assert set(patch_paths(patch) or ()) == set(touched_paths(patch))


@pytest.mark.parametrize(
    "patch",
    [
        "",
        "no patch",
        'diff --git "a/\\303\\251" "b/\\303\\251"\nold mode 100644\nnew mode 100755\n',
        '--- "a/\\303\\251"\n+++ "b/\\303\\251"\n@@ -1,1 +1,1 @@\n-a\n+b\n',
        "diff --git a/x b/y\nold mode 100644\n",
    ],
)
def test_a_patch_that_is_not_read_for_certain_names_nothing(patch: str) -> None:
    assert patch_paths(patch) is None


def test_tools_name_their_file() -> None:
    assert tool_paths("read_file", {"path": "a"}) == ("a",)
    assert tool_paths("search", {"pattern": "x"}) == (".",)
    assert tool_paths("list_files", {}) == (".",)
    assert tool_paths("apply_patch", {"patch": ENVELOPE}) == ("src/a.py", "lib/a.py", "new.py", "old.py")
    for args in ({}, {"path": None}, {"path": 3}, {"path": ""}, {"path": ["a"]}, {"file": "a"}):
        assert tool_paths("write_file", args) is None
        assert tool_paths("apply_patch", args) is None


CREATED = "diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1,1 @@\n+x\n"


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        (ENVELOPE, {"src/a.py", "old.py"}),
        (UNIFIED, {"src/a.py", "old.py"}),
        (RENAME, {"one.py"}),
        (MODE, {"run.sh"}),
        (PLAIN, {"x.py"}),
        (CREATED, set()),
        (
            ENVELOPE.replace("*** Add File: new.py", "*** Update File: new.py\n*** Move to: old.py"),
            {"src/a.py", "new.py", "old.py"},
        ),
        ("no patch", None),
        (None, None),
    ],
)
def test_what_a_patch_takes_in(patch: object, expected: set[str] | None) -> None:
    found = read_paths("apply_patch", {"patch": patch})
    assert (None if found is None else set(found)) == expected


def test_what_editing_tools_take_in() -> None:
    assert read_paths("write_file", {"path": "a"}) == ()
    for tool in ("edit_file", "replace_in_file"):
        assert read_paths(tool, {"path": "a"}) == ("a",)
        assert read_paths(tool, {}) is None


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("src/a.py", "deep/down/.env", "keys/a.pem", ".git/.env"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "start", "glob", "hit"),
    [
        (".env", "", None, "deep/down/.env"),
        (".env", "deep", None, "deep/down/.env"),
        (".env", "src", None, None),
        (".env", "", "*.py", None),
        (".env", "", ".e*", "deep/down/.env"),
        (".env", "", "deep/*", "deep/down/.env"),
        (".env", "", 3, "deep/down/.env"),
        ("keys/**", "", None, "keys/a.pem"),
        ("keys/**", "src", None, None),
        ("keys/a.pem", "", None, "keys/a.pem"),
        ("/nothing/**", "", None, None),
        ("//etc/**", "", None, None),
    ],
)
def test_what_lies_below_a_folder(project: Path, pattern: str, start: str, glob: object, hit: str | None) -> None:
    found = searched(str(project / start), parse_path_pattern(pattern, project), glob)
    assert found == (None if hit is None else str(project / hit))


def test_a_folder_too_large_to_look_through_counts_as_reaching(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uses, "MAX_ENTRIES", 2)
    assert searched(str(project), parse_path_pattern("*.none", project)) == f"some file below {project}"
