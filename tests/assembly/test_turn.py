"""A turn may be iterated over, awaited, or both; and a turn that nobody starts does nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from chimera.assembly import CodingAgent
from chimera.core.loop_events import LoopEventType
from chimera.providers.faux import FauxProvider


def agent(script: Any = "hello") -> CodingAgent:
    return CodingAgent(provider=FauxProvider(script), tools_override=[])


def test_asyncio_run_takes_a_turn() -> None:
    assert asyncio.run(agent().run("go")).output == "hello"


async def test_await_returns_the_result() -> None:
    assert (await agent().run("go")).reason == "completed"


async def test_a_turn_can_be_a_task() -> None:
    assert (await asyncio.create_task(agent().run("go"))).output == "hello"


async def test_awaiting_after_some_iteration_runs_the_rest() -> None:
    turn = agent().run("go")
    first = await anext(turn)
    assert first.type is LoopEventType.STREAM_START
    assert (await turn).output == "hello"


async def test_awaiting_a_finished_turn_gives_its_result() -> None:
    turn = agent().run("go")
    events = [event async for event in turn]
    assert await turn is events[-1].data


async def test_a_turn_that_was_closed_before_its_end_has_no_result() -> None:
    turn = agent().run("go")
    await anext(turn)
    await turn.aclose()
    with pytest.raises(RuntimeError, match="closed before"):
        await turn


def test_a_turn_that_nobody_starts_does_nothing() -> None:
    lazy = agent()
    turn = lazy.run("go")
    turn.close()
    del turn
    assert lazy.provider.requests == []
