from __future__ import annotations

from typing import Any

import pytest

from chimera.core.context import Context
from chimera.core.loop import drain_steps
from chimera.core.loops.plan_execute import PlanAndExecute
from chimera.errors import MisuseError
from chimera.providers.faux import FauxProvider
from chimera.types import AgentResult, Message
from tests.core.loops.scenes import DRIVES, Probe, calls


def run(script: list[Any], **options: Any) -> tuple[AgentResult, FauxProvider, Context, Probe]:
    provider, context, probe = FauxProvider(script), Context(None, [Message.user("Paint the fence.")]), Probe()
    return PlanAndExecute(**options).run(provider, [probe], context), provider, context, probe


def said_by_loop(context: Context) -> list[str]:
    return [message.content for message in context.messages if message.role == "user"][1:]


def test_a_plan_is_made_before_it_is_executed_step_by_step() -> None:
    result, provider, context, probe = run(
        ["1. sand it\n2) paint it\n", calls(), "sanded", calls(), "painted, all done"]
    )
    assert result == AgentResult("painted, all done", 5, 2, 0.0, True)
    plan, first, second = said_by_loop(context)
    assert "numbered list" in plan
    assert first.startswith("Step 1 of 2: sand it\n")
    assert second.startswith("Step 2 of 2: paint it\n")
    assert "the last step" in second
    assert "the last step" not in first
    assert [request.messages[-1].content for request in provider.requests[:2]] == [plan, first]
    assert len(probe.entered) == 2


def test_the_planner_may_look_around_first() -> None:
    result, _, context, probe = run([calls({"look": 1}), "1. act", calls({"act": 1}), "done"])
    assert result.success
    assert probe.entered == [{"look": 1}, {"act": 1}]
    assert [message.role for message in context.messages[1:5]] == ["user", "assistant", "tool", "assistant"]


def test_a_planner_may_answer_the_task() -> None:
    result, provider, _, _ = run(["ANSWER: It is painted already."])
    assert (result.output, result.success, len(provider.requests)) == ("It is painted already.", True, 1)


@pytest.mark.parametrize("plan", ["First I paint it.", "", "The ANSWER: is paint"])
def test_a_plan_without_a_list_is_one_step(plan: str) -> None:
    result, provider, context, probe = run([plan, calls(), "painted"])
    assert (result.output, result.success, len(provider.requests)) == ("painted", True, 3)
    assert said_by_loop(context)[1].startswith("Step 1 of 1: carry out the plan\n")
    assert len(probe.entered) == 1


def test_a_failed_step_has_the_rest_planned_anew() -> None:
    script = [
        "1. sand\n2. paint\n3. admire",
        "sanded",
        "**STEP FAILED:** no paint",
        "- buy\n- paint",
        "bought",
        "painted",
    ]
    result, provider, context, _ = run(script)
    assert (result.output, result.success) == ("painted", True)
    replan, buy, paint = said_by_loop(context)[3:]
    assert "Step 2 (paint) failed: no paint" in replan
    assert buy.startswith("Step 1 of 2: buy\n")
    assert paint.startswith("Step 2 of 2: paint\n")
    assert not any("admire" in text for text in said_by_loop(context)[1:])
    assert len(provider.requests) == len(script)


def test_a_replan_may_answer_the_task() -> None:
    result, _, _, _ = run(["1. paint", "STEP FAILED: rain", "**ANSWER:** It cannot be painted today."])
    assert (result.output, result.success) == ("It cannot be painted today.", True)


@pytest.mark.parametrize("replans", [0, 2])
def test_replanning_has_a_limit(replans: int) -> None:
    script = ["1. paint", "STEP FAILED: rain"] * (replans + 1)
    result, provider, context, _ = run([*script, "1. never asked for"], max_replans=replans)
    assert not result.success
    assert result.output == "STEP FAILED: rain"
    assert result.error == "the plan failed. Step 1 (paint) failed: rain"
    assert len(provider.requests) == len(script)
    assert context.messages[-1].role == "assistant"


@pytest.mark.parametrize(
    ("script", "steps", "output"),
    [
        ([calls()] * 9, 3, ""),
        (["1. a\n2. b\n3. c", "did a", "did b", "did c"], 3, "did b"),
        (["1. a\n2. b", "did a", calls(), "did b"], 3, ""),
    ],
    ids=["while planning", "between steps", "within a step"],
)
def test_turns_are_bounded_over_all_phases(script: list[Any], steps: int, output: str) -> None:
    result, provider, _, _ = run(script, max_steps=steps)
    assert not result.success
    assert result.steps == len(provider.requests) == steps
    assert result.error == f"the run did not finish within {steps} steps"
    assert result.output in ("", output)


def test_every_turn_is_a_step_and_only_the_last_one_is_done() -> None:
    provider = FauxProvider(["1. a\n2. b", "did a", calls(), "did b"])
    ran = DRIVES["iter_steps"](PlanAndExecute(), provider, [Probe()])
    steps = ran.steps
    assert ran.result is not None
    assert ran.result.steps == 4
    assert [step.done for step in steps] == [False, False, False, True]
    assert [step.message.content for step in steps if step.message] == ["1. a\n2. b", "did a", "", "did b"]


def test_stopping_early_leaves_a_conversation_that_can_be_sent() -> None:
    context = Context(None, [Message.user("go")])
    gen = PlanAndExecute().iter_steps(FauxProvider(["1. a", calls(), "did a"]), [Probe()], context)
    next(gen)
    next(gen)
    gen.close()
    assert [message.role for message in context.messages][-2:] == ["assistant", "tool"]


def test_a_conversation_is_gone_on_with() -> None:
    provider, context, loop = FauxProvider(["1. a", "one", "1. b", "two"]), Context("s"), PlanAndExecute()
    for number in ("first", "second"):
        context.add(Message.user(number))
        result = drain_steps(loop.iter_steps(provider, [], context))
    assert result.output == "two"
    assert [message.content for message in provider.requests[-1].messages if message.role == "assistant"] == [
        "1. a",
        "one",
        "1. b",
    ]


def test_a_negative_limit_is_refused() -> None:
    with pytest.raises(MisuseError, match="max_replans"):
        PlanAndExecute(max_replans=-1)
