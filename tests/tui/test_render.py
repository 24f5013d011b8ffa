from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style

from chimera.tui.blocks import Block
from chimera.tui.entries import Called, Entry, Prose, Remark, Said, Status, Thought, Tone
from chimera.tui.render import STYLES, render_entry
from chimera.types import ToolCall, ToolResult

PLAIN = dict.fromkeys(STYLES, Style.null())
EDIT = ToolCall("1", "edit_file", {"path": "a.py", "old_string": "x", "new_string": "y\nz"})
HOSTILE = "a\x1b[2Jb\u202ec\td\u200be 漢字🙂"


def lines(entry: Entry, width: int = 60) -> list[str]:
    return ["".join(part.text for part in line).rstrip() for line in render_entry(entry, width, PLAIN)]


def done(call: ToolCall, output: str = "", error: str | None = None, status: Status = Status.DONE) -> Called:
    return Called(call, status, ToolResult(output, error))


def test_what_was_said() -> None:
    assert lines(Said("one\ntwo")) == ["", "> one", "  two"]
    assert lines(Said("more", during=True)) == ["", "» more"]


def test_prose_is_markdown_with_a_mark_where_an_answer_begins() -> None:
    assert lines(Prose(Block("A **b** `c`."), first=True)) == ["", "● A b c."]
    assert lines(Prose(Block("# One\n## Two\ntext"))) == ["", "  One", "", "  Two", "", "  text"]
    assert lines(Prose(Block("1. x\n2. y"))) == ["", "   1 x", "   2 y"]
    assert lines(Prose(Block("x = 1\n\ny = 2", True, "py"))) == ["", "  x = 1", "", "  y = 2"]
    assert lines(Prose(Block("x", True, "no such language"))) == ["", "  x"]


def test_a_call_is_one_line_and_a_summary() -> None:
    call = ToolCall("1", "bash", {"command": "ls\n-l"})
    assert lines(Called(call)) == ["", "● bash  ls -l"]
    assert lines(done(call)) == ["", "✓ bash  ls -l", "  done"]
    assert lines(done(call, "one\ntwo\nthree\n")) == ["", "✓ bash  ls -l", "  three  (2 more lines)"]
    reading = ToolCall("1", "read_file", {"path": "a"})
    assert lines(done(reading, "one\n\ntwo\n")) == ["", "✓ read_file  a", "  one  (1 more line)"]
    assert lines(done(call, "", "exit code 1", Status.FAILED)) == ["", "✗ bash failed  ls -l", "  exit code 1"]


def test_it_unfolds() -> None:
    entry = done(ToolCall("1", "bash", {"command": "ls", "timeout": 3}), "one\ntwo", "late")
    entry.toggle()
    assert lines(entry) == ["", "✓ bash  ls", "  command: ls", "  timeout: 3", "  one", "  two", "  late"]
    assert entry.version == 1


@pytest.mark.parametrize("status", [Status.BLOCKED, Status.DENIED])
def test_a_call_that_was_stopped_says_so_in_a_word(status: Status) -> None:
    entry = done(ToolCall("1", "bash", {"command": "rm"}), "", "Blocked by interceptor: no", status)
    entry.remarks.append("blocked by gate: no")
    assert lines(entry) == ["", f"⊘ bash {status.upper()}  rm", "  Blocked by interceptor: no"]
    entry.result = ToolResult("", "Blocked by interceptor: " + "because " * 10)
    assert lines(entry, 40)[2:] == [
        "  Blocked by interceptor: because",
        "  because because because because",
        "  because because because because",
        "  because",
    ]


def test_an_edit_is_a_difference() -> None:
    assert lines(done(EDIT, "Edited a.py.")) == ["", "✓ edit_file  a.py", "  - x", "  + y", "  + z", "  Edited a.py."]
    long = ToolCall("1", "write_file", {"path": "a", "content": "\n".join("abcdefghijkl")})
    assert lines(done(long))[-2:] == ["  … 4 more lines", "  done"]
    opened = done(long)
    opened.toggle()
    assert lines(opened)[-1] == "  + l"


def test_what_was_decided_stands_below() -> None:
    entry = done(ToolCall("1", "bash", {"command": "ls"}))
    entry.remarks.append("rewritten by gate")
    entry.seconds = 65.0
    assert lines(entry)[1:3] == ["✓ bash  ls  1m 05s", "  ! rewritten by gate"]


def test_sub_agents_stand_further_in() -> None:
    entry = done(ToolCall("1", "bash", {"command": "ls"}))
    entry.depth = 1
    assert lines(entry) == ["  ✓ bash  ls", "    done"]


@pytest.mark.parametrize(
    ("tone", "line"), [(Tone.PLAIN, "x"), (Tone.NOTE, "~ x"), (Tone.WARNING, "! x"), (Tone.BAD, "✗ x")]
)
def test_remarks(tone: Tone, line: str) -> None:
    assert lines(Remark("x", tone)) == [line]


def test_thoughts_fold() -> None:
    entry = Thought(["first\n", "second"])
    assert lines(entry) == ["", "· thinking: first second"]
    entry.toggle()
    assert lines(entry) == ["", "· first", "  second"]


def every_kind(text: str) -> list[Entry]:
    call = ToolCall("1", text or "x", {"command": text, text: [text]})
    edit = ToolCall("1", "edit_file", {"path": text, "old_string": text, "new_string": text + "!"})
    made: list[Entry] = [
        Said(text), Prose(Block(text)), Prose(Block(text, True, "py")), Thought([text]), Remark(text, Tone.BAD),
        done(call, text, text, Status.FAILED), done(call, text), done(edit, text),
    ]  # fmt: skip
    for entry in made:
        if isinstance(entry, Called):
            entry.remarks.append(text)
    opened = [done(call, text, text, Status.BLOCKED), done(edit, text), Thought([text])]
    for entry in opened:
        entry.toggle()
    return [*made, *opened]


@settings(max_examples=25)
@given(st.text(max_size=80) | st.just(HOSTILE * 20), st.integers(20, 100))
def test_no_line_is_too_wide_and_nothing_moves_the_cursor(text: str, width: int) -> None:
    for entry in every_kind(text):
        for line in render_entry(entry, width, PLAIN):
            shown = "".join(part.text for part in line)
            assert cell_len(shown) <= width
            assert not set("\x1b\u202e\n\r\t\x07") & set(shown)


def test_references_of_markdown_hide_nothing() -> None:
    assert lines(Prose(Block("a &#x202e;b &#27;c &amp; d"))) == ["", "  a \ufffdb \ufffdc & d"]


def test_code_stands_on_the_ground_of_the_screen() -> None:
    for line in render_entry(Prose(Block("def f(): pass", True, "py")), 60, PLAIN):
        assert all(part.style is None or part.style.bgcolor is None for part in line)
