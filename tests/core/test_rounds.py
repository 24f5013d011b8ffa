"""Many runs on one event loop: whoever else lives on it has a turn every few milliseconds."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import warnings
import weakref
from collections import Counter
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import pytest

from chimera.core.agent_loop import AgentLoop
from chimera.core.cancellation import CancellationToken
from chimera.core.context import Context
from chimera.core.decisions import Interceptors
from chimera.core.loop import ReAct, async_drain_steps
from chimera.core.rounds import Rounds, rounds_of
from chimera.providers.base import Provider, Response
from chimera.types import Message, ToolCall, ToolResult
from tests.core.driving import Note, assert_acceptable, held

RUNS, STEPS = 40, 6


def work(seconds: float = 0.001) -> None:
    """Keep the thread busy."""
    end = perf_counter() + seconds
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


def light() -> None:
    """Nothing to speak of."""


class Quick(Note):
    """A tool that waits for nothing."""

    async def async_execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        return ToolResult("noted")


async def busiest_round(
    kind: str, step: Callable[[], None] = work, busy: Callable[[], None] = light
) -> tuple[int, int]:
    """Run many agents that do `step` in each step, beside somebody who is `busy` in each round.

    Returns how many steps one round has held at most, and how many rounds it took.
    """
    steps: Counter[int] = Counter()
    rounds = 0

    def policy(_messages: list[Message]) -> None:
        step()
        steps[rounds] += 1

    async def agent() -> None:
        chains = Interceptors(context=[policy])
        if kind == "agent":
            events = AgentLoop().run([], tools=[Quick()], provider=Prompt(), system_prompt=None, interceptors=chains)
            async for _ in events:
                pass
        else:
            loop = ReAct(config=held(chains))
            context = Context(None, [Message.user("go")])
            await async_drain_steps(loop.async_iter_steps(Prompt(), [Quick()], context))

    async def somebody_else() -> None:
        nonlocal rounds
        while True:
            await asyncio.sleep(0)
            busy()
            rounds += 1

    other = asyncio.ensure_future(somebody_else())
    await asyncio.gather(*(agent() for _ in range(RUNS)))
    other.cancel()
    assert sum(steps.values()) == RUNS * STEPS, "and every run came to its end"
    return max(steps.values()), rounds


@pytest.mark.parametrize("kind", ["agent", "steps"])
async def test_a_round_holds_only_so_many_steps(kind: str) -> None:
    assert (await busiest_round(kind))[0] <= RUNS // 2


async def test_without_turns_a_round_holds_a_step_of_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: what the tests above would see."""
    monkeypatch.setattr(Rounds, "is_over", lambda self: False)
    assert (await busiest_round("agent"))[0] == RUNS


async def test_what_others_do_takes_little_away_from_the_runs() -> None:
    _, quiet = await busiest_round("agent", light)
    _, beside = await busiest_round("agent", light, busy=work)
    assert beside <= 2 * quiet + 20


async def test_whoever_comes_while_there_is_time_does_not_wait() -> None:
    rounds = Rounds(asyncio.get_running_loop())
    assert [rounds.is_over() for _ in range(100)] == [False] * 100


async def test_turns_come_in_order_of_arrival() -> None:
    rounds, order = Rounds(asyncio.get_running_loop()), []

    async def run(number: int) -> None:
        for again in range(3):
            await turn(rounds)
            order.append((again, number))
            rounds.spent += 0.001
            await asyncio.sleep(0)

    await asyncio.gather(*map(run, range(20)))
    assert order == sorted(order)


async def test_whoever_gives_up_waiting_keeps_nobody_else_from_a_turn() -> None:
    rounds = Rounds(asyncio.get_running_loop())
    had: list[int] = []

    async def run(number: int) -> None:
        await turn(rounds)
        had.append(number)
        rounds.spent += 0.001

    tasks = [asyncio.ensure_future(run(number)) for number in range(30)]
    await asyncio.sleep(0)
    for task in tasks[5:25]:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            await task
    assert set(had) >= {*range(5), *range(25, 30)}
    assert len(had) < 30, "some of them were still waiting"


async def most_in_a_round(costs: list[float], busy: Callable[[], None] = light) -> int:
    """Let runs wait, each of which costs so many seconds when it goes on; return how many a round has let go on."""
    rounds, went_on = Rounds(asyncio.get_running_loop()), Counter[int]()

    async def run(cost: float) -> None:
        await turn(rounds)
        went_on[rounds.number] += cost > 0
        rounds.spent += cost

    async def somebody_else() -> None:
        while True:
            await asyncio.sleep(0)
            busy()

    other = asyncio.ensure_future(somebody_else())
    await asyncio.gather(*map(run, costs))
    other.cancel()
    return max(went_on.values())


async def test_whoever_is_woken_too_late_waits_again() -> None:
    """The first one has all others wait; light steps have many woken for a round, and then each step fills one."""
    assert await most_in_a_round([0.01, *[0.0] * 300, *[0.01] * 20]) == 1


async def test_beside_somebody_who_works_long_a_round_holds_more() -> None:
    assert await most_in_a_round([0.001] * 40, partial(work, 0.02)) >= 3


async def turn(rounds: Rounds) -> None:
    if rounds.is_over():
        await rounds.wait()


def crowd(count: int, **options: Any) -> list[tuple[Context, Any]]:
    """Return that many conversations with the events of an agent for each, all of which want to start at once."""
    chains = Interceptors(context=[lambda _messages: work()])
    made = []
    for _ in range(count):
        context = Context()
        events = AgentLoop().run(
            [Message.user("go")],
            tools=[Quick()],
            provider=Prompt(),
            system_prompt=None,
            interceptors=chains,
            context=context,
            **options,
        )
        made.append((context, events))
    return made


async def drained(events: Any) -> None:
    async for _ in events:
        pass


@pytest.mark.parametrize("way", ["task", "timeout", "token"])
async def test_a_run_that_ends_while_it_waits_has_lost_nothing(way: str) -> None:
    token = CancellationToken()
    made = crowd(RUNS, abort_signal=token)

    async def run(events: Any) -> None:
        async with asyncio.timeout(0.01 if way == "timeout" else None):
            await drained(events)

    tasks = [asyncio.ensure_future(run(events)) for _, events in made]
    await asyncio.sleep(0.005)
    if way == "token":
        token.cancel()
    elif way == "task":
        for task in tasks:
            task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    kinds = {"task": asyncio.CancelledError, "timeout": TimeoutError, "token": type(None)}
    assert {type(end) for end in ended} <= {kinds[way]}
    for context, _ in made:
        assert context.messages[0] == Message.user("go")
        assert_acceptable(context.messages)


async def test_results_that_are_in_are_kept_whatever_waits() -> None:
    ready = asyncio.Event()

    class Late(Quick):
        def __init__(self) -> None:
            super().__init__()
            self.started = asyncio.Event()

        async def async_execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
            self.started.set()
            await ready.wait()
            return await super().async_execute(args, env)

    tools = [Late() for _ in range(RUNS)]

    contexts = [Context(None, [Message.user("go")]) for _ in range(RUNS)]
    chains = Interceptors(tool_result=[lambda _call, _result: work()])

    async def run(context: Context, tool: Late) -> None:
        events = AgentLoop().run(
            [], tools=[tool], provider=Prompt(), system_prompt=None, interceptors=chains, context=context
        )
        await drained(events)

    tasks = [asyncio.ensure_future(run(*each)) for each in zip(contexts, tools, strict=True)]
    async with asyncio.timeout(30):
        await asyncio.gather(*(tool.started.wait() for tool in tools))
    ready.set()
    for _ in range(4):
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert {context.messages[2].content for context in contexts} == {"noted"}


@pytest.mark.parametrize("calls", [[], [ToolCall("c", "note", {})]], ids=["text", "calls"])
@pytest.mark.parametrize("way", ["task", "token"])
async def test_answers_that_are_in_are_kept_whatever_waits(way: str, calls: list[ToolCall]) -> None:
    ready, token = asyncio.Event(), CancellationToken()

    class Paid(Prompt):
        async def async_complete(self, messages: Any, tools: Any = None, *_: Any, **kwargs: Any) -> Response:
            await ready.wait()
            return Response("paid", calls)

    contexts = [Context(None, [Message.user("go")]) for _ in range(RUNS)]
    chains = Interceptors(tool_call=[lambda _call: work()])

    async def run(context: Context) -> None:
        options: dict[str, Any] = {"interceptors": chains, "context": context, "abort_signal": token}
        await drained(AgentLoop().run([], tools=[Quick()], provider=Paid(), system_prompt=None, **options))

    tasks = [asyncio.ensure_future(run(context)) for context in contexts]
    await asyncio.sleep(0.1)
    ready.set()
    for _ in range(4):
        await asyncio.sleep(0)
    if way == "token":
        token.cancel()
    else:
        for task in tasks:
            task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert {context.messages[1].content for context in contexts} == {"paid"}
    for context in contexts:
        assert_acceptable(context.messages)


async def test_beside_somebody_who_works_long_runs_get_a_share_of_the_time() -> None:
    _, rounds = await busiest_round("agent", light, busy=partial(work, 0.02))
    assert rounds <= RUNS * STEPS // 4


def test_every_event_loop_has_rounds_of_its_own() -> None:
    one, other = asyncio.new_event_loop(), asyncio.new_event_loop()
    rounds = rounds_of(one)
    assert rounds_of(one) is rounds
    assert rounds_of(other) is not rounds
    one.close()
    other.close()


def test_a_loop_that_is_closed_with_runs_still_waiting_is_let_go() -> None:
    loop = asyncio.new_event_loop()
    waiting: list[Any] = []

    async def start() -> None:
        for _, events in crowd(RUNS):
            waiting.append(asyncio.ensure_future(drained(events)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert rounds_of(asyncio.get_running_loop())._waiting

    loop.run_until_complete(start())
    loop.close()
    gone = weakref.ref(loop)
    for task in waiting:
        task._log_destroy_pending = False
    waiting.clear()
    del loop, task
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            gc.collect()
    assert gone() is None
