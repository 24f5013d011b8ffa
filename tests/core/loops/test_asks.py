"""The asks that programs are put together with: parts with fewer tools, consultations, counts, and the last step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from chimera.core.context import Context
from chimera.core.effects import Act, Complete, Consulting, Counts, FinishStep, Outcome, Tally, Within
from chimera.core.engine import Program
from chimera.core.loop import Loop, ReAct
from chimera.core.loop_config import LoopConfig
from chimera.core.steering import MessageQueue
from chimera.errors import ProviderError
from chimera.providers.faux import FauxProvider
from chimera.types import AgentResult, Message
from tests.core.loops.scenes import DRIVES, Probe, calls, conversation

every_drive = pytest.mark.parametrize("drive", DRIVES.values(), ids=DRIVES)


class Written(Loop):
    """A loop whose program is written in the test."""

    name = "written"

    def __init__(self, write: Callable[[Context], Program], config: LoopConfig | None = None) -> None:
        super().__init__(9, config)
        self.write = write

    def program(self, context: Context) -> Program:
        return self.write(context)


def offered(provider: FauxProvider) -> list[list[str]]:
    return [[schema["function"]["name"] for schema in request.tools or ()] for request in provider.requests]


@every_drive
def test_parts_may_be_nested_and_each_gives_the_tools_back(drive: Any) -> None:
    def write(context: Context) -> Program:
        def inner() -> Program:
            yield Complete(context)
            yield Within(ReAct(1).program(context), lambda tool: tool.name == "b")
            yield Complete(context)
            return Outcome("inner")

        outcome = yield Within(inner(), lambda tool: tool.name in "ab")
        assert outcome == Outcome("inner")
        yield Complete(context)
        return Outcome("outer")

    provider = FauxProvider("x")
    ran = drive(Written(write), provider, [Probe("a"), Probe("b"), Probe("c")])
    assert ran.result == AgentResult("outer", 1, 0, 0.0, True)
    assert offered(provider) == [["a", "b"], ["b"], ["a", "b"], ["a", "b", "c"]]


@every_drive
def test_a_part_that_fails_may_be_caught_and_gives_the_tools_back(drive: Any) -> None:
    def write(context: Context) -> Program:
        with suppress(ProviderError):
            yield Within(ReAct(1).program(context), lambda tool: False)
        return (yield from ReAct(1).program(context))

    provider = FauxProvider([{"error": "down"}, "up"])
    ran = drive(Written(write), provider, [Probe()])
    assert ran.result == AgentResult("up", 1, 0, 0.0, True)
    assert offered(provider) == [[], ["probe"]]


@every_drive
def test_what_is_consulted_knows_the_environment(drive: Any, tmp_path: Any) -> None:
    async def later(env: Any) -> str:
        await asyncio.sleep(0)
        return f"{env.root.name} later"

    def write(_context: Context) -> Program:
        first = yield Consulting(lambda env: env.root.name)
        second = yield Consulting(later)
        return Outcome(f"{first}, {second}")

    ran = drive(Written(write), FauxProvider(), [], tmp_path)
    assert ran.result == AgentResult(f"{tmp_path.name}, {tmp_path.name} later", 0, 0, 0.0, True)


@every_drive
def test_what_a_consultation_raises_comes_out_where_it_was_asked(drive: Any) -> None:
    def raising(_env: Any) -> None:
        raise LookupError("nothing there")

    def write(_context: Context) -> Program:
        try:
            yield Consulting(raising)
        except LookupError as exc:
            return Outcome(str(exc))
        return Outcome("")

    assert drive(Written(write), FauxProvider(), []).result == AgentResult("nothing there", 0, 0, 0.0, True)


@every_drive
def test_counts_hold_what_was_finished_and_paid(drive: Any) -> None:
    counts: list[Counts] = []

    def write(context: Context) -> Program:
        counts.append((yield Tally()))
        answer = yield Complete(context)
        counts.append((yield Tally()))
        acted = yield Act(context, answer)
        yield FinishStep(acted, done=True)
        counts.append((yield Tally()))
        return Outcome("x")

    script: Any = [{**calls({}, {}), "usage": {"input_tokens": 2, "output_tokens": 1}}]
    ran = drive(Written(write), FauxProvider(script, usd_per_token=1.0), [Probe()])
    assert counts == [Counts(0, 0, 0.0), Counts(0, 0, 3.0), Counts(1, 2, 3.0)]
    assert [(step.done, step.cost) for step in ran.steps] in ([], [(True, 3.0)])


@pytest.mark.parametrize("drive", [DRIVES["iter_steps"], DRIVES["async_iter_steps"]])
def test_a_step_is_the_last_one_only_when_the_run_ends_with_it(drive: Any) -> None:
    """A program that goes on, or a message that waits, makes a step one among others."""
    queue = MessageQueue()
    queue.follow_up("and now?")
    provider = FauxProvider(["one", "two"])
    ran = drive(ReAct(config=LoopConfig(message_queue=queue, yolo_mode=True)), provider, [])
    assert [(step.step, step.done) for step in ran.steps] == [(1, False), (2, True)]
    assert ran.context.messages[2] == Message.user("and now?")


@pytest.mark.parametrize("after", ["raise", "complete"])
def test_a_step_is_reported_even_when_the_run_fails_after_it(after: str) -> None:
    def write(context: Context) -> Program:
        answer = yield Complete(context)
        yield FinishStep((yield Act(context, answer)), done=True)
        if after == "raise":
            raise RuntimeError("broken")
        yield Complete(context)
        return Outcome("never")

    ran = DRIVES["iter_steps"](Written(write), FauxProvider(["one", {"error": "down"}]), [])
    assert ran.raised in ("RuntimeError: broken", "ProviderError: down")
    assert [(step.step, step.done) for step in ran.steps] == [(1, False)]


def test_a_run_that_is_left_before_its_last_step_is_told_leaves_nothing_open() -> None:
    context = conversation()
    gen = ReAct().iter_steps(FauxProvider([calls(), "done"]), [Probe()], context)
    assert next(gen).step == 1
    gen.close()
    assert [message.role for message in context.messages] == ["user", "assistant", "tool"]
