"""What loops are put together from: turns out of one budget, and measured parts of a run."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from chimera.core.context import Context
from chimera.core.effects import Ask, Counts, Outcome, Tally
from chimera.core.engine import Program
from chimera.core.loop import Loop, ReAct
from chimera.core.loop_config import LoopConfig
from chimera.errors import MisuseError
from chimera.types import AgentResult

__all__ = ["Turns", "Wrapper", "at_least", "measured"]


class Turns:
    """A budget of the model's turns, for several inner ReAct runs, one after the other."""

    def __init__(self, limit: int) -> None:
        self.limit = self.left = limit

    def work(self, context: Context, limit: int | None = None) -> Program:
        """Reason and act on `context` until the model calls nothing, or no turn is left of the budget or of `limit`."""
        allowed = self.left if limit is None else min(limit, self.left)
        text = ""
        for _ in range(allowed):
            self.left -= 1
            outcome = yield from ReAct(1).program(context)
            if outcome.success:
                return outcome
            text = outcome.output or text
        return Outcome(text, False, f"the run did not finish within {self.limit} steps", "max_turns")


def measured(program: Program) -> Generator[Ask, Any, tuple[Outcome, AgentResult]]:
    """Run `program` as a part, and return its outcome with the counts and the cost of this part alone."""
    before: Counts = yield Tally()
    outcome = yield from program
    after: Counts = yield Tally()
    steps, calls, cost = (late - early for late, early in zip(after, before, strict=True))
    return outcome, AgentResult(outcome.output, int(steps), int(calls), cost, outcome.success, outcome.error)


def at_least(minimum: int, **values: int) -> None:
    """Raise `MisuseError` for a value that is too small."""
    for name, value in values.items():
        if value < minimum:
            raise MisuseError(f"{name} must be at least {minimum}, not {value}")


class Wrapper(Loop):
    """A loop around another one. It has no configuration of its own: it is held to exactly what `inner` is held to."""

    def __init__(self, inner: Loop | None) -> None:
        if inner is None:
            inner = ReAct()
        if not isinstance(inner, Loop):
            raise MisuseError(f"inner must be a loop, not {type(inner).__name__}")
        self.inner = inner
        super().__init__(inner.max_steps, inner.config)

    @property
    def config(self) -> LoopConfig | None:
        return self.inner.config

    @config.setter
    def config(self, config: LoopConfig | None) -> None:
        self.inner.config = config
