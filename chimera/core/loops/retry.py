"""Attempt, score, attempt again, and return the best."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from functools import partial
from numbers import Real
from typing import Any

from chimera.core.context import Context
from chimera.core.effects import Ask, Consulting, Outcome
from chimera.core.engine import Program
from chimera.core.loop import Loop
from chimera.core.loops._parts import Wrapper, at_least, measured
from chimera.errors import MisuseError
from chimera.types import AgentResult, Message

__all__ = ["RetryLoop", "Scorer"]

Scorer = Callable[[AgentResult], float]

_AGAIN = (
    "This attempt scored {score:g}, and {threshold:g} is needed. {error}Find out what is wrong with it, and attempt "
    "the task again."
)


class RetryLoop(Wrapper):
    """Run `inner` until an attempt scores at least `success_threshold`, at most 1 + `max_retries` times.

    `scorer` is given the `AgentResult` of an attempt and returns a number; it may block or be a coroutine function, and
    what it raises comes out. Without one, an attempt scores 1 when it succeeded and 0 when not. All attempts go on with
    one conversation, in which the model is told what the attempt before scored. The result is that of the best attempt,
    the earliest one of those that scored alike; it is a success when it reached the threshold. A run is held to what
    `inner` (a ReAct without a configuration, unless given) is held to.
    """

    name = "retry"

    def __init__(
        self,
        inner: Loop | None = None,
        max_retries: int = 3,
        scorer: Scorer | None = None,
        success_threshold: float = 1.0,
    ) -> None:
        super().__init__(inner)
        at_least(0, max_retries=max_retries)
        self.max_retries, self.scorer, self.success_threshold = max_retries, scorer, success_threshold

    def program(self, context: Context) -> Program:
        best, best_score = Outcome(""), -math.inf
        for left in reversed(range(self.max_retries + 1)):
            outcome, result = yield from measured(self.inner.program(context))
            score = yield from self._score(result)
            if score >= self.success_threshold:
                return Outcome(outcome.output)
            if score > best_score:
                best, best_score = outcome, score
            if left:
                error = f"It failed: {result.error}. " if result.error else ""
                text = _AGAIN.format(score=score, threshold=self.success_threshold, error=error)
                context.add(Message.user(text))
        error = f"no attempt scored {self.success_threshold:g}; the best one scored {best_score:g}"
        return Outcome(best.output, False, f"{error}: {best.error}" if best.error else error, "score_too_low")

    def _score(self, result: AgentResult) -> Generator[Ask, Any, float]:
        if self.scorer is None:
            return 1.0 if result.success else 0.0
        score = yield Consulting(partial(_call, self.scorer, result))
        if not isinstance(score, Real) or math.isnan(score):
            raise MisuseError(f"a scorer returns a number, not {score!r}")
        return float(score)


def _call(scorer: Scorer, result: AgentResult, _env: Any) -> Any:
    return scorer(result)
