"""Plan, then execute the plan step by step, and plan anew when a step fails."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from chimera.core.context import Context
from chimera.core.effects import Ask, Outcome
from chimera.core.engine import Program
from chimera.core.loop import Loop
from chimera.core.loop_config import LoopConfig
from chimera.core.loops._parts import Turns, at_least
from chimera.core.loops._plans import STEP_REPORT, answer_in, failure_of, plan_steps
from chimera.types import Message

__all__ = ["PlanAndExecute"]

_FORM = (
    "Answer with the plan alone: a numbered list, one step a line, in the order in which to do them. If nothing is "
    "left to do, begin with ANSWER: and answer the task itself."
)
_PLAN = f"Plan this task before you change anything; look around with your tools where you need to. {_FORM}"
_REPLAN = "The plan does not work. {failure}\nPlan what is left of the task anew. " + _FORM
_STEP = "Step {number} of {total}: {step}\nDo this step now, and only this one. " + STEP_REPORT
_WHOLE = "carry out the plan"
_LAST = " This is the last step: end with the answer to the whole task."


class PlanAndExecute(Loop):
    """Plan first, execute the steps one by one, replan when a step fails.

    The model writes a plan as a numbered list and carries out each step as a ReAct run of its own, all in one
    conversation. A step fails when its report says so; then the rest is planned anew, at most `max_replans` times. A
    plan that is no list is one step. A planner that begins with `ANSWER:` has answered the task. `max_steps` bounds the
    model's turns, planning included.

    Source: Wang et al., "Plan-and-Solve Prompting", 2023, with an executor and a replanner for each step.
    """

    name = "plan-execute"

    def __init__(self, max_steps: int = 50, config: LoopConfig | None = None, *, max_replans: int = 3) -> None:
        super().__init__(max_steps, config)
        at_least(0, max_replans=max_replans)
        self.max_replans = max_replans

    def program(self, context: Context) -> Program:
        turns = Turns(self.max_steps)
        request, text, failure = _PLAN, "", ""
        for _ in range(self.max_replans + 1):
            context.add(Message.user(request))
            planned = yield from turns.work(context)
            if not planned.success:
                return planned._replace(output=planned.output or text)
            answer = answer_in(planned.output)
            if answer is not None:
                return Outcome(answer)
            outcome, failure = yield from _execute(context, turns, plan_steps(planned.output) or [_WHOLE])
            if not failure:
                return outcome
            request, text = _REPLAN.format(failure=failure), outcome.output
        return Outcome(text, False, f"the plan failed. {failure}", "plan_failed")


def _execute(context: Context, turns: Turns, steps: list[str]) -> Generator[Ask, Any, tuple[Outcome, str]]:
    """Return how the last step that was begun ended, and what is to be said of the one that failed, if one did."""
    outcome = Outcome("")
    for number, step in enumerate(steps, 1):
        text = _STEP.format(number=number, total=len(steps), step=step)
        context.add(Message.user(text + _LAST if number == len(steps) else text))
        outcome = yield from turns.work(context)
        if not outcome.success:
            break
        failure = failure_of(outcome.output)
        if failure is not None:
            return outcome, f"Step {number} ({step}) failed: {failure}"
    return outcome, ""
