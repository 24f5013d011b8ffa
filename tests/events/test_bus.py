"""The event bus: order, wishes, and observers that misbehave."""

from __future__ import annotations

import dataclasses
import gc
import logging
import threading
from typing import Any

import pytest

from chimera.events import Event, EventBus, InterceptorEvent, RunStartedEvent, ToolCallEvent
from chimera.types import ToolCall

CALL = ToolCallEvent(call=ToolCall("1", "note", {}))


class Heard(list[Any]):
    def __call__(self, event: Event) -> None:
        self.append(event)


def test_subscribers_hear_what_they_asked_for_in_order_of_registration() -> None:
    bus = EventBus()
    order: list[str] = []

    def hear(name: str) -> Any:
        return lambda event: order.append(name)

    wishes: list[Any] = [("text", "tool_call"), ("class", ToolCallEvent), ("all", "*"), ("base", Event)]
    for name, wanted in wishes:
        bus.subscribe(wanted, hear(name))
    bus.subscribe("interceptor", hear("never"))
    bus.publish(CALL)
    assert order == ["text", "class", "all", "base"]


def test_an_undo_takes_back_its_own_registration_only() -> None:
    bus, heard = EventBus(), Heard()
    undos = [bus.subscribe("*", heard) for _ in range(3)]
    undos[1]()
    undos[1]()
    bus.publish(CALL)
    assert len(heard) == 2
    undos[0]()
    undos[2]()
    bus.publish(CALL)
    assert len(heard) == 2


def test_an_undo_of_a_middleware_takes_back_its_own_registration_only() -> None:
    bus, heard, passed = EventBus(), Heard(), []

    def count(event: Event) -> Event:
        passed.append(1)
        return event

    bus.subscribe("*", heard)
    first, second = bus.use(count), bus.use(count)
    second()
    bus.publish(CALL)
    first()
    bus.publish(CALL)
    assert (len(heard), passed) == (2, [1])


def test_middleware_changes_and_drops_in_order() -> None:
    bus, heard = EventBus(), Heard()
    bus.subscribe("*", heard)
    bus.use(lambda event: dataclasses.replace(event, lane=event.lane + "a"))
    bus.use(lambda event: dataclasses.replace(event, lane=event.lane + "b"))
    bus.use(lambda event: None if event.type == "run_started" else event)
    bus.publish(CALL)
    bus.publish(RunStartedEvent())
    assert [event.lane for event in heard] == ["ab"]
    assert CALL.lane == ""


def test_what_a_middleware_makes_of_an_event_decides_who_hears_it() -> None:
    bus, calls, interceptors = EventBus(), Heard(), Heard()
    bus.subscribe("tool_call", calls)
    bus.subscribe("interceptor", interceptors)
    bus.use(lambda event: InterceptorEvent(seam="context"))
    bus.publish(CALL)
    assert (len(calls), len(interceptors)) == (0, 1)


def test_a_subscriber_that_raises_is_logged_and_skipped(caplog: pytest.LogCaptureFixture) -> None:
    bus, heard = EventBus(), Heard()

    def broken(_event: Event) -> None:
        raise ValueError("broken")

    bus.subscribe("*", broken)
    bus.subscribe("*", heard)
    with caplog.at_level(logging.WARNING):
        bus.publish(CALL)
        bus.publish(CALL)
    assert len(heard) == 2
    assert caplog.text.count("a subscriber of tool_call events raised and is skipped") == 2


async def _later(event: Event) -> Event:
    return event


def _broken(_event: Event) -> Event:
    raise ValueError("broken")


@pytest.mark.parametrize("junk", [_broken, lambda e: True, lambda e: "event", lambda e: Event, lambda e: _later(e)])
def test_a_middleware_that_fails_or_answers_with_junk_drops_the_event(
    junk: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """An observer that misses a record is better off than a record that went around its redaction."""
    bus, heard = EventBus(), Heard()
    bus.subscribe("*", heard)
    bus.use(junk)
    with caplog.at_level(logging.WARNING):
        bus.publish(CALL)
    gc.collect()
    assert heard == []
    assert "the tool_call event is dropped" in caplog.text


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("place", ["subscriber", "middleware"])
def test_interrupts_come_out(interrupt: type[BaseException], place: str) -> None:
    def pressed(_event: Event) -> Event:
        raise interrupt

    bus = EventBus()
    bus.subscribe("*", pressed if place == "subscriber" else Heard())
    if place == "middleware":
        bus.use(pressed)
    with pytest.raises(interrupt):
        bus.publish(CALL)


class _AsyncCallable:
    async def __call__(self, event: Event) -> None: ...


@pytest.mark.parametrize("fn", [_later, _AsyncCallable(), 3, None, "text"])
def test_what_could_never_be_called_is_refused(fn: Any) -> None:
    for register in (EventBus().use, lambda fn: EventBus().subscribe("*", fn)):
        with pytest.raises(TypeError, match=r"must be callable|called and not awaited"):
            register(fn)


def test_a_coroutine_that_a_subscriber_returns_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    bus = EventBus()
    bus.subscribe("*", lambda event: _later(event))
    with caplog.at_level(logging.WARNING):
        bus.publish(CALL)
    gc.collect()
    assert "returned a coroutine, which nobody awaits" in caplog.text


def test_wishes() -> None:
    bus = EventBus()
    assert not bus.wants("tool_call")
    undo = bus.subscribe("tool_call", Heard())
    assert (bus.wants("tool_call"), bus.wants("interceptor")) == (True, False)
    undo()
    bus.subscribe("*", Heard())
    assert bus.wants("anything")


def test_which_middleware_is_in_place() -> None:
    class Mine:
        def __call__(self, event: Event) -> Event:
            return event

    bus = EventBus()
    assert not bus.uses(Mine)
    undo = bus.use(Mine())
    assert (bus.uses(Mine), bus.uses(dict)) == (True, False)
    undo()
    assert not bus.uses(Mine)


def test_nobody_hears_and_no_middleware_works_for_nobody() -> None:
    bus, passed = EventBus(), Heard()
    bus.use(lambda event: passed.append(event) or event)  # type: ignore[func-returns-value]
    bus.publish(CALL)
    assert passed == []


def test_a_subscriber_may_subscribe_and_leave_while_it_hears() -> None:
    bus, late = EventBus(), Heard()

    def once(_event: Event) -> None:
        undo()
        bus.subscribe("*", late)

    undo = bus.subscribe("*", once)
    bus.publish(CALL)
    bus.publish(CALL)
    assert len(late) == 1


def test_threads_may_subscribe_leave_and_publish_at_once() -> None:
    bus, always = EventBus(), Heard()
    bus.subscribe("*", always)

    def work() -> None:
        for _ in range(200):
            undo = bus.subscribe("tool_call", Heard())
            bus.publish(CALL)
            undo()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(always) == 1200
    assert len(bus._subscribers) == 1


def test_events_are_values_with_a_time() -> None:
    event = RunStartedEvent(loop="react", run_id="r")
    assert (event.type, event.run_id, event.depth) == ("run_started", "r", 0)
    assert event.timestamp > 1_700_000_000
    with pytest.raises(AttributeError):
        event.loop = "other"  # type: ignore[misc]
