"""Three ways to run a loop, and what a caller gets of each."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from chimera.core.context import Context
from chimera.core.loop import Loop, ReAct, async_drain_steps, drain_steps
from chimera.errors import MisuseError
from chimera.events import EventBus
from chimera.providers.faux import FauxProvider
from chimera.types import AgentResult, Message
from tests.core.driving import Note, calling, drive, every_mode, held, step_mode


def react(script: Any, **options: Any) -> tuple[ReAct, FauxProvider, Context]:
    return ReAct(config=held(**options)), FauxProvider(script), Context(None, [Message.user("go")])


def test_a_loop_is_what_has_a_program() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Loop()  # type: ignore[abstract]


def test_run_returns_the_result() -> None:
    loop, provider, context = react([calling("note", "note"), "done"])
    assert loop.run(provider, [Note()], context) == AgentResult("done", 2, 2, 0.0, True)


def test_a_generator_of_steps_returns_the_same_result() -> None:
    loop, provider, context = react([calling("note", "note"), "done"])
    assert drain_steps(loop.iter_steps(provider, [Note()], context)) == AgentResult("done", 2, 2, 0.0, True)


async def test_a_stream_of_steps_has_its_result_at_the_end_and_not_before() -> None:
    loop, provider, context = react([calling("note", "note"), "done"])
    stream = loop.async_iter_steps(provider, [Note()], context)
    with pytest.raises(MisuseError, match="no result before its last step"):
        _ = stream.result
    steps = [step async for step in stream]
    assert [step.done for step in steps] == [False, True]
    assert stream.result == AgentResult("done", 2, 2, 0.0, True)
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_a_stream_that_failed_has_no_result() -> None:
    loop, provider, context = react([{"error": OSError("gone")}])
    stream = loop.async_iter_steps(provider, [], context)
    with pytest.raises(OSError, match="gone"):
        await async_drain_steps(stream)
    with pytest.raises(MisuseError, match="no result"):
        _ = stream.result


@step_mode
def test_steps_hold_the_message_the_calls_and_the_results(mode: str) -> None:
    ran = drive(mode, [calling(("note", {"n": 1}), text="hm"), "done"], [Note()], held())
    first, last = ran.steps
    assert first.message == ran.messages[1]
    assert first.tool_calls == list(ran.messages[1].tool_calls)
    assert [result.output for result in first.tool_results] == ["noted"]
    assert (last.message, last.tool_calls, last.tool_results) == (Message.assistant("done"), [], [])


@every_mode
@pytest.mark.parametrize("limit", [0, 1, 3])
def test_the_number_of_turns_has_a_limit(mode: str, limit: int) -> None:
    ran = drive(mode, [calling("note", text=f"turn {n}") for n in range(9)], [Note()], held(), max_steps=limit)
    assert len(ran.requests) == limit
    assert ran.output == (f"turn {limit - 1}" if limit else "")
    assert not ran.success


@every_mode
def test_every_way_to_drive_a_loop_leaves_the_same_conversation(mode: str) -> None:
    script = [calling("note", ("note", {"n": 2}), text="hm"), calling("unknown"), "done"]
    ran = drive(mode, script, [Note(safe=True)], held())
    reference = drive("run", script, [Note(safe=True)], held())
    assert (ran.messages, ran.output, ran.success) == (reference.messages, reference.output, reference.success)
    assert [request.messages for request in ran.requests] == [request.messages for request in reference.requests]


def test_one_loop_object_serves_many_runs() -> None:
    loop = ReAct(config=held(event_bus=EventBus()))
    for number in range(3):
        context = Context()
        assert loop.run(FauxProvider([calling("note"), f"done {number}"]), [Note()], context).output == f"done {number}"
        assert len(context.messages) == 3


async def test_a_synchronous_run_below_an_event_loop() -> None:
    loop, provider, context = react([calling("note"), "done"])
    assert loop.run(provider, [Note()], context).output == "done"


async def test_nothing_happens_before_the_first_step_is_taken() -> None:
    loop, provider, context = react(["done"])
    gen, stream = loop.iter_steps(provider, [], context), loop.async_iter_steps(provider, [], context)
    await asyncio.sleep(0)
    gen.close()
    await stream.aclose()
    assert provider.requests == []
