"""Decisions tell what they changed: no more than that, and only to those who listen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chimera.core.decisions import InterceptDecision, Interceptors, ProviderRequest
from chimera.core.differences import difference
from chimera.core.loop_config import LoopConfig
from chimera.core.seams import (
    Watch,
    intercept_context,
    intercept_provider_request,
    intercept_tool_call,
    intercept_tool_result,
)
from chimera.events import EventBus, InterceptorEvent
from chimera.secrets import RedactionMiddleware
from chimera.testing import create_harness
from chimera.types import Message, ToolCall, ToolResult

SECRET = "AKIAIOSFODNN7EXAMPLA"
CALL = ToolCall("1", "bash", {"command": "ls"})


def told() -> tuple[Watch, list[Any]]:
    heard: list[Any] = []
    return Watch(heard.append, None, shows_changes=True), heard


def test_a_rewritten_call_is_told_as_it_was_and_as_it_is() -> None:
    watch, heard = told()
    other = ToolCall("1", "bash", {"command": "ls -l"})
    intercept_tool_call([lambda call: InterceptDecision.replace(other)], CALL, watch=watch)
    assert (heard[0].before, heard[0].after) == (CALL, other)
    assert "ls -l" not in repr(heard[0])


def test_a_blocked_call_is_told_and_a_withheld_result_is_not() -> None:
    watch, heard = told()
    intercept_tool_call([lambda call: InterceptDecision.block("no")], CALL, watch=watch)
    intercept_tool_result([lambda call, result: InterceptDecision.block("no")], CALL, ToolResult("x"), watch=watch)
    assert [(event.before, event.after) for event in heard] == [(CALL, None), (None, None)]


def test_of_a_conversation_only_what_differs_is_told_and_not_too_much() -> None:
    kept = [Message.user(f"kept {number}") for number in range(50)]
    gone, new = Message.user("gone"), Message.user("new")
    assert difference([*kept, gone], [*kept, new]) == ((gone,), (new,))
    before, after = difference(list(kept), [])
    assert (len(before), before[-1], after) == (20, kept[-1], ())


def test_of_an_envelope_the_changed_fields_are_told() -> None:
    watch, heard = told()
    request = ProviderRequest("small", [Message.user("hello")], headers={"X": "1"})
    other = ProviderRequest("large", request.messages, headers={"X": "2"})
    intercept_provider_request([lambda _: InterceptDecision.replace(other)], request, watch=watch)
    assert heard[0].before == {"model": "small", "headers": {"X": "1"}}
    assert heard[0].after == {"model": "large", "headers": {"X": "2"}}


def test_the_redaction_of_events_reaches_into_the_change() -> None:
    messages = (Message.user(f"the key is {SECRET}"),)
    event = RedactionMiddleware()(InterceptorEvent(seam="context", before=messages))
    assert SECRET not in str(event.before)  # type: ignore[union-attr]
    assert SECRET in messages[0].content


def test_the_bus_is_not_told_what_a_policy_took_out() -> None:
    """Records must not hold what only a policy's own pattern knows to be a secret."""
    bus = EventBus()
    heard: list[Any] = []
    bus.subscribe("*", heard.append)
    scrub = Interceptors(
        context=[lambda messages: InterceptDecision.replace([Message.user("scrubbed")])],
        provider_request=[lambda request: InterceptDecision.replace(replace(request, kwargs={"temperature": 0.5}))],
        tool_call=[lambda call: InterceptDecision.replace(ToolCall(call.id, "bash", {"command": "true"}))],
        tool_result=[lambda call, result: InterceptDecision.replace(ToolResult("scrubbed"))],
    )
    script: list[Any] = [{"tool_calls": [{"name": "bash", "arguments": {"command": "echo my-own-secret"}}]}, "done"]
    config = LoopConfig(interceptors=scrub, event_bus=bus, yolo_mode=True)
    with create_harness(script, config=config) as harness:
        noted = harness.run("my-own-secret").decisions
    decisions = [event for event in heard if isinstance(event, InterceptorEvent)]
    assert {event.seam for event in decisions} == {"context", "provider_request", "tool_call", "tool_result"}
    assert all(event.before is None and event.after is None for event in decisions)
    assert "my-own-secret" in str([event.before for event in noted])  # the control: whoever listens is told


def test_the_change_is_one_of_that_moment() -> None:
    watch, heard = told()
    messages = [Message.user("one")]
    intercept_context([lambda given: InterceptDecision.replace([*given, Message.user("two")])], messages, watch=watch)
    messages.append(Message.user("three"))
    assert [message.content for message in heard[0].after] == ["two"]
    assert heard[0].before == ()
