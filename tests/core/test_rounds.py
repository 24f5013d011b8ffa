"""Many runs on one event loop: whoever else lives on it has a turn every few milliseconds."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from collections import Counter
from time import perf_counter
from typing import Any

import pytest

from chimera.core.agent_loop import AgentLoop
from chimera.core.context import Context
from chimera.core.decisions import Interceptors
from chimera.core.loop import ReAct, async_drain_steps
from chimera.core.rounds import Rounds, rounds_of
from chimera.providers.base import Provider, Response
from chimera.types import Message, ToolCall
from tests.core.driving import Note, held

RUNS, STEPS = 40, 6


def work() -> None:
    """Keep the thread busy for a millisecond."""
    end = perf_counter() + 0.001
    while perf_counter() < end:
        pass


class Prompt(Provider):
    """A model that answers in the next round of the event loop."""

    model_name = "prompt"

    def __init__(self) -> None:
        self._left = STEPS

    def complete(self, messages: Any, tools: Any = None, *_: Any, **kwargs: Any) -> Response:
        raise AssertionError

    async def async_complete(self, messages: Any, tools: Any = None, *_: Any, **kwargs: Any) -> Response:
        await asyncio.sleep(0)
        self._left -= 1
        return Response("", [ToolCall("c", "note", {})]) if self._left else Response("done")


async def busiest_round(kind: str) -> int:
    """Run many agents that work for a millisecond a step; return how many of these steps one round has held at most."""
    steps: Counter[int] = Counter()
    rounds = 0

    def policy(_messages: list[Message]) -> None:
        work()
        steps[rounds] += 1

    async def agent() -> None:
        chains = Interceptors(context=[policy])
        if kind == "agent":
            events = AgentLoop().run([], tools=[Note()], provider=Prompt(), system_prompt=None, interceptors=chains)
            async for _ in events:
                pass
        else:
            loop = ReAct(config=held(chains))
            context = Context(None, [Message.user("go")])
            await async_drain_steps(loop.async_iter_steps(Prompt(), [Note()], context))

    async def somebody_else() -> None:
        nonlocal rounds
        while True:
            await asyncio.sleep(0)
            rounds += 1

    other = asyncio.ensure_future(somebody_else())
    await asyncio.gather(*(agent() for _ in range(RUNS)))
    other.cancel()
    assert sum(steps.values()) == RUNS * STEPS, "and every run came to its end"
    return max(steps.values())


@pytest.mark.parametrize("kind", ["agent", "steps"])
async def test_a_round_holds_only_so_many_steps(kind: str) -> None:
    assert await busiest_round(kind) <= RUNS // 2


async def test_without_turns_a_round_holds_a_step_of_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: what the tests above would see."""
    monkeypatch.setattr(Rounds, "_is_over", lambda self: False)
    assert await busiest_round("agent") == RUNS


async def test_whoever_comes_while_there_is_time_does_not_wait() -> None:
    for _ in range(3):
        turn = Rounds().turn()
        with pytest.raises(StopIteration):
            turn.send(None)


async def test_a_turn_lasts_as_long_as_its_owner_waits_for_nothing() -> None:
    rounds = Rounds()
    turn = await rounds.turn()
    for _ in range(10):
        work()
    again = rounds.turn(turn)
    with pytest.raises(StopIteration):
        again.send(None)
    await asyncio.sleep(0)
    assert await rounds.turn(turn) > turn


async def test_turns_come_in_order_of_arrival() -> None:
    rounds, order = Rounds(), []

    async def run(number: int) -> None:
        for again in range(3):
            await rounds.turn()
            order.append((again, number))
            work()
            await asyncio.sleep(0)

    await asyncio.gather(*map(run, range(20)))
    assert order == sorted(order)


async def test_whoever_gives_up_waiting_keeps_nobody_else_from_a_turn() -> None:
    rounds = Rounds()
    had: list[int] = []

    async def run(number: int) -> None:
        await rounds.turn()
        had.append(number)
        work()

    tasks = [asyncio.ensure_future(run(number)) for number in range(30)]
    await asyncio.sleep(0)
    for task in tasks[5:25]:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            await task
    assert set(had) >= {*range(5), *range(25, 30)}
    assert len(had) < 30, "some of them were still waiting"


def test_every_event_loop_has_rounds_of_its_own_and_takes_them_along() -> None:
    one, other = asyncio.new_event_loop(), asyncio.new_event_loop()
    assert rounds_of(one) is rounds_of(one)
    assert rounds_of(one) is not rounds_of(other)
    one.close()
    gone = weakref.ref(rounds_of(one))
    del one
    gc.collect()
    assert gone() is None
    other.close()
