"""Try, evaluate, reflect on the failure in words, and try again with the reflection at hand."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from chimera.core.context import Context
from chimera.core.effects import Ask, Consulting, Outcome
from chimera.core.engine import Program
from chimera.core.loop import Loop
from chimera.core.loop_config import LoopConfig
from chimera.core.loops._parts import Turns, at_least, measured
from chimera.errors import MisuseError
from chimera.types import AgentResult, Message

__all__ = ["Evaluator", "Reflexion"]

Evaluator = Callable[[AgentResult], "str | None"]

_MEMORY = 3  # the paper keeps one to three reflections, for the sake of the context window
_JUDGE = (
    "Now judge the work on this task as a strict reviewer would; check it with your tools where you can, but change "
    "nothing. Answer with VERDICT: PASS, or with VERDICT: FAIL and what is wrong."
)
_REFLECT = (
    "This attempt at the task failed: {failure}\nIn a few sentences, say which of your decisions led there and what "
    "you will do differently next time. Do not go on with the task yet."
)
_AGAIN = (
    "You have attempted this task before, and it was not good enough. Your notes:\n{notes}\nThe project is as the last "
    "attempt left it. Attempt the task again, and heed the notes."
)
_VERDICT = re.compile(r"(?:\A|VERDICT)\W*(PASS|FAIL)\b", re.IGNORECASE)


class Reflexion(Loop):
    """Act, evaluate, and on failure reflect: the reflections are carried into the next trial, which starts afresh.

    A trial sees the conversation as it was at the start, the last three reflections, and its own turns; the durable
    conversation keeps all trials. `evaluator` is given the `AgentResult` of a trial and returns None when it is good,
    else why not; it may block or be a coroutine function. Without one the model is asked for a verdict, and a verdict
    that cannot be read lets the trial stand. `max_steps` bounds the model's turns over all trials, evaluations and
    reflections; a trial that takes more than `trial_steps` turns has failed.

    Source: Shinn et al., "Reflexion: Language Agents with Verbal Reinforcement Learning", 2023, with a project that is
    not reset between trials.
    """

    name = "reflexion"

    def __init__(
        self,
        max_steps: int = 50,
        config: LoopConfig | None = None,
        *,
        max_trials: int = 3,
        trial_steps: int | None = None,
        evaluator: Evaluator | None = None,
    ) -> None:
        super().__init__(max_steps, config)
        at_least(1, max_trials=max_trials, trial_steps=1 if trial_steps is None else trial_steps)
        self.max_trials, self.trial_steps, self.evaluator = max_trials, trial_steps, evaluator

    def program(self, context: Context) -> Program:
        turns = Turns(self.max_steps)
        start, trial = list(context.messages), context
        notes: list[str] = []
        number = 0
        while True:
            number += 1
            outcome, result = yield from measured(turns.work(trial, self.trial_steps))
            if not outcome.success and not turns.left:
                return outcome
            failure = yield from self._failure_of(result, trial, turns)
            if failure is None:
                return outcome
            lost = Outcome(outcome.output, False, f"attempt {number} failed: {failure}", "trials_failed")
            if number == self.max_trials or not turns.left:
                return lost
            trial.add(Message.user(_REFLECT.format(failure=failure)))
            reflection = yield from turns.work(trial)
            if not turns.left:
                return lost
            notes = [*notes, reflection.output or failure][-_MEMORY:]
            trial = _Trial(context, start, notes)

    def _failure_of(self, result: AgentResult, trial: Context, turns: Turns) -> Generator[Ask, Any, str | None]:
        if not result.success:
            return f"it was not finished within {self.trial_steps} turns"
        if self.evaluator is not None:
            return _reason((yield Consulting(partial(_evaluate, self.evaluator, result))))
        if not turns.left:
            return None
        trial.add(Message.user(_JUDGE))
        judged = yield from turns.work(trial)
        return _failure_in(judged.output) if judged.success else None


class _Trial(Context):
    """The view that a later trial has; what is added to it enters the whole conversation too."""

    def __init__(self, whole: Context, start: list[Message], notes: list[str]) -> None:
        super().__init__(whole.system, start, conversation_id=whole.conversation_id)
        self._whole = whole
        listed = "\n".join(f"{number}. {note}" for number, note in enumerate(notes, 1))
        self.add(Message.user(_AGAIN.format(notes=listed)))

    def add(self, message: Message) -> None:
        super().add(message)
        self._whole.add(message)


def _evaluate(evaluator: Evaluator, result: AgentResult, _env: Any) -> Any:
    return evaluator(result)


def _reason(answer: object) -> str | None:
    if answer is None or isinstance(answer, str):
        return answer if answer is None else answer.strip() or "no reason was given"
    raise MisuseError(f"an evaluator returns None or the reason of a failure, not {type(answer).__name__}")


def _failure_in(judgement: str) -> str | None:
    verdicts = list(_VERDICT.finditer(judgement))
    if not verdicts or verdicts[-1][1].upper() == "PASS":
        return None
    return judgement[verdicts[-1].end() :].strip(" \t\r\n.:,;*-") or "no reason was given"
