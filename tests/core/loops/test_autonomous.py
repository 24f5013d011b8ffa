from __future__ import annotations

from typing import Any

import pytest

from chimera.core.context import Context
from chimera.core.loops.autonomous import AutonomousLoop
from chimera.errors import MisuseError
from chimera.providers.faux import FauxProvider
from chimera.types import AgentResult, Message, ToolResult
from tests.core.loops.scenes import DRIVES, Probe, calls

every_drive = pytest.mark.parametrize("drive", DRIVES.values(), ids=DRIVES)


def run(script: list[Any], **options: Any) -> tuple[AgentResult, FauxProvider, Context]:
    provider = FauxProvider(script, usd_per_token=0.5)
    context = Context("Be kind.", [Message.user("an old wish"), Message.assistant("granted"), Message.user("Mend it.")])
    return AutonomousLoop(**options).run(provider, [Probe()], context), provider, context


def planning(provider: FauxProvider) -> list[str]:
    return [request.messages[-1].content for request in provider.requests if request.tools is None]


def paid(text: str, tokens: int = 2) -> dict[str, Any]:
    return {"text": text, "usage": {"input_tokens": tokens, "output_tokens": 0}}


def test_a_goal_is_split_and_its_tasks_are_done_in_order() -> None:
    result, provider, context = run(["1. find\n2. mend", calls(), "found", "mended"])
    assert result == AgentResult("mended", 3, 1, 0.0, True)
    assert planning(provider) == ["The goal:\nMend it."]
    assert [message.role for message in provider.requests[0].messages] == ["system", "user"]
    tasks = [message.content for message in context.messages[3:] if message.role == "user"]
    assert [text.splitlines()[0] for text in tasks] == ["Sub-task 1 of 2: find", "Sub-task 2 of 2: mend"]
    assert not [message for message in context.messages if message.content.startswith("1. find")]


def test_a_goal_that_is_not_split_is_the_task() -> None:
    result, provider, context = run(["I cannot plan.", "mended"])
    assert (result.output, result.success, len(provider.requests)) == ("mended", True, 2)
    assert context.messages[3].content.startswith("Sub-task 1 of 1: Mend it.\n")


def test_a_failed_task_has_the_rest_planned_anew_with_what_is_known() -> None:
    result, provider, _ = run(
        ["1. find\n2. mend\n3. polish", "found it", "STEP FAILED: no glue", "1. buy glue\n2. mend", "bought", "mended"]
    )
    assert (result.output, result.success) == ("mended", True)
    replan = planning(provider)[1]
    for words in ("The goal:\nMend it.", "- find: found it", "This sub-task failed: mend\nno glue"):
        assert words in replan
    assert len(planning(provider)) == 2


def test_a_task_that_takes_too_long_has_failed() -> None:
    result, provider, _ = run(["1. find", calls(), calls(), "1. ask", "told"], max_steps_per_task=2)
    assert (result.output, result.success) == ("told", True)
    assert "it was not finished within 2 steps" in planning(provider)[1]


@pytest.mark.parametrize("replans", [0, 2])
def test_replanning_has_a_limit(replans: int) -> None:
    script = ["1. mend", "STEP FAILED: no glue"] * (replans + 1)
    result, provider, _ = run([*script, "1. never"], max_replans=replans)
    assert result.error == "the sub-task failed: mend: no glue"
    assert result.output == "STEP FAILED: no glue"
    assert len(provider.requests) == len(script)


def test_a_new_plan_that_cannot_be_read_ends_the_run() -> None:
    result, provider, _ = run(["1. mend", "STEP FAILED: no glue", "I give up."])
    assert (result.success, result.error) == (False, "the sub-task failed: mend: no glue")
    assert len(provider.requests) == 3


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_steps_are_bounded_over_all_tasks(steps: int) -> None:
    result, _, context = run(["1. a\n2. b\n3. c", "did a", calls(), "did b", "did c"], max_total_steps=steps)
    assert not result.success
    assert result.steps == steps
    assert result.error == f"the run did not finish within {steps} steps"
    assert context.messages[-1].role in ("assistant", "tool")


def test_cost_is_bounded_with_internal_calls_counted() -> None:
    script = [paid("1. a\n2. b\n3. c", 4), paid("did a"), paid("did b"), paid("did c")]
    result, provider, _ = run(script, max_cost=4.0)
    assert (result.output, result.cost, result.success) == ("did b", 4.0, False)
    assert result.error == "the run cost $4.0000, and $4.0000 is the limit"
    assert len(provider.requests) == 3


def test_a_plan_may_cost_too_much_by_itself() -> None:
    result, provider, context = run([paid("1. a", 100)], max_cost=4.0)
    assert (result.steps, result.success, len(provider.requests)) == (0, False, 1)
    assert result.cost == 50.0
    assert context.messages[-1] == Message.user("Mend it.")


def test_planning_anew_counts_against_the_limits() -> None:
    result, provider, _ = run([paid("1. a"), paid("STEP FAILED: x"), paid("1. b")], max_cost=2.0)
    assert not result.success
    assert "$2.0000 is the limit" in (result.error or "")
    assert len(provider.requests) == 2


@every_drive
def test_time_is_bounded_at_the_turns(drive: Any) -> None:
    class Slow(Probe):
        def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
            import time

            time.sleep(0.1)
            return super().execute(args, env)

    slow = Slow()
    ran = drive(AutonomousLoop(max_time_seconds=0.05), FauxProvider(["1. a", calls(), "did a"]), [slow])
    assert ran.result is not None
    assert ran.result.error == "the run did not finish within 0.05 seconds"
    assert len(slow.entered) == 1


def test_a_time_of_nothing_starts_nothing() -> None:
    result, provider, _ = run(["1. a", "did a"], max_time_seconds=0.0)
    assert (result.steps, result.success) == (0, False)
    assert len(provider.requests) == 1


@every_drive
def test_a_conversation_without_a_wish_is_a_mistake(drive: Any) -> None:
    with pytest.raises(MisuseError, match="message of the user"):
        AutonomousLoop().run(FauxProvider("x"), [], Context("s"))


def test_limits_are_those_that_were_given() -> None:
    loop = AutonomousLoop(5, 50, 2, 1.5, 60.0)
    assert (loop.max_steps_per_task, loop.max_total_steps, loop.max_replans) == (5, 50, 2)
    assert (loop.max_cost, loop.max_time_seconds, loop.config) == (1.5, 60.0, None)
    for options in ({"max_steps_per_task": 0}, {"max_total_steps": 0}, {"max_replans": -1}):
        with pytest.raises(MisuseError):
            AutonomousLoop(**options)  # type: ignore[arg-type]
