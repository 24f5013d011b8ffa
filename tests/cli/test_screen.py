from __future__ import annotations

import pytest
from rich.text import Text

from chimera.cli.screen import Screen, make_console, print_beside
from chimera.core.loop_events import LoopEvent, LoopEventType, LoopResult
from chimera.events import CompactionEvent, EventBus, InterceptorEvent, ToolCallEvent, ToolResultEvent
from chimera.types import Message, ToolCall, ToolResult
from tests.cli.consoles import recorded

CALL = ToolCall("1", "bash", {"command": "ls"})
OTHER = ToolCall("2", "read_file", {"path": "a.py"})
USE, RESULT, NOTE = LoopEventType.TOOL_USE, LoopEventType.TOOL_RESULT, LoopEventType.INTERCEPTOR
CHUNK, ASSISTANT = LoopEventType.ASSISTANT_CHUNK, LoopEventType.ASSISTANT


def shown(*events: tuple[LoopEventType, object], answers: bool = True, encoding: str = "utf-8") -> str:
    console, out = recorded(encoding=encoding)
    screen = Screen(console, answers=answers, result_lines=3)
    for kind, data in events:
        screen.show(LoopEvent(kind, data, 1))
    return out.getvalue()


def test_a_call_and_its_result() -> None:
    assert shown((USE, CALL), (RESULT, (CALL, ToolResult("a.py\nb.py\n")))) == "● bash ls\n    a.py\n    b.py\n"


def test_a_call_that_was_kept_from_running_is_shown_with_the_reason() -> None:
    refused = ToolResult("", "Permission denied: no")
    assert shown((RESULT, (CALL, refused))) == "● bash ls\n  ✗ Permission denied: no\n"


def test_a_failure_shows_what_was_printed_too() -> None:
    failed = ToolResult("half", "exit code 1")
    assert shown((USE, CALL), (RESULT, (CALL, failed))) == "● bash ls\n    half\n  ✗ exit code 1\n"


def test_results_that_do_not_follow_their_call_say_whose_they_are() -> None:
    events = ((USE, CALL), (USE, OTHER), (RESULT, (CALL, ToolResult("one"))), (RESULT, (OTHER, ToolResult("two"))))
    assert shown(*events) == "● bash ls\n● read_file a.py\n    bash ls: one\n    read_file a.py: two\n"


def test_long_results_are_cut_and_the_rest_is_counted() -> None:
    long = ToolResult("\n".join("abcd"))
    assert shown((USE, CALL), (RESULT, (CALL, long))).endswith("    c\n    (1 more line)\n")
    assert "(2 more lines)" in shown((USE, CALL), (RESULT, (CALL, ToolResult("a\nb\nc\nd\ne"))))


def test_empty_results_are_done_and_thoughts_are_not_answered() -> None:
    assert shown((USE, CALL), (RESULT, (CALL, ToolResult("")))) == "● bash ls\n    done\n"
    thought = ToolCall("3", "think", {"thought": "hm"})
    assert shown((USE, thought), (RESULT, (thought, ToolResult("Noted.")))) == "● think hm\n"


def test_streamed_text_is_not_repeated() -> None:
    message = Message.assistant("Hello there")
    events = ((CHUNK, "Hel"), (CHUNK, "lo there"), (NOTE, InterceptorEvent(seam="context", decision="replaced")))
    assert shown(*events, (ASSISTANT, message)) == "Hello there\n~ context replaced by\n"
    assert shown((ASSISTANT, message), (ASSISTANT, message)) == "Hello there\nHello there\n"
    assert shown((CHUNK, ""), (ASSISTANT, Message.assistant(" "))) == ""


def test_without_answers_only_the_way_is_shown() -> None:
    events = ((CHUNK, "text"), (ASSISTANT, Message.assistant("text")), (USE, CALL))
    assert shown(*events, answers=False) == "● bash ls\n"


def test_decisions_are_shown_once() -> None:
    blocked = InterceptorEvent(seam="tool_call", decision="blocked", reason="no", tool_name="bash", interceptor="gate")
    replaced = InterceptorEvent(seam="tool_call", decision="replaced", tool_name="bash", interceptor="gate")
    failed = InterceptorEvent(seam="context", decision="error", reason="it\nbroke", interceptor="watch")
    assert shown((NOTE, blocked)) == ""
    assert shown((NOTE, replaced)) == "~ tool_call bash replaced by gate\n"
    assert shown((NOTE, failed)) == "~ context error by watch: it broke\n"


def test_the_other_events() -> None:
    assert shown((LoopEventType.COMPACT_BOUNDARY, CompactionEvent(before=9, after=3))) == (
        "~ conversation shortened from 9 to 3 messages\n"
    )
    assert shown((LoopEventType.SYSTEM, Message.user("go on"))) == "~ go on\n"
    assert shown((LoopEventType.SYSTEM, "context")) == "~ context\n"
    assert shown((LoopEventType.ERROR, "ProviderError: gone")) == "✗ ProviderError: gone\n"
    assert shown((LoopEventType.STREAM_START, "model"), (LoopEventType.THINKING_CHUNK, "hm")) == ""


@pytest.mark.parametrize(
    ("reason", "line"),
    [
        ("completed", ""),
        ("error: told already", ""),
        ("max_turns", "✗ the run ended: max_turns\n"),
        ("interceptor_blocked: no", "✗ the run ended: interceptor_blocked: no\n"),
    ],
)
def test_how_a_run_ended(reason: str, line: str) -> None:
    assert shown((LoopEventType.RESULT, LoopResult(reason))) == line


def test_every_kind_of_event_is_known() -> None:
    """A new kind must be given a look, or be left out here on purpose."""
    from chimera.cli.screen import _METHODS

    assert set(LoopEventType) - set(_METHODS) == {LoopEventType.STREAM_START, LoopEventType.THINKING_CHUNK}


def test_what_sub_agents_do_is_shown_further_in() -> None:
    console, out = recorded()
    bus = EventBus()
    Screen(console).follow_sub_agents(bus)
    for depth in (0, 1, 2):
        bus.publish(ToolCallEvent(call=CALL, depth=depth))
        bus.publish(ToolResultEvent(call=CALL, result=ToolResult("fine"), depth=depth))
        bus.publish(ToolResultEvent(call=CALL, result=ToolResult("", "no"), depth=depth))
    assert out.getvalue() == "    ● bash ls\n    ✗ bash: no\n        ● bash ls\n        ✗ bash: no\n"


def test_nothing_that_is_shown_is_obeyed() -> None:
    hostile = "x\x1b[2J\x9b1A[bold]y[/bold] :smile:"
    events = (
        (CHUNK, hostile),
        (USE, ToolCall("9", hostile, {"path": hostile})),
        (RESULT, (ToolCall("9", hostile, {}), ToolResult(hostile, hostile))),
        (NOTE, InterceptorEvent(seam="context", decision="error", reason=hostile, interceptor=hostile)),
        (LoopEventType.SYSTEM, hostile),
        (LoopEventType.ERROR, hostile),
        (LoopEventType.RESULT, LoopResult(hostile)),
    )
    text = shown(*events)
    assert "\x1b" not in text
    assert "\x9b" not in text
    assert text.count("[bold]y[/bold] :smile:") == 10


def test_a_terminal_without_unicode_gets_plain_marks() -> None:
    text = shown((USE, CALL), (RESULT, (CALL, ToolResult("", "no"))), encoding="ascii")
    assert text == "* bash ls\n  x no\n"


def test_wrapped_text_keeps_its_left_edge_and_ends_without_blanks() -> None:
    console, out = recorded(width=30)
    print_beside(console, Text("  ✗ "), Text("one two three four five six seven\n\n  eight"))
    assert out.getvalue() == "  ✗ one two three four five\n    six seven\n\n      eight\n"


def test_verdicts() -> None:
    console, out = recorded()
    screen = Screen(console)
    screen.verdict("so it is", good=True)
    screen.verdict("not so", good=False)
    assert out.getvalue() == "✓ so it is\n✗ not so\n"


def test_the_programs_console_takes_text_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    make_console().print("[red]x[/red] :smile:")
    make_console(stderr=True).print("[y]")
    assert capsys.readouterr() == ("[red]x[/red] :smile:\n", "[y]\n")


def test_what_is_held_back_is_written_before_somebody_else_prints() -> None:
    console, out = recorded()
    screen = Screen(console)
    screen.show(LoopEvent(CHUNK, "half a sen", 1))
    assert out.getvalue() == "half a"
    screen.pause()
    assert out.getvalue() == "half a sen\n"
