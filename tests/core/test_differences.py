"""Decisions tell what they changed: no more than that, and only to those who listen."""

from __future__ import annotations

from typing import Any

from chimera.core.decisions import InterceptDecision, ProviderRequest
from chimera.core.differences import difference
from chimera.core.seams import (
    intercept_context,
    intercept_provider_request,
    intercept_tool_call,
    intercept_tool_result,
)
from chimera.events import EventBus, InterceptorEvent
from chimera.secrets import RedactionMiddleware
from chimera.types import Message, ToolCall, ToolResult

SECRET = "AKIAIOSFODNN7EXAMPLA"
CALL = ToolCall("1", "bash", {"command": "ls"})


def told() -> tuple[EventBus, list[Any]]:
    bus = EventBus()
    heard: list[Any] = []
    bus.subscribe(InterceptorEvent, heard.append)
    return bus, heard


def test_a_rewritten_call_is_told_as_it_was_and_as_it_is() -> None:
    bus, heard = told()
    other = ToolCall("1", "bash", {"command": "ls -l"})
    intercept_tool_call([lambda call: InterceptDecision.replace(other)], CALL, event_bus=bus)
    assert (heard[0].before, heard[0].after) == (CALL, other)
    assert "ls -l" not in repr(heard[0])


def test_a_blocked_call_is_told_and_a_withheld_result_is_not() -> None:
    bus, heard = told()
    intercept_tool_call([lambda call: InterceptDecision.block("no")], CALL, event_bus=bus)
    intercept_tool_result([lambda call, result: InterceptDecision.block("no")], CALL, ToolResult("x"), event_bus=bus)
    assert [(event.before, event.after) for event in heard] == [(CALL, None), (None, None)]


def test_of_a_conversation_only_what_differs_is_told_and_not_too_much() -> None:
    kept = [Message.user(f"kept {number}") for number in range(50)]
    gone, new = Message.user("gone"), Message.user("new")
    assert difference([*kept, gone], [*kept, new]) == ((gone,), (new,))
    before, after = difference(list(kept), [])
    assert (len(before), before[-1], after) == (20, kept[-1], ())


def test_of_an_envelope_the_changed_fields_are_told() -> None:
    bus, heard = told()
    request = ProviderRequest("small", [Message.user("hello")], headers={"X": "1"})
    other = ProviderRequest("large", request.messages, headers={"X": "2"})
    intercept_provider_request([lambda _: InterceptDecision.replace(other)], request, event_bus=bus)
    assert heard[0].before == {"model": "small", "headers": {"X": "1"}}
    assert heard[0].after == {"model": "large", "headers": {"X": "2"}}


def test_the_redaction_of_events_reaches_into_the_change() -> None:
    bus, heard = told()
    bus.use(RedactionMiddleware())
    messages = [Message.user(f"the key is {SECRET}")]
    intercept_context([lambda _: InterceptDecision.replace([Message.user("x")])], messages, event_bus=bus)
    assert SECRET not in heard[0].before[0].content
    assert SECRET in messages[0].content


def test_the_change_is_one_of_that_moment() -> None:
    bus, heard = told()
    messages = [Message.user("one")]
    intercept_context([lambda given: InterceptDecision.replace([*given, Message.user("two")])], messages, event_bus=bus)
    messages.append(Message.user("three"))
    assert [message.content for message in heard[0].after] == ["two"]
    assert heard[0].before == ()
