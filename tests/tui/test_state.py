from __future__ import annotations

from typing import Any

from chimera.core.loop_events import LoopEvent, LoopEventType
from chimera.events import InterceptorEvent
from chimera.tui.approvals import Question
from chimera.tui.inbox import TurnEnded
from chimera.tui.lane_state import LaneState
from chimera.tui.state import AppState
from chimera.types import Message, PendingApproval, ToolCall

SECRET = "AKIAIOSFODNN7EXAMPLA"


def state(*names: str) -> AppState:
    found = AppState(clock=lambda: 5.0)
    for name in names:
        found.add_lane(LaneState(name))
    return found


def question(lane: str) -> Question:
    call = ToolCall("1", "bash", {})
    return Question(PendingApproval(call, "bash", {}, "why"), lane)


def test_lanes_get_what_is_theirs() -> None:
    both = state("a", "b")
    both.lanes["b"].begin("go", 1.0)
    both.inbox.put("a", LoopEvent(LoopEventType.ERROR, "broke"))
    both.inbox.put("b", TurnEnded("gone"))
    assert both.running
    assert len(both.take()) == 2
    assert [len(lane.entries) for lane in both.lanes.values()] == [1, 2]
    assert (both.running, both.current, both.lane.name) == (False, "a", "a")


def test_decisions_of_both_ways_are_one_and_scrubbed() -> None:
    one = state("a")
    event = InterceptorEvent(seam="context", decision="replaced", interceptor="x", before=(Message.user(SECRET),))
    heard: Any = InterceptorEvent(timestamp=event.timestamp, seam="context", decision="replaced", interceptor="x")
    one.inbox.put("a", heard)
    one.inbox.put("a", LoopEvent(LoopEventType.INTERCEPTOR, event))
    one.take()
    (decision,) = one.timeline.decisions
    assert decision.before is not None
    assert SECRET not in str(decision.before)


def test_questions_queue_up() -> None:
    both = state("a", "b")
    first, second, lost = question("a"), question("b"), question("gone")
    for each in (first, second, lost):
        both.ask(each)
    assert [lane.asking for lane in both.lanes.values()] == [1, 1]
    both.answered(first)
    both.answered(first)
    both.answered(lost)
    assert list(both.questions) == [second]
    assert [lane.asking for lane in both.lanes.values()] == [0, 1]
