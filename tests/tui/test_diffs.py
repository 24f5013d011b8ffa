from __future__ import annotations

import pytest

from chimera.tui.diffs import DiffLine, call_diff, call_lines, edit_lines, text_diff
from chimera.types import ToolCall

PATCH = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n"


def marks(lines: list[DiffLine]) -> list[str]:
    return [f"{line.mark}{line.text}" for line in lines]


def test_only_what_differs_is_shown_with_a_little_around_it() -> None:
    before = "\n".join(f"line {number}" for number in range(20))
    after = before.replace("line 10", "line ten")
    assert marks(text_diff(before, after)) == [
        "@line 9", " line 8", " line 9", "-line 10", "+line ten", " line 11", " line 12"
    ]  # fmt: skip


def test_equal_texts_have_no_difference() -> None:
    assert text_diff("a\nb", "a\nb") == []


def test_huge_texts_are_not_compared_line_by_line() -> None:
    before, after = "x\n" * 1_500, "y\n" * 1_500
    assert len(text_diff(before, after)) == 3_000


def test_a_call_as_lines() -> None:
    call = ToolCall("1", "write_file", {"path": "a.py", "content": "x\ny", "force": True})
    assert call_lines(call) == ["write_file", "path: a.py", "content:", "  x", "  y", "force: true"]


def test_a_rewritten_call_shows_both() -> None:
    before = ToolCall("1", "bash", {"command": "rm -rf build", "timeout": 5})
    after = ToolCall("1", "delegate", {"command": "rm -r build", "timeout": 5})
    assert marks(call_diff(before, after)) == [
        "-bash", "-command: rm -rf build", "+delegate", "+command: rm -r build", " timeout: 5"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "arguments", "was", "expected"),
    [
        ("edit_file", {"path": "a", "old_string": "x\ny", "new_string": "x\nz"}, None, [" x", "-y", "+z"]),
        ("write_file", {"path": "a", "content": "x"}, None, ["+x"]),
        ("write_file", {"path": "a", "content": "x\nz"}, "x\ny", [" x", "-y", "+z"]),
        (
            "replace_in_file",
            {"path": "a", "diff": "<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE"},
            None,
            ["-x", "+y"],
        ),
        ("replace_in_file", {"path": "a", "diff": "no block"}, None, [" no block"]),
        ("apply_patch", {"patch": PATCH}, None, ["@--- a/x", "@+++ b/x", "@@@ -1 +1 @@", "-x", "+y"]),
        ("apply_patch", {"patch": 3}, None, [" 3"]),
        ("bash", {"command": "ls"}, None, []),
    ],
)  # fmt: skip
def test_what_an_edit_changes(name: str, arguments: dict[str, object], was: str | None, expected: list[str]) -> None:
    assert marks(edit_lines(ToolCall("1", name, arguments), was)) == expected


def test_nothing_in_a_call_can_move_the_cursor() -> None:
    call = ToolCall("1", "bash\x1b[2J", {"com\x1bmand": "\x1b[1A\u202erm", "more": {"a": "\x07"}})
    shown = "\n".join([*call_lines(call), *marks(call_diff(call, call))])
    assert not set("\x1b\x07\u202e") & set(shown)
