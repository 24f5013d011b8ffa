"""What the exit status and the output of a hook mean."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.hooks.process import HookFailed, HookOutput
from chimera.hooks.reply import MAX_REASON, Reply, read_reply, stricter


def said(answer: Any, exit_code: int = 0) -> Reply:
    return read_reply(HookOutput(exit_code, answer if isinstance(answer, str) else json.dumps(answer), ""))


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (HookOutput(0, "", ""), Reply()),
        (HookOutput(0, " done \n", "noise"), Reply(text="done")),
        (HookOutput(0, "[1]", ""), Reply(text="[1]")),
        (HookOutput(0, "{}", ""), Reply()),
        (HookOutput(2, "", "no!\n"), Reply("deny", "no!")),
        (HookOutput(2, "out", ""), Reply("deny", "out")),
        (HookOutput(2, "", ""), Reply("deny", "the hook gave no reason")),
        (HookOutput(2, '{"decision": "approve"}', "no!"), Reply("deny", "no!")),
    ],
)
def test_exit_status_and_plain_text(output: HookOutput, expected: Reply) -> None:
    assert read_reply(output) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"decision": "block", "reason": "no"}, Reply("deny", "no")),
        ({"decision": "deny"}, Reply("deny", "the hook gave no reason")),
        ({"decision": "block", "reason": {"a": 1}}, Reply("deny", '{"a": 1}')),
        ({"decision": "block", "reason": " "}, Reply("deny", "the hook gave no reason")),
        ({"decision": "approve", "reason": "fine"}, Reply()),
        ({"decision": None}, Reply()),
        ({"decision": "ask", "reason": "sure?"}, Reply("ask", "sure?")),
        ({"hookSpecificOutput": {"permissionDecision": "allow"}}, Reply()),
        (
            {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no"}},
            Reply("deny", "no"),
        ),
        ({"hookSpecificOutput": {"permissionDecision": "ask"}}, Reply("ask", "the hook gave no reason")),
        ({"hookSpecificOutput": {"additionalContext": "know this"}}, Reply(context="know this")),
        ({"hookSpecificOutput": {"additionalContext": ["a"]}}, Reply(context='["a"]')),
        ({"hookSpecificOutput": None, "suppressOutput": True, "systemMessage": "x"}, Reply()),
        ({"continue": False, "stopReason": "enough"}, Reply("deny", "enough", ends=True)),
        ({"continue": False, "reason": "enough"}, Reply("deny", "enough", ends=True)),
        ({"continue": False}, Reply("deny", "the hook gave no reason", ends=True)),
        ({"continue": True}, Reply()),
        (
            {
                "decision": "approve",
                "reason": "a",
                "hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "b"},
            },
            Reply("deny", "b"),
        ),
        (
            {
                "decision": "block",
                "reason": "a",
                "hookSpecificOutput": {"permissionDecision": "allow", "permissionDecisionReason": "b"},
            },
            Reply("deny", "a"),
        ),
    ],
)
def test_json_decides(answer: dict[str, Any], expected: Reply) -> None:
    assert said(answer) == expected


@pytest.mark.parametrize(
    "answer",
    [
        "{",
        "{not json}",
        '{"decision": "block"} trailing',
        '{"a":' * 100_000,
        {"decision": "maybe"},
        {"decision": False},
        {"decision": 0},
        {"decision": ["block"]},
        {"continue": "false"},
        {"continue": 0},
        {"continue": None},
        {"hookSpecificOutput": "deny"},
        {"hookSpecificOutput": ["deny"]},
        {"hookSpecificOutput": {"permissionDecision": "DENY"}},
        {"hookSpecificOutput": {"permissionDecision": True}},
        {"hookSpecificOutput": {"updatedInput": {"command": "ls"}}},
    ],
)
def test_an_answer_that_means_nothing_is_a_failure_and_no_consent(answer: Any) -> None:
    with pytest.raises(HookFailed):
        said(answer)


@pytest.mark.parametrize("status", [1, 3, 126, 127, -9])
def test_any_other_status_is_a_failure(status: int) -> None:
    with pytest.raises(HookFailed, match=f"status {status}: boom"):
        read_reply(HookOutput(status, '{"decision": "approve"}', "boom"))
    with pytest.raises(HookFailed, match=rf"status {status}\Z"):
        read_reply(HookOutput(status, "", ""))


def test_a_reason_has_an_end() -> None:
    assert len(read_reply(HookOutput(2, "", "x" * 10_000)).reason) == MAX_REASON


@pytest.mark.parametrize(("first", "second"), list(product(("allow", "ask", "deny"), repeat=2)))
def test_the_stricter_decision_holds(first: Any, second: Any) -> None:
    order = ["allow", "ask", "deny"]
    assert stricter(first, second) == order[max(order.index(first), order.index(second))]


@given(st.text(max_size=80), st.integers(-70, 260))
def test_any_output_is_a_reply_or_a_failure(text: str, status: int) -> None:
    try:
        reply = read_reply(HookOutput(status, text, ""))
    except HookFailed:
        assert status != 2
    else:
        assert reply.decision == ("deny" if status == 2 else "allow")
