"""Think of several next steps, compare them, and take the best."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Sequence
from typing import Any

from chimera.core.context import Context
from chimera.core.effects import Act, Acted, Ask, Complete, CompleteInternally, FinishStep, Outcome
from chimera.core.engine import Program
from chimera.core.loop import Loop
from chimera.core.loop_config import LoopConfig
from chimera.core.loops._parts import at_least
from chimera.core.normalize import Answer
from chimera.types import Message

__all__ = ["TreeOfThought"]

_TEMPERATURE = 0.7  # what the paper samples thoughts with
_SHOWN = 6000
_EVALUATE = (
    "An agent has to choose its next step. Compare these candidates for soundness, for completeness, and for how "
    "likely they are to bring its work forward.\n\n{candidates}\n\nAnswer with the number of the best candidate and "
    "nothing else."
)
_NUMBER = re.compile(r"-?[0-9]+(?:[.,][0-9]+)?")


class TreeOfThought(Loop):
    """In every step, sample `n_candidates` thoughts, have them evaluated, and act on the best one.

    A thought is an answer of the model with the calls in it; only the chosen one enters the conversation and runs. When
    all candidates are alike, no evaluation is made; when the evaluation cannot be read, the first candidate is taken.
    `max_steps` bounds the steps that are acted on; each of them costs up to `n_candidates` + 1 model calls.

    Source: Yao et al., "Tree of Thoughts: Deliberate Problem Solving with Large Language Models", 2023: sampled
    thoughts, a vote over them, and breadth-first search with a breadth of one, since what a step did is not undone.
    """

    name = "tot"

    def __init__(self, max_steps: int = 50, n_candidates: int = 3, config: LoopConfig | None = None) -> None:
        super().__init__(max_steps, config)
        at_least(1, n_candidates=n_candidates)
        self.n_candidates = n_candidates

    def program(self, context: Context) -> Program:
        text = ""
        for _ in range(self.max_steps):
            candidates = []
            for _ in range(self.n_candidates):
                answer: Answer = yield Complete(context, {"temperature": _TEMPERATURE}, shown=False)
                candidates.append(answer)
            chosen = yield from _best(candidates)
            acted: Acted = yield Act(context, chosen)
            done = not acted.calls
            yield FinishStep(acted, done)
            text = chosen.content or text
            if done:
                return Outcome(chosen.content)
        return Outcome(text, False, f"the run did not finish within {self.max_steps} steps", "max_turns")


def _best(candidates: Sequence[Answer]) -> Generator[Ask, Any, Answer]:
    distinct: dict[str, Answer] = {}
    for candidate in candidates:
        distinct.setdefault(_rendered(candidate), candidate)
    if len(distinct) == 1:
        return candidates[0]
    listed = "\n\n".join(f"Candidate {number}:\n{text[:_SHOWN]}" for number, text in enumerate(distinct, 1))
    prompt = [Message.user(_EVALUATE.format(candidates=listed))]
    # Not intercepted: this prompt is no conversation, and interceptors that look for one (a new message of the user
    # that re-arms a gate, say) would misread it. It holds what the model just answered, and nothing of what was sent.
    evaluation: Answer = yield CompleteInternally(prompt)
    number = _number_in(evaluation.content, len(distinct))
    return candidates[0] if number is None else list(distinct.values())[number - 1]


def _rendered(candidate: Answer) -> str:
    """Return all that a candidate says and does, without the ids of its calls."""
    calls = (f"{call.name} {json.dumps(call.arguments, sort_keys=True, default=repr)}" for call in candidate.tool_calls)
    return "\n".join((candidate.content, *calls))


def _number_in(text: str, limit: int) -> int | None:
    """Return the one number from 1 to `limit` that `text` names, or begins with; None when that cannot be told."""
    numbers = _NUMBER.findall(text)
    if not numbers:
        return None
    begins = re.match(r"\W*" + re.escape(numbers[0]), text) is not None
    if len(set(numbers)) > 1 and not begins:
        return None
    return int(numbers[0]) if numbers[0] in map(str, range(1, limit + 1)) else None
