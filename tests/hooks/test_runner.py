"""Hooks of every event, through real commands: gates fail closed, observers fail open."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chimera.errors import ConfigError
from chimera.hooks import HookRunner, HookVerdict
from chimera.hooks.settings import EVENTS, Hook
from chimera.types import ToolCall, ToolResult

CALL = ToolCall("call-1", "bash", {"command": "ls", "deep": {"a": [1]}}).sealed()
RESULT = ToolResult("out", "bad", {"path": Path("/x")})
WHO = SimpleNamespace(conversation_id="conversation-7", run_id="run-3", depth=1)


def runner(cwd: Path, event: str, *commands: str, matcher: str = "", timeout: float = 20) -> HookRunner:
    hooks = [{"type": "command", "command": command, "timeout": timeout} for command in commands]
    return HookRunner.from_settings({"hooks": {event: [{"matcher": matcher, "hooks": hooks}]}}, cwd=cwd)


GATES: dict[str, Callable[[HookRunner], HookVerdict]] = {
    "PreToolUse": lambda hooks: hooks.pre_tool_use(CALL, WHO),
    "UserPromptSubmit": lambda hooks: hooks.user_prompt_submit("do it", WHO),
}
OBSERVERS: dict[str, Callable[[HookRunner], str | None]] = {
    "PostToolUse": lambda hooks: hooks.post_tool_use(CALL, RESULT, WHO),
    "SessionStart": lambda hooks: hooks.session_start(WHO),
    "Stop": lambda hooks: hooks.stop(WHO),
}
FAILURES = {
    "crash": "exit 1",
    "killed": "kill -9 $$",
    "missing": "no-such-program-here",
    "unreadable": "echo '{broken'",
    "junk verdict": """echo '{"decision": "perhaps"}'""",
    "no text": "printf '\\377'",
}


@pytest.mark.parametrize("event", EVENTS)
def test_nothing_runs_without_hooks(event: str, tmp_path: Path) -> None:
    hooks = HookRunner.from_settings({}, cwd=tmp_path)
    assert not hooks.has(event)
    run = {**GATES, **OBSERVERS}[event]
    assert run(hooks) in (None, HookVerdict())


@pytest.mark.parametrize("event", EVENTS)
def test_every_event_tells_its_hook_what_happens(event: str, tmp_path: Path) -> None:
    hooks = runner(tmp_path, event, "cat > seen.json")
    assert hooks.has(event)
    assert [other for other in (*EVENTS, "Nothing") if hooks.has(other)] == [event]
    {**GATES, **OBSERVERS}[event](hooks)
    seen = json.loads((tmp_path / "seen.json").read_text())
    common = {
        "hook_event_name": event,
        "session_id": "conversation-7",
        "run_id": "run-3",
        "agent_depth": 1,
        "cwd": str(tmp_path),
    }
    call = {"tool_name": "bash", "tool_families": ["Bash"], "tool_input": dict(CALL.arguments), "tool_use_id": "call-1"}
    response = {"output": "out", "error": "bad", "success": False, "metadata": {"path": "/x"}}
    own: dict[str, dict[str, Any]] = {
        "PreToolUse": call,
        "PostToolUse": {**call, "tool_response": response},
        "UserPromptSubmit": {"prompt": "do it"},
        "SessionStart": {"source": "startup"},
        "Stop": {"stop_hook_active": False},
    }
    assert seen == {**common, **own[event]}


def test_without_an_identity_the_fields_are_empty(tmp_path: Path) -> None:
    runner(tmp_path, "PreToolUse", "cat > seen.json").pre_tool_use(CALL)
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert (seen["session_id"], seen["run_id"], seen["agent_depth"]) == ("", "", 0)


@pytest.mark.parametrize("event", GATES)
@pytest.mark.parametrize("failure", FAILURES)
def test_a_gate_that_fails_stays_closed_and_says_that_it_failed(event: str, failure: str, tmp_path: Path) -> None:
    hooks = runner(tmp_path, event, FAILURES[failure], "touch next")
    verdict = GATES[event](hooks)
    assert verdict.decision == "deny"
    assert verdict.failed
    assert verdict.reason.startswith("the hook failed, which is no verdict: ")
    assert f"{event}[0].hooks[0]" in verdict.hook
    assert not (tmp_path / "next").exists()


@pytest.mark.parametrize("event", GATES)
def test_a_gate_that_is_late_stays_closed(event: str, tmp_path: Path) -> None:
    verdict = GATES[event](runner(tmp_path, event, "sleep 60", timeout=0.2))
    assert (verdict.decision, verdict.failed) == ("deny", True)
    assert "0.2 seconds" in verdict.reason


@pytest.mark.parametrize("event", GATES)
def test_a_gate_that_cannot_even_be_told_stays_closed(event: str, tmp_path: Path) -> None:
    hooks = runner(tmp_path / "missing", event, "true")
    assert GATES[event](hooks).failed
    unspeakable = ToolCall("x", "bash", {"command": {("a",): 1}})
    verdict = runner(tmp_path, "PreToolUse", "true").pre_tool_use(unspeakable)
    assert (verdict.decision, verdict.failed) == ("deny", True)
    assert "TypeError" in verdict.reason


@pytest.mark.parametrize("event", GATES)
def test_a_verdict_is_told_apart_from_a_failure(event: str, tmp_path: Path) -> None:
    verdict = GATES[event](runner(tmp_path, event, "echo not this >&2; exit 2"))
    assert verdict == HookVerdict("deny", "not this", f"hooks.{event}[0].hooks[0] (echo not this >&2; exit 2)")


@pytest.mark.parametrize("event", OBSERVERS)
@pytest.mark.parametrize("failure", FAILURES)
def test_an_observer_that_fails_is_logged_and_passed_over(
    event: str, failure: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    speaks = """echo '{"decision": "block", "reason": "still", "hookSpecificOutput": {"additionalContext": "still"}}'"""
    hooks = runner(tmp_path, event, FAILURES[failure], speaks)
    with caplog.at_level(logging.WARNING, "chimera.hooks"):
        assert "still" in (OBSERVERS[event](hooks) or "")
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert f"{event}[0].hooks[0]" in caplog.text


def verdict(decision: str, reason: str) -> str:
    answer = {"hookSpecificOutput": {"permissionDecision": decision, "permissionDecisionReason": reason}}
    return f"echo x >> ran; echo '{json.dumps(answer)}'"


@pytest.mark.parametrize(
    ("decisions", "expected", "reason", "ran"),
    [
        (["allow", "allow"], "allow", "", 2),
        (["allow", "ask"], "ask", "1", 2),
        (["ask", "allow"], "ask", "0", 2),
        (["ask", "ask"], "ask", "0", 2),
        (["ask", "deny", "allow"], "deny", "1", 2),
        (["deny", "allow"], "deny", "0", 1),
        (["allow", "ask", "deny"], "deny", "2", 3),
    ],
)
def test_the_strictest_verdict_holds_and_a_denial_ends_it(
    decisions: list[str], expected: str, reason: str, ran: int, tmp_path: Path
) -> None:
    commands = [verdict(decision, str(index)) for index, decision in enumerate(decisions)]
    found = runner(tmp_path, "PreToolUse", *commands).pre_tool_use(CALL)
    assert (found.decision, found.reason, found.failed) == (expected, reason, False)
    assert len((tmp_path / "ran").read_text().split()) == ran


def test_only_hooks_that_match_run(tmp_path: Path) -> None:
    hooks = runner(tmp_path, "PreToolUse", "exit 2", matcher="Edit|Write")
    assert hooks.pre_tool_use(CALL).decision == "allow"
    assert hooks.pre_tool_use(ToolCall("1", "apply_patch", {})).decision == "deny"
    started = runner(tmp_path, "SessionStart", "echo hello", matcher="resume")
    assert started.session_start(WHO) is None
    assert started.session_start(WHO, source="resume") == "hello"


def test_a_prompt_can_be_given_context_and_a_question_is_a_denial(tmp_path: Path) -> None:
    context = """echo '{"hookSpecificOutput": {"additionalContext": "second"}}'"""
    assert (
        runner(tmp_path, "UserPromptSubmit", "echo first", context).user_prompt_submit("x").context == "first\nsecond"
    )
    asked = runner(tmp_path, "UserPromptSubmit", """echo '{"decision": "ask", "reason": "sure?"}'""")
    assert asked.user_prompt_submit("x").decision == "deny"


def test_feedback_after_a_call(tmp_path: Path) -> None:
    def said(*commands: str) -> str | None:
        return runner(tmp_path, "PostToolUse", *commands).post_tool_use(CALL, RESULT)

    assert said("echo just noise") is None
    assert said("echo format it >&2; exit 2", """echo '{"decision": "block", "reason": "and test"}'""") == (
        "format it\nand test"
    )
    assert said("""echo '{"hookSpecificOutput": {"additionalContext": "by the way"}}'""") == "by the way"


def test_a_session_can_begin_with_text(tmp_path: Path) -> None:
    assert runner(tmp_path, "SessionStart", "echo one", "echo two", "true").session_start() == "one\ntwo"


def test_stop_hooks_can_send_the_agent_on_or_end_it(tmp_path: Path) -> None:
    def stopped(*commands: str, active: bool = False) -> str | None:
        return runner(tmp_path, "Stop", *commands).stop(active=active)

    assert stopped("true") is None
    assert stopped("echo noise") is None
    assert stopped("echo tests fail >&2; exit 2") == "tests fail"
    ends = """echo '{"continue": false, "stopReason": "enough"}'"""
    assert stopped("echo more >&2; exit 2", ends) is None
    once = "grep -q '\"stop_hook_active\": true' && exit 0; echo again >&2; exit 2"
    assert stopped(once) == "again"
    assert stopped(once, active=True) is None


def test_several_settings_run_in_order(tmp_path: Path) -> None:
    settings: list[dict[str, Any]] = [
        {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": f"echo {name}"}]}]}} for name in "ab"
    ]
    assert HookRunner.from_settings(*settings, cwd=tmp_path).session_start() == "a\nb"
    with pytest.raises(ConfigError):
        HookRunner.from_settings(settings[0], {"hooks": {"Nope": []}})


def test_a_runner_works_in_the_current_folder_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert HookRunner({"SessionStart": (Hook("pwd", 20.0, "here"),)}).session_start() == str(tmp_path)
