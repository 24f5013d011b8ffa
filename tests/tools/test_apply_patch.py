"""apply_patch does all of a patch or nothing, over any number of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chimera.errors import ToolError
from chimera.permissions.uses import tool_paths
from chimera.tools import ApplyPatchTool
from chimera.tools.apply_patch import parse_patch, touched_paths
from tests.tools.support import failure, output, tree
from tests.tools.test_unified import diff

BODY = """*** Add File: new/c.txt
+hello
*** Update File: a.txt
@@
 one
-two
+2
*** Delete File: b.txt
*** Update File: src/d.txt
*** Move to: lib/e.txt
-old
+new"""


def envelope(body: str) -> str:
    return f"*** Begin Patch\n{body}\n*** End Patch"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    (tmp_path / "b.txt").write_text("bye\n")
    (tmp_path / "src" / "d.txt").write_text("old\n")
    (tmp_path / "src" / "d.txt").chmod(0o700)
    return tmp_path


def test_every_kind_of_change_at_once(project: Path) -> None:
    result = ApplyPatchTool(project).execute({"patch": envelope(BODY)})
    assert result.output == "Applied the patch:\nA new/c.txt\nM a.txt\nD b.txt\nR src/d.txt -> lib/e.txt"
    assert result.metadata == {"paths": ["new/c.txt", "a.txt", "b.txt", "src/d.txt", "lib/e.txt"]}
    assert tree(project) == {
        "a.txt": b"one\r\n2\r\nthree\r\n",
        "lib": None,
        "lib/e.txt": b"new\n",
        "new": None,
        "new/c.txt": b"hello\n",
        "src": None,
    }
    assert (project / "lib" / "e.txt").stat().st_mode & 0o777 == 0o700


def test_a_diff_of_git(project: Path) -> None:
    patch = (
        "diff --git a/a.txt b/a.txt\nindex 1..2 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,2 @@\n one\n-two\n three\n"
        "diff --git a/b.txt b/b.txt\ndeleted file mode 100644\n--- a/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n"
        "diff --git a/run.sh b/run.sh\nnew file mode 100755\n--- /dev/null\n+++ b/run.sh\n@@ -0,0 +1 @@\n+echo\n"
        "diff --git a/src/d.txt b/src/e.txt\nsimilarity index 100%\nrename from src/d.txt\nrename to src/e.txt\n"
    )
    output(ApplyPatchTool(project), patch=patch)
    assert tree(project) == {
        "a.txt": b"one\r\nthree\r\n",
        "run.sh": b"echo\n",
        "src": None,
        "src/e.txt": b"old\n",
    }
    assert os.access(project / "run.sh", os.X_OK)


@pytest.mark.parametrize("fence", ["```\n{}\n```", "```diff\n{}\n```\n", "\n{}\n"])
def test_code_fences_do_not_matter(project: Path, fence: str) -> None:
    output(ApplyPatchTool(project), patch=fence.format(envelope("*** Delete File: b.txt")))
    assert not (project / "b.txt").exists()


BAD = [
    ("*** Update File: a.txt\n-nope\n+x", "hunk 1 of 'a.txt' does not fit"),
    ("*** Update File: none.txt\n-a\n+b", "the project folder has no 'none.txt'"),
    ("*** Delete File: none.txt", "the project folder has no 'none.txt'"),
    ("*** Add File: b.txt\n+x", "'b.txt' exists already"),
    ("*** Add File: b.txt/x\n+x", "is a file"),
    ("*** Update File: b.txt\n*** Move to: a.txt\n-bye\n+x", "'a.txt' exists already"),
    ("*** Add File: ../x\n+x", "is outside the project folder"),
    ("*** Add File: .git/hooks/x\n+x", "belongs to git itself"),
    ("*** Update File: src\n-a\n+b", "is a folder"),
    ("*** Update File: bin\n-a\n+b", "binary file, which a patch cannot change"),
    ("*** Update File: locked\n-a\n+b", "read-only"),
    ("*** Update File: b.txt\n-bye\n+bye", "changes nothing in 'b.txt'"),
    ("*** Delete File: b.txt\n*** Update File: b.txt\n-bye\n+x", "has removed 'b.txt' before"),
]


@pytest.mark.parametrize(("bad", "words"), BAD)
def test_one_bad_part_and_nothing_changes(project: Path, bad: str, words: str) -> None:
    (project / "bin").write_bytes(b"\0")
    (project / "locked").write_text("a\n")
    (project / "locked").chmod(0o444)
    before = tree(project)
    good = "*** Add File: new/c.txt\n+hello\n*** Update File: src/d.txt\n-old\n+new\n"
    assert words in failure(ApplyPatchTool(project), patch=envelope(good + bad))
    assert tree(project) == before


@pytest.mark.parametrize("patch", ["", "text", "*** a\n--- b\n", "*** Update File: a.txt\n-one\n+1\n"])
def test_what_is_no_patch(project: Path, patch: str) -> None:
    error = failure(ApplyPatchTool(project), patch=patch)
    assert "does not begin with '*** Begin Patch'" in error
    assert error.endswith("No file was changed.")


def test_a_delete_must_know_what_it_deletes(project: Path) -> None:
    patch = "--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"
    assert "has lines that the patch does not remove" in failure(ApplyPatchTool(project), patch=patch)
    assert (project / "a.txt").exists()


def test_parts_for_one_file_build_on_each_other(project: Path) -> None:
    (project / "link").symlink_to("a.txt")
    patch = envelope(
        "*** Update File: a.txt\n-two\n+2\n*** Update File: ./link\n-2\n+zwei\n"
        "*** Add File: n\n+x\n*** Update File: n\n-x\n+y\n*** Add File: gone\n+x\n*** Delete File: gone\n"
        "*** Delete File: b.txt\n*** Add File: b.txt\n+again"
    )
    output(ApplyPatchTool(project), patch=patch)
    assert (project / "a.txt").read_bytes() == b"one\r\nzwei\r\nthree\r\n"
    assert (project / "n").read_text() == "y\n"
    assert (project / "b.txt").read_text() == "again\n"
    assert not (project / "gone").exists()


def test_parts_that_cancel_out(project: Path) -> None:
    patch = envelope("*** Add File: gone\n+x\n*** Delete File: gone")
    assert "the patch changes nothing" in failure(ApplyPatchTool(project), patch=patch)


def test_modes_alone(project: Path) -> None:
    output(ApplyPatchTool(project), patch="diff --git a/b.txt b/b.txt\nold mode 100644\nnew mode 100755\n")
    assert os.access(project / "b.txt", os.X_OK)
    assert (project / "b.txt").read_text() == "bye\n"


def test_a_failure_while_files_are_swapped_puts_all_of_them_back(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(project)
    real = os.replace

    def replace(source: str, target: str, **kwargs: int) -> None:
        if target == "e.txt":
            raise OSError(28, "No space left on device")
        real(source, target, **kwargs)

    monkeypatch.setattr(os, "replace", replace)
    assert "no space is left" in failure(ApplyPatchTool(project), patch=envelope(BODY))
    assert tree(project) == before


def test_what_a_patch_touches_is_known_to_policies() -> None:
    assert touched_paths(envelope(BODY)) == ("new/c.txt", "a.txt", "b.txt", "src/d.txt", "lib/e.txt")
    assert touched_paths("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n") == ("x",)
    with pytest.raises(ToolError):
        touched_paths("text")


PARTS = [
    "*** Begin Patch", "*** End Patch", "*** Add File: {}", "*** Delete File: {}", "*** Update File: {}",
    "*** Move to: {}", "*** Update File:{}", " *** Delete File: {}", "--- a/{}", "+++ b/{}", "--- {}", "+++ {}",
    "--- /dev/null", "+++ /dev/null", "diff --git a/{} b/{}", "diff --git {} {}", 'diff --git "a/{}" "b/{}"',
    "rename from {}", "rename to {}", "deleted file mode 100644", "new file mode 100644", "new mode 100755",
    "@@ -1 +1 @@", "@@ -0,0 +1 @@", "-a", "+b", " c", "", "```",
]  # fmt: skip
PATCH_NAMES = st.sampled_from(["x", "y", "a/x", " x", "x ", "x\ty", '"x"', "x b/x", "/dev/null", "x\r", "é"])
PATCH_LINES = st.builds(lambda part, name: part.replace("{}", name), st.sampled_from(PARTS), PATCH_NAMES)


@settings(max_examples=300)
@given(lines=st.lists(PATCH_LINES, max_size=10), enveloped=st.booleans())
def test_policies_see_every_path_that_the_tool_would_touch(lines: list[str], enveloped: bool) -> None:
    """The reader of paths that permission rules use may see more than the tool, or give up, but never see less."""
    patch = "\n".join(["*** Begin Patch", *lines, "*** End Patch"] if enveloped else lines)
    try:
        touched = touched_paths(patch)
    except ToolError:
        return
    seen = tool_paths("apply_patch", {"patch": patch})
    assert seen is None or set(touched) - {"/dev/null"} <= set(seen)


FILES = st.dictionaries(
    st.sampled_from(["a", "b", "d/c"]), st.lists(st.sampled_from(["x", "y", "-- z", ""]), max_size=8), max_size=3
)


@given(old=FILES, new=FILES)
def test_a_diff_between_two_trees_makes_one_into_the_other(
    tmp_path_factory: pytest.TempPathFactory, old: dict[str, list[str]], new: dict[str, list[str]]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    texts = [{name: "".join(f"{line}\n" for line in lines) for name, lines in files.items()} for files in (old, new)]
    for name, text in texts[0].items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    patch = "".join(_file_diff(name, texts[0].get(name), texts[1].get(name)) for name in sorted({*old, *new}))
    if patch:
        output(ApplyPatchTool(root), patch=patch)
        assert {part.path for part in parse_patch(patch)} == set(touched_paths(patch))
    assert {name: (data or b"").decode() for name, data in tree(root).items() if data is not None} == texts[1]


def _file_diff(name: str, old: str | None, new: str | None) -> str:
    if old == new:
        return ""
    header = f"diff --git a/{name} b/{name}\n"
    if old is None:
        header += "new file mode 100644\n"
    if new is None:
        header += "deleted file mode 100644\n"
    before = "/dev/null" if old is None else f"a/{name}"
    after = "/dev/null" if new is None else f"b/{name}"
    return header + diff(old or "", new or "").replace("--- a/x", f"--- {before}").replace("+++ b/x", f"+++ {after}")
