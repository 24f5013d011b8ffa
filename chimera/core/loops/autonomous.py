"""Work towards a goal over many sub-tasks, within limits of steps, cost and time."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from time import monotonic
from typing import Any, NamedTuple

from chimera.core.context import Context
from chimera.core.effects import Ask, CompleteInternally, Counts, Outcome, Tally
from chimera.core.engine import Program
from chimera.core.loop import Loop, ReAct
from chimera.core.loop_config import LoopConfig
from chimera.core.loops._parts import at_least
from chimera.core.loops._plans import STEP_REPORT, failure_of, plan_steps
from chimera.core.normalize import Answer
from chimera.errors import MisuseError
from chimera.types import Message

__all__ = ["AutonomousLoop"]

_PLANNER = (
    "You plan the work of an agent that has tools for a software project. Answer with a numbered list of sub-tasks, "
    "one a line, in the order in which to do them, each of them complete in itself. Nothing else."
)
_GOAL = "The goal:\n{goal}"
_STATE = (
    "The goal:\n{goal}\n\nDone so far:\n{done}\n\nThis sub-task failed: {task}\n{failure}\n\n"
    "List the sub-tasks that lead to the goal from here."
)
_TASK = "Sub-task {number} of {total}: {task}\nDo it now. " + STEP_REPORT
_SHOWN = 500


class _Report(NamedTuple):
    task: str
    text: str


class AutonomousLoop(Loop):
    """Split the goal, which is the newest message of the user, into sub-tasks and carry out each on an inner ReAct.

    A sub-task that reports failure, or takes more than `max_steps_per_task` turns, has the rest planned anew, at most
    `max_replans` times. Before each turn the limits are looked at: `max_total_steps` turns, `max_cost` US dollars,
    `max_time_seconds`; a limit of None is none. A turn that was begun is finished. When no plan can be read at first,
    the goal is the only sub-task. Raises `MisuseError` for a conversation without a message of the user.
    """

    name = "autonomous"

    def __init__(
        self,
        max_steps_per_task: int = 20,
        max_total_steps: int = 200,
        max_replans: int = 3,
        max_cost: float | None = None,
        max_time_seconds: float | None = None,
        config: LoopConfig | None = None,
    ) -> None:
        at_least(1, max_steps_per_task=max_steps_per_task, max_total_steps=max_total_steps)
        at_least(0, max_replans=max_replans)
        super().__init__(max_total_steps, config)
        self.max_steps_per_task, self.max_replans = max_steps_per_task, max_replans
        self.max_cost, self.max_time_seconds = max_cost, max_time_seconds

    @property
    def max_total_steps(self) -> int:
        return self.max_steps

    def program(self, context: Context) -> Program:
        goal = _goal(context)
        limits = _Limits(self, (yield Tally()))
        tasks = (yield from _plan(_GOAL.format(goal=goal))) or [goal]
        done: list[_Report] = []
        replans = 0
        while True:
            outcome, failed = yield from self._carry_out(context, tasks, done, limits)
            if failed is None:
                return outcome
            stop = yield from limits.reached(outcome.output)
            if stop is not None:
                return stop
            if replans == self.max_replans:
                return _lost(outcome, failed)
            replans += 1
            listed = "\n".join(f"- {task}: {text[:_SHOWN]}" for task, text in done) or "- nothing"
            state = _STATE.format(goal=goal, done=listed, task=failed.task, failure=failed.text[:_SHOWN])
            tasks = yield from _plan(state)
            if not tasks:
                return _lost(outcome, failed)

    def _carry_out(
        self, context: Context, tasks: Sequence[str], done: list[_Report], limits: _Limits
    ) -> Generator[Ask, Any, tuple[Outcome, _Report | None]]:
        """Do the tasks in order. Returns how the last one ended, and the report of the one that failed, if one did."""
        outcome = Outcome("")
        for number, task in enumerate(tasks, 1):
            stop = yield from limits.reached(outcome.output)
            if stop is not None:
                return stop, None
            context.add(Message.user(_TASK.format(number=number, total=len(tasks), task=task)))
            outcome, stopped = yield from self._work(context, limits)
            if stopped:
                return outcome, None
            failure = failure_of(outcome.output) if outcome.success else outcome.error
            if failure is not None:
                return outcome, _Report(task, failure)
            done.append(_Report(task, outcome.output))
        return outcome, None

    def _work(self, context: Context, limits: _Limits) -> Generator[Ask, Any, tuple[Outcome, bool]]:
        """Do one task, turn by turn. Returns how it ended, and whether a limit of the whole run ended it."""
        text = ""
        for _ in range(self.max_steps_per_task):
            stop = yield from limits.reached(text)
            if stop is not None:
                return stop, True
            outcome = yield from ReAct(1, self.config).program(context)
            if outcome.success:
                return outcome, False
            text = outcome.output or text
        return Outcome(text, False, f"it was not finished within {self.max_steps_per_task} steps", "max_turns"), False


class _Limits:
    def __init__(self, loop: AutonomousLoop, before: Counts) -> None:
        self.loop, self.before, self.began = loop, before, monotonic()

    def reached(self, text: str) -> Generator[Ask, Any, Outcome | None]:
        """Return how a run that has come as far as `text` ends now, or None when it may go on."""
        loop = self.loop
        spent: Counts = yield Tally()
        cost = spent.cost - self.before.cost
        if spent.steps - self.before.steps >= loop.max_total_steps:
            return _over(text, "max_turns", f"the run did not finish within {loop.max_total_steps} steps")
        if loop.max_cost is not None and cost >= loop.max_cost:
            return _over(text, "max_cost", f"the run cost ${cost:.4f}, and ${loop.max_cost:.4f} is the limit")
        if loop.max_time_seconds is not None and monotonic() - self.began >= loop.max_time_seconds:
            return _over(text, "max_time", f"the run did not finish within {loop.max_time_seconds:g} seconds")
        return None


def _plan(request: str) -> Generator[Ask, Any, list[str]]:
    prompt = [Message.system(_PLANNER), Message.user(request)]
    # Not intercepted: this prompt is no conversation, and interceptors that look for one (a new message of the user
    # that re-arms a gate, say) would misread it. It holds the goal as the user wrote it.
    answer: Answer = yield CompleteInternally(prompt)
    return plan_steps(answer.content)


def _goal(context: Context) -> str:
    for message in reversed(context.messages):
        if message.role == "user":
            return message.content
    raise MisuseError("an autonomous run needs a message of the user that says what the goal is")


def _over(text: str, reason: str, error: str) -> Outcome:
    return Outcome(text, False, error, reason)


def _lost(outcome: Outcome, failed: _Report) -> Outcome:
    return Outcome(outcome.output, False, f"the sub-task failed: {failed.task}: {failed.text}", "plan_failed")
