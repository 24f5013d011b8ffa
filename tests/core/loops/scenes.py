"""Every loop with a script that leads it through all of its phases, and the ways to drive it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chimera.core.context import Context
from chimera.core.effects import Act, Acted, Complete, FinishStep, Outcome
from chimera.core.engine import Program
from chimera.core.loop import Loop, ReAct
from chimera.core.loop_config import LoopConfig
from chimera.core.loops.autonomous import AutonomousLoop
from chimera.core.loops.lint_feedback import LintFeedbackLoop
from chimera.core.loops.plan_act import PlanActLoop
from chimera.core.loops.plan_execute import PlanAndExecute
from chimera.core.loops.reflexion import Reflexion
from chimera.core.loops.retry import RetryLoop
from chimera.core.loops.tree_of_thought import TreeOfThought
from chimera.core.tool import BaseTool
from chimera.providers.faux import FauxProvider
from chimera.types import AgentResult, Message, StepResult, ToolResult

__all__ = [
    "DRIVES",
    "SCENES",
    "Decide",
    "OwnLoop",
    "Probe",
    "Ran",
    "Scene",
    "approve_all",
    "calls",
    "conversation",
    "steps_of",
]

Decide = Callable[[Any], None]


class Probe(BaseTool):
    """Keeps the arguments that its body was entered with, and leaves a file for each answer in the project.

    It says that it only looks, so that planning phases may use it too.
    """

    name = "probe"
    effect = "read"

    def __init__(self, name: str = "probe") -> None:
        self.name = name
        self.entered: list[dict[str, Any]] = []

    def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        self.entered.append(args)
        if env is not None and env.root not in (None, Path.cwd()):  # no litter where the tests are started
            (env.root / f"answer-{len(self.entered)}").touch()
        return ToolResult(f"the probe says {len(self.entered)}")


class OwnLoop(Loop):
    """A loop as somebody else would write it: it asks for what it needs and knows nothing of seams."""

    name = "own"

    def program(self, context: Context) -> Program:
        for _ in range(self.max_steps):
            answer = yield Complete(context)
            acted: Acted = yield Act(context, answer)
            yield FinishStep(acted, not acted.calls)
            if not acted.calls:
                return Outcome(answer.content.upper())
        return Outcome("", False, "too long", "max_turns")


@dataclass(frozen=True)
class Scene:
    """`script` makes a run in an empty project folder end as a success, without unused steps; `internal` of its model
    calls are no conversation."""

    make: Callable[[LoopConfig | None], Loop]
    script: Sequence[Any]
    output: str = "done"
    internal: int = 0

    def provider(self, **options: Any) -> FauxProvider:
        return FauxProvider(list(self.script), **options)


def calls(*arguments: dict[str, Any], name: str = "probe") -> Any:
    """Return a step of a script that calls the tool once for each of `arguments`."""
    return {"tool_calls": [{"name": name, "arguments": given} for given in arguments or ({},)]}


def good_when_done(result: AgentResult) -> float:
    return 1.0 if result.output == "done" else 0.5


SCENES: dict[str, Scene] = {
    "react": Scene(lambda config: ReAct(9, config), [calls(), "done"]),
    "plan-execute": Scene(
        lambda config: PlanAndExecute(20, config),
        [calls(), "1. first\n2. second", calls(), "STEP FAILED: no", "1. other", calls(), "done"],
    ),
    "reflexion": Scene(
        lambda config: Reflexion(20, config),
        [calls(), "tried", "VERDICT: FAIL: no", "I was too quick", calls(), "done", "VERDICT: PASS"],
    ),
    "tot": Scene(
        lambda config: TreeOfThought(9, config=config),
        [calls({"n": 1}), calls({"n": 2}), calls({"n": 2}), "2", "done", "done", "done"],
        internal=1,
    ),
    "plan-act": Scene(lambda config: PlanActLoop(config=config), [calls(), "the plan", calls(), "done"]),
    "autonomous": Scene(
        lambda config: AutonomousLoop(config=config),
        ["1. first\n2. second", calls(), "STEP FAILED: no", "1. other", calls(), "done"],
        internal=2,
    ),
    "retry": Scene(
        lambda config: RetryLoop(ReAct(9, config), scorer=good_when_done), [calls(), "bad", calls(), "done"]
    ),
    "lint-feedback": Scene(
        lambda config: LintFeedbackLoop(ReAct(9, config), "test", ["-e", "answer-2"]),
        [calls(), "too soon", calls(), "done"],
    ),
    "own": Scene(lambda config: OwnLoop(9, config), [calls(), "done"], output="DONE"),
}


@dataclass
class Ran:
    """What a run did: its result, and the steps where the way of driving shows them. `raised` is what came out."""

    result: AgentResult | None = None
    steps: list[StepResult] = field(default_factory=list)
    raised: str | None = None
    context: Context = field(default_factory=Context)


def conversation() -> Context:
    return Context("You are careful.", [Message.user("Do the task.")])


def approve_all(step: StepResult) -> None:
    if step.pending_approval is not None:
        step.pending_approval.approve()


def steps_of(gen: Generator[StepResult, None, AgentResult], decide: Decide, ran: Ran) -> None:
    while True:
        try:
            step = next(gen)
        except StopIteration as stop:
            ran.result = stop.value
            return
        decide(step)
        ran.steps.append(step)


def by_run(loop: Loop, provider: Any, tools: Any, env: Any = None, decide: Decide = approve_all) -> Ran:
    """`run`, which has nobody to ask but the callback."""
    ran = Ran(context=conversation())
    try:
        ran.result = loop.run(provider, tools, ran.context, env)
    except Exception as exc:
        ran.raised = f"{type(exc).__name__}: {exc}"
    return ran


def by_iter_steps(loop: Loop, provider: Any, tools: Any, env: Any = None, decide: Decide = approve_all) -> Ran:
    ran = Ran(context=conversation())
    try:
        steps_of(loop.iter_steps(provider, tools, ran.context, env), decide, ran)
    except Exception as exc:
        ran.raised = f"{type(exc).__name__}: {exc}"
    return ran


def by_async_iter_steps(loop: Loop, provider: Any, tools: Any, env: Any = None, decide: Decide = approve_all) -> Ran:
    async def main() -> Ran:
        ran = Ran(context=conversation())
        stream = loop.async_iter_steps(provider, tools, ran.context, env)
        try:
            async for step in stream:
                decide(step)
                ran.steps.append(step)
            ran.result = stream.result
        except Exception as exc:
            ran.raised = f"{type(exc).__name__}: {exc}"
        return ran

    return asyncio.run(main())


DRIVES: dict[str, Callable[..., Ran]] = {
    "run": by_run,
    "iter_steps": by_iter_steps,
    "async_iter_steps": by_async_iter_steps,
}
