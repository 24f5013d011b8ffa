"""The events-side middleware: observers see no secret, in any event, at any depth; the originals stay."""

from __future__ import annotations

import logging
from dataclasses import fields
from typing import Any

import pytest

from chimera import events as events_module
from chimera.events import Event, EventBus, InterceptorEvent, PermissionEvent, ToolCallEvent, ToolResultEvent
from chimera.secrets import RedactionMiddleware, SecretDetector
from chimera.types import AgentResult, Message, PendingApproval, ToolCall, ToolResult

SECRET = "sk-abcdefgh123"
CALL = ToolCall("c1", "bash", {"command": f"echo {SECRET}", "nested": [{SECRET: SECRET}]})
VALUES: dict[str, Any] = {
    "str": f"text with {SECRET}",
    "str | None": f"text with {SECRET}",
    "Any": {"messages": (Message.assistant(SECRET, [CALL]),), "headers": {"Authorization": SECRET}},
    "ToolCall": CALL,
    "Message": Message.assistant(SECRET, [CALL]),
    "ToolResult": ToolResult(SECRET, SECRET, {"deep": [{"er": SECRET}]}),
    "PendingApproval | None": PendingApproval(CALL, "bash", CALL.arguments, SECRET),
    "AgentResult | None": AgentResult(SECRET, 1, 1, 0.0, False, SECRET),
}
KINDS = [
    kind
    for kind in vars(events_module).values()
    if isinstance(kind, type) and issubclass(kind, Event) and kind is not Event
]


def event_full_of_secrets(kind: type[Event]) -> Event:
    names = [item for item in fields(kind) if item.name not in ("type", "timestamp")]
    return kind(**{item.name: VALUES[str(item.type)] for item in names if str(item.type) in VALUES})


def contents(event: Event) -> str:
    """Return all that an event holds, what its own text leaves out too."""
    return repr([getattr(event, item.name) for item in fields(event)])


@pytest.mark.parametrize("kind", KINDS)
def test_no_event_shows_a_secret_in_any_field(kind: type[Event]) -> None:
    event = event_full_of_secrets(kind)
    before = contents(event)
    assert before.count(SECRET) >= sum(str(item.type) in VALUES for item in fields(kind)) - 1
    shown = RedactionMiddleware()(event)
    assert type(shown) is kind
    assert SECRET not in contents(shown)
    assert (shown.type, shown.timestamp) == (event.type, event.timestamp)
    assert contents(event) == before


def test_every_kind_of_field_is_filled() -> None:
    known = {*VALUES, "int", "float"}
    assert {str(item.type) for kind in KINDS for item in fields(kind)} <= known
    assert len(KINDS) >= 9


def test_an_event_without_secrets_is_handed_on_as_it_is() -> None:
    event = ToolCallEvent(call=ToolCall("c1", "bash", {"command": "ls"}))
    assert RedactionMiddleware()(event) is event


def test_subscribers_of_a_bus_see_the_scrubbed_event_and_the_publisher_keeps_the_original() -> None:
    bus = EventBus()
    seen: list[Any] = []
    bus.use(RedactionMiddleware())
    bus.subscribe("*", seen.append)
    event = ToolResultEvent(call=CALL, result=ToolResult(SECRET))
    bus.publish(event)
    assert SECRET not in repr(seen)
    assert seen[0].result.output == "[redacted]"
    assert event.result.output == SECRET


def test_without_the_middleware_the_secret_is_there() -> None:
    bus = EventBus()
    seen: list[Any] = []
    bus.subscribe("*", seen.append)
    bus.publish(ToolResultEvent(call=CALL, result=ToolResult(SECRET)))
    assert SECRET in repr(seen)


def test_approving_what_was_shown_approves_what_was_asked() -> None:
    approval = PendingApproval(CALL, "bash", CALL.arguments, "")
    bus = EventBus()
    bus.use(RedactionMiddleware())

    def answer(event: Event) -> None:
        assert isinstance(event, PermissionEvent)
        assert event.approval is not None
        assert SECRET not in repr(event.approval)
        event.approval.approve()

    bus.subscribe(PermissionEvent, answer)
    bus.publish(PermissionEvent(call=CALL, action="ask", approval=approval))
    assert approval.approved


def test_own_detector_and_replacement() -> None:
    middleware = RedactionMiddleware(SecretDetector.of("acme-[0-9]+"), "***")
    shown = middleware(InterceptorEvent(reason=f"acme-12 {SECRET}"))
    assert isinstance(shown, InterceptorEvent)
    assert shown.reason == f"*** {SECRET}"


def test_when_scrubbing_fails_the_event_is_dropped_and_said_so(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(SecretDetector):
        def scrub(self, text: str, replacement: str = "") -> str:
            raise RuntimeError("out of order")

    bus = EventBus()
    seen: list[Any] = []
    bus.use(RedactionMiddleware(Broken()))
    bus.subscribe("*", seen.append)
    with caplog.at_level(logging.WARNING, logger="chimera.events"):
        bus.publish(ToolResultEvent(call=CALL, result=ToolResult(SECRET)))
    assert seen == []
    assert "dropped" in caplog.text
