"""The envelope that coding models write is read, in its lenient forms too, and refused where it is ambiguous."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.errors import ToolError
from chimera.tools._envelope import parse_envelope
from chimera.tools._patch import FilePatch, Hunk, Line


def envelope(body: str) -> str:
    return f"*** Begin Patch\n{body}\n*** End Patch"


def test_every_kind_of_section() -> None:
    parts = parse_envelope(
        envelope(
            "*** Add File: new.py\n+a\n+\n+ b\n"
            "*** Delete File: old dir/old.py\n"
            "*** Update File: x.py\n*** Move to: y.py\n@@ class A\n@@     def f():\n keep\n-old\n+new\n@@\n-end\n"
            "*** End of File\n"
            "*** Update File: z.py\n-a\n+b"
        )
    )
    assert parts == [
        FilePatch("add", "new.py", (Hunk((Line("+", "a"), Line("+", ""), Line("+", " b"))),)),
        FilePatch("delete", "old dir/old.py"),
        FilePatch(
            "update",
            "x.py",
            (
                Hunk((Line(" ", "keep"), Line("-", "old"), Line("+", "new")), headings=("class A", "def f():")),
                Hunk((Line("-", "end"),), at_end=True),
            ),
            "y.py",
        ),
        FilePatch("update", "z.py", (Hunk((Line("-", "a"), Line("+", "b"))),)),
    ]


def test_a_pure_rename_and_an_empty_file() -> None:
    parts = parse_envelope(envelope("*** Update File: x\n*** Move to: y\n*** Add File: z"))
    assert parts == [FilePatch("update", "x", (), "y"), FilePatch("add", "z", (Hunk(()),))]


def test_lenient_forms() -> None:
    (part,) = parse_envelope(
        "\n"
        + envelope("\n*** Update File: x\n@@ -3,2 +3,2 @@ def f():\n a\n\n-b\n+c\n\\ No newline at end of file\n\n")
        + "\n"
    )
    assert part.hunks == (Hunk((Line(" ", "a"), Line(" ", ""), Line("-", "b"), Line("+", "c", bare=True)), hint=2),)
    (windows,) = parse_envelope(envelope("*** Update File: x\n-a\n+b").replace("\n", "\r\n"))
    assert windows.hunks == (Hunk((Line("-", "a"), Line("+", "b"))),)


def test_blank_lines_between_hunks_are_for_looks() -> None:
    (part,) = parse_envelope(envelope("*** Update File: x\n@@\n-a\n+b\n\n@@\n-c\n+d\n"))
    assert [len(hunk.lines) for hunk in part.hunks] == [2, 2]


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ("*** Begin Patch\n*** Delete File: x\n", "does not end with"),
        ("*** Begin Patch\n*** End Patch", "changes no file"),
        (envelope("text\n*** Delete File: x"), "'text' stands before the first file"),
        (envelope("*** Delete File: x\n-a"), "'-a' stands"),
        (envelope("*** Delete File: x\n\n-a"), "'-a' stands"),
        (envelope("*** Add File: x\n+a\n\n+b\n"), "line 4 of the patch, ''"),
        (envelope("*** Add File: x\n+a\nb"), "line 4 of the patch, 'b': every line of an added file begins with"),
        (envelope("*** Update File: x\n@@\n-a\n+b\nc"), "line 6 of the patch, 'c', begins with none of"),
        (envelope("*** Update File: x\n*** Move to: y\n-a\nb"), "line 5 of the patch, 'b'"),
        (envelope("*** Update File: x"), "no hunk for 'x'"),
        (envelope("*** Update File: x\n@@ def f():"), "no hunk for 'x'"),
        (envelope("*** Rename File: x"), "changes no file"),
    ],
)
def test_what_is_refused(patch: str, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        parse_envelope(patch)


@given(st.text(st.sampled_from("-+@ *\nab"), max_size=60))
def test_junk_is_refused_or_read_but_never_a_crash(text: str) -> None:
    try:
        parse_envelope(envelope("*** Update File: x\n" + text))
    except ToolError:
        return
