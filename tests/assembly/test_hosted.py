"""Loops that drive themselves, well or badly, in a lane."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from chimera.assembly.loop_adapter import adapt_loop
from chimera.core.cancellation import CancellationToken
from chimera.core.loop import Loop, ReAct
from chimera.core.loop_config import LoopConfig
from chimera.core.loop_events import LoopEvent, LoopEventType
from chimera.permissions.base import PermissionAction, PermissionPolicy
from chimera.providers.faux import FauxProvider
from chimera.types import Message, StepResult
from tests.assembly.lanes import load_loop, of_type, result_of, run_lane
from tests.core.loops.scenes import Probe, calls

T = LoopEventType


class Asking:
    """A loop that drives itself and asks for approval of its own accord."""

    def __init__(self, config: LoopConfig | None = None) -> None:
        self.inner = ReAct(1, LoopConfig(permissions=AskAlways()))

    def iter_steps(self, *given: Any) -> Any:
        return self.inner.iter_steps(*given)


class AskAlways(PermissionPolicy):
    def evaluate(self, tool_name: str, args: Mapping[str, Any]) -> PermissionAction:
        return PermissionAction.ASK


def test_nobody_answers_questions_in_a_lane() -> None:
    load_loop("asking", Asking)
    tool = Probe()
    events = run_lane("asking", FauxProvider([calls()]), [tool])
    assert tool.entered == []
    assert [event.type for event in events] == [T.ASSISTANT, T.TOOL_USE, T.TOOL_RESULT, T.RESULT]
    assert "nobody is there to be asked" in of_type(events, T.TOOL_RESULT)[0][1].error
    assert result_of(events).reason == "error: the run did not finish within 1 steps"


def junk_steps(*_given: Any) -> Any:
    yield StepResult(None, [], step=1)
    return "done"


def raising_steps(*_given: Any) -> Any:
    raise OSError("no steps")


def unclosable_steps(*_given: Any) -> Any:
    try:
        yield StepResult(Message.assistant("one"), step=1)
    finally:
        raise OSError("cannot stop")


@pytest.mark.parametrize(
    ("steps", "failure"),
    [
        (junk_steps, "TypeError: the loop ended with a str, which is no AgentResult"),
        (raising_steps, "OSError: no steps"),
        (lambda *_given: 5, "TypeError: 'int' object is not an iterator"),
        (lambda *_given: iter(["junk"]), "TypeError: the loop took a step that is a str, which is no StepResult"),
    ],
)
def test_a_loop_that_drives_itself_badly_ends_with_an_error(steps: Any, failure: str) -> None:
    load_loop("bad", lambda config: SimpleNamespace(iter_steps=steps))
    events = run_lane("bad", FauxProvider("x"))
    assert [event.type for event in events] == [T.ERROR, T.RESULT]
    assert (events[0].data, result_of(events).reason) == (failure, f"error: {failure}")


def test_a_loop_that_cannot_be_stopped_says_so() -> None:
    token = CancellationToken()
    load_loop("bad", lambda config: SimpleNamespace(iter_steps=unclosable_steps))

    async def main() -> list[LoopEvent]:
        events = []
        stream = adapt_loop(
            "bad", provider=FauxProvider("x"), tools=[], system_prompt=None, messages=[], abort_signal=token
        )
        async for event in stream:
            events.append(event)
            token.cancel()
        return events

    events = asyncio.run(main())
    assert [event.type for event in events] == [T.ASSISTANT, T.ERROR, T.RESULT]
    assert events[1].data == "OSError: cannot stop"


def test_a_factory_may_be_anything_that_can_be_called() -> None:
    class Factory:
        __signature__ = "junk"

        def __call__(self, config: LoopConfig | None = None) -> Loop:
            return ReAct(9, config)

    load_loop("made", Factory())
    assert result_of(run_lane("made", FauxProvider("x"))).output == "x"
