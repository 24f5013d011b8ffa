from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chimera.core.decisions import ProviderRequest
from chimera.core.differences import difference
from chimera.events import InterceptorEvent, PermissionEvent, RunStartedEvent
from chimera.tui.timeline import Decision, Timeline, decision_of, detail_lines
from chimera.types import Message, ToolCall, ToolResult

CALL = ToolCall("1", "bash", {"command": "ls"})
OTHER = ToolCall("1", "bash", {"command": "ls -l"})
EVENT = InterceptorEvent(
    timestamp=5.0, seam="tool_call", decision="replaced", interceptor="gate", version="1.2",
    run_id="r", duration_us=7.0, tool_name="bash", before=CALL, after=OTHER,
)  # fmt: skip


def taken(event: Any, lane: str = "a") -> Decision:
    found = decision_of(event, lane)
    assert found is not None
    return found


def test_a_decision_of_a_seam() -> None:
    decision = taken(EVENT)
    assert (decision.time, decision.lane, decision.seam, decision.verdict) == (5.0, "a", "tool_call", "replaced")
    assert (decision.interceptor, decision.version, decision.tool, decision.microseconds) == (
        "gate",
        "1.2",
        "bash",
        7.0,
    )


@pytest.mark.parametrize(
    ("action", "source", "rule", "expected"),
    [
        ("deny", "policy", "Bash(rm:*)", ("denied", "rule Bash(rm:*)")),
        ("deny", "hook", None, ("denied", "hook")),
        ("allow", "user", None, ("approved", "user")),
        ("allow", "policy", None, None),
        ("ask", "policy", None, None),
    ],
)
def test_what_permissions_decide(action: str, source: str, rule: str | None, expected: tuple[str, str] | None) -> None:
    decision = decision_of(PermissionEvent(call=CALL, action=action, source=source, rule=rule), "")
    assert (decision and (decision.verdict, decision.interceptor)) == expected


def test_other_events_decide_nothing() -> None:
    assert decision_of(RunStartedEvent(), "") is None


def test_what_comes_over_the_bus_first_is_filled_in_later() -> None:
    timeline = Timeline()
    timeline.add(taken(replace(EVENT, before=None, after=None)))
    timeline.add(taken(EVENT))
    timeline.add(taken(replace(EVENT, before=None, after=None)))
    assert [decision.after for decision in timeline.decisions] == [OTHER]


def test_filters_join_and_cycle() -> None:
    timeline = Timeline()
    events = [(seam, verdict) for seam in ("context", "tool_call") for verdict in ("blocked", "replaced")]
    for number, (seam, verdict) in enumerate(events):
        timeline.add(taken(replace(EVENT, timestamp=number, seam=seam, decision=verdict), "ab"[number % 2]))
    assert [timeline.cycle("seam") for _ in range(3)] == ["context", "tool_call", ""]
    assert timeline.cycle("verdict") == "blocked"
    assert timeline.cycle("lane") == "a"
    assert [(item.lane, item.verdict) for item in timeline.visible()] == [("a", "blocked")] * 2
    timeline.wanted["seam"] = "gone"
    assert timeline.visible() == []
    assert timeline.cycle("seam") == ""
    assert timeline.counts("b") == {"replaced": 2}


def lines(before: Any, after: Any) -> list[str]:
    decision = Decision(0.0, "", "s", "replaced", "x", before=before, after=after)
    return [f"{line.mark}{line.text}" for line in detail_lines(decision)]


def test_what_changed_is_shown_for_every_seam() -> None:
    assert lines(CALL, OTHER) == [" bash", "-command: ls", "+command: ls -l"]
    assert lines(CALL, None) == [" bash", " command: ls"]
    assert lines(ToolResult("a\nb"), ToolResult("a", "failed")) == [" a", "-b", "+error: failed"]
    messages = [Message.user("a"), Message.assistant("b", [CALL])]
    assert lines(*difference(messages, messages[:1])) == ["-assistant: b", "-  call bash {'command': 'ls'}"]
    request = ProviderRequest("m", [], headers={"A": "1"})
    changed = difference(request, replace(request, model="n", headers=None))
    assert lines(*changed) == [" model:", "-  m", "+  n", " headers:", "-  A:", "-    1"]
    assert lines(None, None) == []
