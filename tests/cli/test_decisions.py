from __future__ import annotations

from chimera.cli.decisions import Decision, DecisionLog, decision_table
from chimera.events import EventBus, InterceptorEvent, PermissionEvent
from chimera.types import ToolCall
from tests.cli.consoles import recorded

CALL = ToolCall("call_1", "bash", {"command": "ls"})
GATE = InterceptorEvent(
    seam="tool_call",
    decision="blocked",
    reason="no",
    tool_name="bash",
    call_id="call_1",
    interceptor="Gate.check",
    duration_us=12.345,
    depth=1,
    version="gate@1-abc",
)


def logged(*events: InterceptorEvent | PermissionEvent) -> list[Decision]:
    bus = EventBus()
    log = DecisionLog(bus)
    for event in events:
        bus.publish(event)
    log.close()
    bus.publish(GATE)
    return log.entries


def test_decisions_of_interceptors_are_kept() -> None:
    assert logged(GATE) == [
        Decision("tool_call", "blocked", "bash", "Gate.check", "no", 12.3, "call_1", 1, "gate@1-abc")
    ]


def test_denials_and_approvals_are_kept_and_what_merely_passed_is_not() -> None:
    entries = logged(
        PermissionEvent(call=CALL, action="allow"),
        PermissionEvent(call=CALL, action="ask", reason="it runs a command"),
        PermissionEvent(call=CALL, action="allow", source="user", reason="it runs a command"),
        PermissionEvent(call=CALL, action="deny", source="user", reason="the user denied it"),
        PermissionEvent(call=CALL, action="deny", rule="Bash(ls:*)", reason="the rule denies it"),
        PermissionEvent(call=CALL, action="deny", source="hook"),
    )
    assert [(entry.decision, entry.interceptor, entry.reason) for entry in entries] == [
        ("approved", "user", "it runs a command"),
        ("denied", "user", "the user denied it"),
        ("denied", "rule Bash(ls:*)", "the rule denies it"),
        ("denied", "hook", None),
    ]
    assert {(entry.seam, entry.tool, entry.call_id, entry.microseconds) for entry in entries} == {
        ("permission", "bash", "call_1", None)
    }


def test_a_decision_as_json_names_all_its_fields() -> None:
    assert logged(GATE)[0].as_json() == {
        "seam": "tool_call",
        "decision": "blocked",
        "tool": "bash",
        "interceptor": "Gate.check",
        "reason": "no",
        "microseconds": 12.3,
        "call_id": "call_1",
        "depth": 1,
        "version": "gate@1-abc",
    }


def test_the_table_fits_on_80_columns_and_hides_no_reason() -> None:
    reason = "plan-gate: no plan has been recorded since the latest user message"
    entries = [
        Decision("provider_request", "replaced", None, "A" * 40, None, 123456.7),
        Decision("tool_call", "blocked", "spawn_writer", "Gate.check", reason, 1.2),
        Decision("permission", "denied", "x\x1b[2J" * 20, "user", None, None),
    ]
    console, out = recorded(width=80)
    console.print(decision_table(entries))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    words = " ".join(out.getvalue().split())
    assert all(word in words for word in ("provider_request", "123457", "Gate.check", *reason.split()))
    assert "\x1b" not in words
