from __future__ import annotations

from typing import Any

import pytest

from chimera.core.loop_events import LoopEvent, LoopEventType, LoopResult
from chimera.events import CompactionEvent, InterceptorEvent, ModelResponseEvent, ToolCallEvent, ToolResultEvent
from chimera.tui.entries import Called, Prose, Remark, Said, Status, Thought, Tone
from chimera.tui.lane_state import LaneState
from chimera.types import Message, ToolCall, ToolResult

CALL = ToolCall("1", "bash", {"command": "ls"})
T = LoopEventType


def lane(*events: tuple[LoopEventType, Any]) -> LaneState:
    state = LaneState("one", "m", 1_000)
    state.begin("go", 10.0)
    for number, (kind, data) in enumerate(events):
        state.apply(LoopEvent(kind, data, 1), 11.0 + number)
    return state


def called(state: LaneState) -> Called:
    return next(entry for entry in state.entries if isinstance(entry, Called))


def texts(state: LaneState) -> list[str]:
    return [entry.block.text for entry in state.entries if isinstance(entry, Prose)]


def remarks(state: LaneState) -> list[tuple[str, Tone]]:
    return [(entry.text, entry.tone) for entry in state.entries if isinstance(entry, Remark)]


def test_text_streams_into_pieces() -> None:
    state = lane((T.STREAM_START, "m2"), (T.ASSISTANT_CHUNK, "Hel"), (T.ASSISTANT_CHUNK, "lo\n\nwor"))
    assert (state.model, texts(state)) == ("m2", ["Hello", "wor"])
    version = state.entries[-1].version
    state.apply(LoopEvent(T.ASSISTANT_CHUNK, "ld"), 1.0)
    assert (texts(state), state.entries[-1].version) == (["Hello", "world"], version + 1)
    state.apply(LoopEvent(T.ASSISTANT, Message.assistant("Hello\n\nworld")), 1.0)
    assert texts(state) == ["Hello", "world"]
    assert [entry.first for entry in state.entries if isinstance(entry, Prose)] == [True, False]


def test_an_answer_that_did_not_stream_is_shown_whole() -> None:
    state = lane((T.ASSISTANT, Message.assistant("One\n\nTwo")), (T.ASSISTANT, Message.assistant("Three")))
    assert texts(state) == ["One", "Two", "Three"]


def test_a_second_beginning_is_told() -> None:
    state = lane((T.STREAM_START, "m"), (T.ASSISTANT_CHUNK, "half an"), (T.STREAM_START, "m"))
    assert remarks(state) == [("the model begins its answer anew", Tone.NOTE)]


def test_thoughts_are_one_entry() -> None:
    state = lane((T.THINKING_CHUNK, "Let me "), (T.THINKING_CHUNK, "see"), (T.ASSISTANT_CHUNK, "Yes"))
    thought = next(entry for entry in state.entries if isinstance(entry, Thought))
    assert (thought.text, thought.foldable, texts(state)) == ("Let me see", True, ["Yes"])


@pytest.mark.parametrize(
    ("result", "status"),
    [
        (ToolResult("ok"), Status.DONE),
        (ToolResult("", "exit code 1"), Status.FAILED),
        (ToolResult("", "Blocked by interceptor: no"), Status.BLOCKED),
        (ToolResult("", "Permission denied: no"), Status.DENIED),
        (ToolResult("", "Blocked by hook: no"), Status.DENIED),
        (ToolResult("", "The run was cancelled before this call was started."), Status.CUT),
    ],
)
def test_how_a_call_ended(result: ToolResult, status: Status) -> None:
    begun = called(lane((T.TOOL_USE, CALL), (T.TOOL_RESULT, (CALL, result))))
    kept = called(lane((T.TOOL_RESULT, (CALL, result))))
    assert (begun.status, kept.status) == (status, status)
    assert (begun.seconds, kept.result) == (1.0, result)


def test_calls_of_one_step_find_their_results() -> None:
    other = ToolCall("2", "bash", {})
    state = lane((T.TOOL_USE, CALL), (T.TOOL_USE, other), (T.TOOL_RESULT, (other, ToolResult("b"))))
    assert [(entry.call.id, entry.status) for entry in state.entries if isinstance(entry, Called)] == [
        ("1", Status.RUNNING),
        ("2", Status.DONE),
    ]


def test_an_id_that_comes_again_is_another_call() -> None:
    state = lane(
        (T.TOOL_USE, CALL), (T.TOOL_RESULT, (CALL, ToolResult("a"))),
        (T.TOOL_USE, CALL), (T.TOOL_RESULT, (CALL, ToolResult("", "b"))),
    )  # fmt: skip
    found = [entry for entry in state.entries if isinstance(entry, Called)]
    assert [entry.status for entry in found] == [Status.DONE, Status.FAILED]


def decision(seam: str, verdict: str, **more: Any) -> tuple[LoopEventType, InterceptorEvent]:
    return T.INTERCEPTOR, InterceptorEvent(seam=seam, decision=verdict, interceptor="gate", **more)


def test_a_rewritten_call_remembers_what_it_was_first() -> None:
    first, second = ToolCall("1", "bash", {"command": "a"}), ToolCall("1", "bash", {"command": "b"})
    state = lane(
        decision("tool_call", "replaced", call_id="1", before=first, after=second),
        decision("tool_call", "replaced", call_id="1", before=second, after=CALL),
        (T.TOOL_USE, CALL),
        decision("tool_result", "replaced", call_id="1"),
        (T.TOOL_RESULT, (CALL, ToolResult("x"))),
    )
    assert called(state).original == first
    assert called(state).remarks == ["rewritten by gate", "rewritten by gate", "result replaced by gate"]


def test_a_withheld_result_says_who_withheld_it() -> None:
    state = lane(
        (T.TOOL_USE, CALL),
        decision("tool_result", "blocked", call_id="1", reason="a\nkey"),
        (T.TOOL_RESULT, (CALL, ToolResult("[tool result withheld by interceptor: a key]"))),
    )
    assert called(state).remarks == ["result withheld by gate: a key"]


def test_blocked_calls_are_counted() -> None:
    refused = ToolResult("", "Blocked by interceptor: no")
    state = lane(decision("tool_call", "blocked", call_id="1", reason="no"), (T.TOOL_RESULT, (CALL, refused)))
    assert (state.blocked, called(state).status) == (1, Status.BLOCKED)


def test_only_what_stops_something_is_told_of_the_other_seams() -> None:
    state = lane(
        decision("context", "replaced"), decision("context", "error", reason="broke"),
        decision("provider_request", "blocked", reason="budget"),
    )  # fmt: skip
    assert remarks(state) == [
        ("context error by gate: broke", Tone.WARNING),
        ("provider_request blocked by gate: budget", Tone.WARNING),
    ]


def test_what_was_said_meanwhile_waits_until_it_is_read() -> None:
    state = lane()
    state.steer("faster")
    assert state.waiting == ["faster"]
    state.apply(LoopEvent(T.SYSTEM, Message.user("faster")), 1.0)
    state.apply(LoopEvent(T.SYSTEM, "a note"), 1.0)
    assert state.waiting == []
    assert [(entry.text, entry.during) for entry in state.entries if isinstance(entry, Said)] == [
        ("go", False), ("faster", True)
    ]  # fmt: skip
    assert remarks(state) == [("a note", Tone.NOTE)]


def test_tokens_come_from_the_bus_and_are_not_counted_twice() -> None:
    state = lane()
    answer = Message.assistant("x")
    state.hear(ModelResponseEvent(message=answer, input_tokens=100, output_tokens=10, cost=0.5), 1.0)
    state.hear(ModelResponseEvent(message=answer, input_tokens=300, output_tokens=5, cost=0.25, depth=1), 1.0)
    usage = {"input_tokens": 400, "output_tokens": 15}
    state.apply(LoopEvent(T.RESULT, LoopResult("completed", usage=usage, cost_usd=0.75)), 1.0)
    assert (state.used.tokens_in, state.used.tokens_out, state.used.cost) == (400, 15, 0.75)
    assert (state.context, state.turns) == (110, 1)


def test_without_a_bus_the_result_tells() -> None:
    usage = {"input_tokens": 400, "output_tokens": 15}
    state = lane((T.RESULT, LoopResult("completed", usage=usage, cost_usd=0.75)))
    assert (state.used.tokens_in, state.used.tokens_out, state.used.cost) == (400, 15, 0.75)
    state.begin("again", 1.0)
    assert (state.turn.tokens_in, state.used.tokens_in) == (0, 400)


def test_sub_agents_are_shown_below() -> None:
    state = lane((T.TOOL_USE, CALL))
    state.hear(ToolCallEvent(call=CALL, depth=1), 1.0)
    state.hear(ToolCallEvent(call=CALL, depth=0), 1.0)
    state.hear(ToolResultEvent(call=CALL, result=ToolResult("deep"), depth=1), 1.0)
    found = [entry for entry in state.entries if isinstance(entry, Called)]
    assert [(entry.depth, entry.status) for entry in found] == [(0, Status.RUNNING), (1, Status.DONE)]


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("completed", []),
        ("aborted", [("the turn ended: aborted", Tone.NOTE)]),
        ("interceptor_blocked: no", [("the turn ended: interceptor_blocked: no", Tone.BAD)]),
        ("error: the wire", []),
    ],
)
def test_how_a_turn_ended(reason: str, said: list[tuple[str, Tone]]) -> None:
    assert remarks(lane((T.RESULT, LoopResult(reason)))) == said


def test_the_end_cuts_off_what_still_runs() -> None:
    state = lane((T.TOOL_USE, CALL), (T.ASSISTANT_CHUNK, "unfinished"))
    state.end("RuntimeError: broke", 30.0)
    assert not state.running
    assert called(state).status is Status.CUT
    assert (state.last_seconds, texts(state)) == (20.0, ["unfinished"])
    assert remarks(state) == [("RuntimeError: broke", Tone.BAD)]


def test_a_shortened_conversation_and_an_error_are_told() -> None:
    state = lane((T.COMPACT_BOUNDARY, CompactionEvent(before=9, after=3)), (T.ERROR, "the wire"))
    assert remarks(state) == [
        ("conversation shortened from 9 to 3 messages", Tone.NOTE),
        ("the wire", Tone.BAD),
    ]


def test_an_earlier_conversation_is_shown_as_it_went() -> None:
    state = LaneState()
    blocked = ToolCall("2", "bash", {"command": "rm"})
    state.load(
        [
            Message.user("hello"),
            Message.assistant("Hi", [CALL, blocked]),
            Message.tool("1", "a b"),
            Message.tool("2", "Blocked by interceptor: no"),
            Message.tool("3", "of nobody"),
            Message.system("by the way"),
            Message.assistant("Done"),
        ]
    )
    assert [type(entry).__name__ for entry in state.entries] == ["Said", "Prose", "Called", "Called", "Remark", "Prose"]
    assert [entry.status for entry in state.entries if isinstance(entry, Called)] == [Status.DONE, Status.BLOCKED]
    state.clear()
    assert state.entries == []
