"""What one step costs: a model's answer with one tool call, the call, and its result, in every loop.

The floor is a plain Python loop that does the same with plain functions. Strategy loops make calls of their own (plans,
verdicts, candidates): their cost is given for each call to the model.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from benchmarks._kit import POLICY, Echo, Row, Scripted, config, conversation, floor, in_turns, report, seconds
from chimera.core import AgentLoop, Interceptors, ReAct
from chimera.core.loop import Loop, async_drain_steps
from chimera.core.loops.autonomous import AutonomousLoop
from chimera.core.loops.lint_feedback import LintFeedbackLoop
from chimera.core.loops.plan_act import PlanActLoop
from chimera.core.loops.plan_execute import PlanAndExecute
from chimera.core.loops.reflexion import Reflexion
from chimera.core.loops.retry import RetryLoop
from chimera.core.loops.tree_of_thought import TreeOfThought

SIZES = (10, 50, 200, 1000)
_MANY = 10_000
Measure = Callable[[], float]


def sync_run(make: Callable[[Interceptors | None], Loop], steps: int, policy: Interceptors | None) -> Measure:
    """Measure a whole run in this thread: seconds for each call to the model."""

    def measured() -> float:
        provider, loop, context, tools = Scripted(steps), make(policy), conversation(), [Echo()]
        spent = seconds(lambda: loop.run(provider, tools, context))
        return spent / (provider.calls - 1)

    return measured


def async_run(steps: int, policy: Interceptors | None) -> Measure:
    def measured() -> float:
        provider, loop, context, tools = Scripted(steps), react(policy), conversation(), [Echo()]

        async def work() -> None:
            await async_drain_steps(loop.async_iter_steps(provider, tools, context))

        return _on_a_loop(work) / steps

    return measured


def agent_run(steps: int, policy: Interceptors | None) -> Measure:
    def measured() -> float:
        provider, context, tools = Scripted(steps), conversation(), [Echo()]

        def events() -> AsyncIterator[Any]:
            return AgentLoop().run(
                context.messages,
                tools=tools,
                provider=provider,
                system_prompt=context.system,
                max_turns=_MANY,
                interceptors=policy,
            )

        async def work() -> None:
            async for _ in events():
                pass

        return _on_a_loop(work) / steps

    return measured


def _on_a_loop(work: Callable[[], Any]) -> float:
    with asyncio.Runner() as runner:
        runner.get_loop()
        return seconds(lambda: runner.run(work()))


def react(policy: Interceptors | None) -> Loop:
    return ReAct(_MANY, config(policy))


STRATEGIES: dict[str, Callable[[Interceptors | None], Loop]] = {
    "PlanAndExecute": lambda policy: PlanAndExecute(_MANY, config(policy)),
    "Reflexion": lambda policy: Reflexion(_MANY, config(policy)),
    "TreeOfThought": lambda policy: TreeOfThought(_MANY, 3, config(policy)),
    "PlanActLoop": lambda policy: PlanActLoop(_MANY, _MANY, config=config(policy)),
    "AutonomousLoop": lambda policy: AutonomousLoop(_MANY, _MANY, config=config(policy)),
    "RetryLoop": lambda policy: RetryLoop(react(policy)),
    "LintFeedbackLoop": lambda policy: LintFeedbackLoop(react(policy), linter="true", max_lint_rounds=0),
}


def sizes() -> Iterator[Row]:
    for steps in SIZES:
        rounds = 2000 // steps + 7
        for name, run in (("ReAct, sync", _sync_react), ("ReAct, async", async_run), ("AgentLoop", agent_run)):
            off, on, bare, ground = in_turns(
                run(steps, None),
                run(steps, POLICY),
                floor(steps, policy=False),
                floor(steps, policy=True),
                rounds=rounds,
            )
            yield from _size_rows(name, steps, off, on, bare, ground)


def _sync_react(steps: int, policy: Interceptors | None) -> Measure:
    return sync_run(react, steps, policy)


def _size_rows(name: str, steps: int, off: float, on: float, bare: float, ground: float) -> Iterator[Row]:
    most = {"ReAct, sync": 8, "AgentLoop": 20}.get(name) if steps == 200 else None
    dearer = {"ReAct, sync": 2, "AgentLoop": 1.4}.get(name) if steps == 200 else None
    what = f"{name}, N = {steps}"
    yield Row(f"{what}, no policy", f"{off * 1e6:.1f} µs, {off / bare:.1f} × the floor of {bare * 1e6:.2f} µs")
    yield Row(
        f"{what}, policy",
        f"{on * 1e6:.1f} µs, {on / ground:.1f} × the floor of {ground * 1e6:.2f} µs",
        f"{most} ×" if most else "",
        on / ground <= most if most else None,
    )
    if dearer:
        yield Row(f"{what}, policy on over off", f"{on / off:.2f}", f"{dearer}", on / off <= dearer)


def strategies() -> Iterator[Row]:
    for name, make in STRATEGIES.items():
        on, ground = in_turns(sync_run(make, 200, POLICY), floor(200, policy=True), rounds=15)
        found = f"{on * 1e6:.1f} µs, {on / ground:.1f} × the floor"
        yield Row(f"{name}, N = 200, policy, a call", found, "20 ×", on <= 20 * ground)


def main() -> None:
    report("Step cost", [*sizes(), *strategies()])


if __name__ == "__main__":
    main()
