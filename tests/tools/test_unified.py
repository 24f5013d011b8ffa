"""Unified diffs are read as the programs that write them mean them, and as models do who cannot count."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.errors import ToolError
from chimera.tools._patch import apply_hunks
from chimera.tools._text import decode
from chimera.tools._unified import parse_range, parse_unified

# Lines that look like the syntax of a patch.
NASTY = [
    "",
    " ",
    "a",
    "b",
    "-- x",
    "++ y",
    "- x",
    "+++ b/x",
    "--- a/x",
    "@@ -1 +1 @@",
    "@@",
    "diff --git a/x b/x",
    "\\ No",
    "é",
    "\t",
    "a ",
]
LINES = st.lists(st.sampled_from(NASTY), max_size=14)


def diff(old: str, new: str, context: int = 3) -> str:
    """The diff as `diff -u` writes it; difflib alone does not mark a missing line end."""
    chunks = difflib.unified_diff(split(old), split(new), "a/x", "b/x", n=context)
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in chunks)


def split(text: str) -> list[str]:
    *ended, last = text.split("\n")
    return [line + "\n" for line in ended] + ([last] if last else [])


def patched(old: str, patch: str) -> str:
    (part,) = parse_unified(patch)
    return apply_hunks(decode(old.encode()), part.hunks, part.path).raw


@given(old=LINES, new=LINES, ends=st.tuples(st.booleans(), st.booleans()), context=st.integers(0, 4))
def test_a_diff_applied_to_the_old_text_gives_the_new_one(
    old: list[str], new: list[str], ends: tuple[bool, bool], context: int
) -> None:
    before = "\n".join(old) + ("\n" if old and ends[0] else "")
    after = "\n".join(new) + ("\n" if new and ends[1] else "")
    patch = diff(before, after, context)
    if patch:
        assert patched(before, patch) == after


@given(old=LINES, new=LINES, data=st.data())
def test_a_diff_of_windows_text_keeps_its_line_ends(old: list[str], new: list[str], data: st.DataObject) -> None:
    # Two first lines settle the line ends even where the rest is empty.
    before, after = (["one", "two", *lines] for lines in (old, new))
    patch = diff("\n".join(before) + "\n", "\n".join(after) + "\n")
    if data.draw(st.booleans()):
        patch = patch.replace("\n", "\r\n")
    if patch:
        text = "\r\n".join(before) + "\r\n"
        assert patched(text, patch) == "\r\n".join(after) + "\r\n"


@given(old=LINES, new=LINES, shift=st.integers(-20, 20))
def test_wrong_line_numbers_never_put_a_hunk_elsewhere(old: list[str], new: list[str], shift: int) -> None:
    """With every line unique, a hunk whose numbers are off still finds its place, or none."""
    before = [f"{n} {line}" for n, line in enumerate(old)]
    after = [*before[: len(before) // 2], *(f"new {line}" for line in new), *before[len(before) // 2 + 1 :]]
    patch = diff("".join(f"{line}\n" for line in before), "".join(f"{line}\n" for line in after))
    lines = []
    for line in patch.splitlines():
        numbers = parse_range(line)
        if numbers and before:
            at, count, added = numbers
            line = f"@@ -{max(at + 1 + shift, 1)},{count} +1,{added} @@"
        lines.append(line)
    if lines and before:
        assert patched("".join(f"{line}\n" for line in before), "\n".join(lines)) == "".join(
            f"{line}\n" for line in after
        )


def test_counts_that_are_wrong_do_not_matter() -> None:
    old = "a\nb\nc\nd\n"
    for header in ("@@ -2,1 +2,1 @@", "@@ -2,9 +2,9 @@", "@@ -2 +2,3 @@", "@@", "@@ @@", "@@ ... @@"):
        assert patched(old, f"--- a/x\n+++ b/x\n{header}\n b\n-c\n+x\n d\n") == "a\nb\nx\nd\n"


def test_wrong_counts_do_not_swallow_the_next_file() -> None:
    patch = "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-a\n+b\n--- a/y\n+++ b/y\n@@ -1,9 +1,9 @@\n-c\n+d\n"
    assert [(part.path, len(part.hunks[0].lines)) for part in parse_unified(patch)] == [("x", 2), ("y", 2)]


def test_kept_blank_lines_may_have_lost_their_space() -> None:
    old = "a\n\nb\n\nc\n"
    for header in ("@@ -1,5 +1,5 @@", "@@", "@@ -1 +1 @@"):
        assert patched(old, f"--- a/x\n+++ b/x\n{header}\n a\n\n-b\n+x\n\n c\n") == "a\n\nx\n\nc\n"


def test_white_space_at_line_ends_may_be_lost_and_is_kept_in_the_file() -> None:
    assert patched("a  \nb\t\nc\n", "--- x\n+++ x\n@@ -1,3 +1,3 @@\n a\n b\n-c\n+d\n") == "a  \nb\t\nd\n"


EDIT = "@@ -1 +1 @@\n-a\n+b\n"
NEW = "@@ -0,0 +1 @@\n+b\n"
MESSAGE = "From 0123\nSubject: [PATCH] x\n\n text\n---\n x | 2 +-\n\n"
MAIL = f"{MESSAGE}diff --git a/x b/x\n--- a/x\n+++ b/x\n{EDIT}-- \n2.39.5\n"


@pytest.mark.parametrize(
    ("patch", "action", "path", "move_to", "executable"),
    [
        ("--- a/d/x\n+++ b/d/x\n" + EDIT, "update", "d/x", None, None),
        ("--- x\n+++ x\n" + EDIT, "update", "x", None, None),
        ("--- x.orig\t2024-01-01 00:00:00\n+++ x\t2024-01-01 00:00:01\n" + EDIT, "update", "x", None, None),
        ("--- a/x\n+++ a/x\n" + EDIT, "update", "a/x", None, None),
        ("--- /dev/null\n+++ b/x\n" + NEW, "add", "x", None, None),
        ("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n", "delete", "x", None, None),
        (
            "diff --git a/x b/x\nnew file mode 100755\nindex 000..111\n--- /dev/null\n+++ b/x\n" + NEW,
            "add",
            "x",
            None,
            True,
        ),
        ("diff --git a/x y b/x y\nnew file mode 100644\nindex 0000000..e69de29\n", "add", "x y", None, False),
        ("diff --git a/x b/x\ndeleted file mode 100644\nindex e69de29..0000000\n", "delete", "x", None, None),
        ("diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n", "update", "x", "y", None),
        ("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", "update", "x", None, True),
        ('diff --git a/x b/y\nrename from "\\303\\274\\t"\nrename to y\n', "update", "ü\t", "y", None),
        ('--- "a/\\303\\274 \\"q\\""\n+++ "b/\\303\\274 \\"q\\""\n' + EDIT, "update", 'ü "q"', None, None),
        (MAIL, "update", "x", None, None),
    ],
)
def test_headers(patch: str, action: str, path: str, move_to: str | None, executable: bool | None) -> None:
    (part,) = parse_unified(patch)
    assert (part.action, part.path, part.move_to, part.executable) == (action, path, move_to, executable)


def test_the_signature_of_a_mailed_patch_is_no_removed_line() -> None:
    assert patched("a\nb\n", "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+c\n b\n-- \n2.39.5\n") == "c\nb\n"


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        (EDIT, "before any '--- old'"),
        ("diff --git a/x b/x\n" + EDIT, "before any '--- old'"),
        ("--- a/x\n+++ b/x\n", "no hunk for 'x'; it may be cut off"),
        ("--- a/x\n+++ b/x\n@@ -3,3 +3,4 @@\n+b\n", "without any line of context"),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\ntext\n+stray\n", "stray line '\\+stray'"),
        ("diff --git a/x b/x\nindex 1..2\nGIT binary patch\nliteral 3\n", "binary patches and copies"),
        ("diff --git a/x b/x\nBinary files a/x and b/x differ\n", "binary patches and copies"),
        ("diff --git a/x b/y\ncopy from x\ncopy to y\n", "binary patches and copies"),
        ("diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n" + NEW, "symlink or a submodule"),
        ("diff --git x\nnew file mode 100644\n", "file name cannot be read"),
        ("diff --git a/x b/y\ndeleted file mode 100644\n", "file name cannot be read"),
        ('diff --git "a/x" "b/x"\ndeleted file mode 100644\n', "file name cannot be read"),
        ("diff --git a/x b/y\nrename from x\n", "file name cannot be read"),
    ],
)
def test_what_is_refused(patch: str, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        parse_unified(patch)


@given(st.text(st.sampled_from("-+@ \\\nab/0123,"), max_size=80))
def test_junk_is_refused_or_read_but_never_a_crash(text: str) -> None:
    try:
        parse_unified("--- a/x\n+++ b/x\n" + text)
    except ToolError:
        return


def test_real_git_output(tmp_path: Path) -> None:
    import subprocess

    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("".join(f"{n}\n" for n in range(40)))
    new.write_text("".join(f"{n}\n" for n in range(40) if n != 3).replace("30\n", "thirty\n") + "no end")
    process = subprocess.run(["git", "diff", "--no-index", "old", "new"], cwd=tmp_path, capture_output=True, text=True)
    (part,) = parse_unified(process.stdout)
    assert len(part.hunks) == 3
    assert apply_hunks(decode(old.read_bytes()), part.hunks, "x").raw == new.read_text()
