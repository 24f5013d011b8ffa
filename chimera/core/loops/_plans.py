"""Reading what a model was asked to write: a plan as a list, an answer in its place, the word that a step failed."""

from __future__ import annotations

import re

__all__ = ["STEP_REPORT", "answer_in", "failure_of", "plan_steps"]

STEP_REPORT = (
    "When it is done, say what you did. If it cannot be done, answer with a line that begins with STEP FAILED: and "
    "says why."
)
_NUMBERED = re.compile(r"^ {0,3}[0-9]{1,3}[.)] +(\S.*)$", re.MULTILINE)
_BULLET = re.compile(r"^ {0,3}[-*+] +(\S.*)$", re.MULTILINE)
_FAILED = re.compile(r"^[\s*_#>`]*STEP FAILED\b[\s*_`]*:?[\s*_`]*(.*)", re.MULTILINE)


_ANSWER = re.compile(r"[\s*_#>`]*ANSWER[\s*_`]*:[\s*_`]*(.*)", re.DOTALL)


def answer_in(plan: str) -> str | None:
    """Return the answer that a planner gave in place of a plan, or None when it did not begin with one."""
    found = _ANSWER.match(plan)
    return None if found is None else found[1].strip()


def plan_steps(text: str) -> list[str]:
    """Return the items of the numbered list in `text`, of the bulleted one where nothing is numbered, else nothing."""
    items = _NUMBERED.findall(text) or _BULLET.findall(text)
    return [item.strip() for item in items]


def failure_of(report: str) -> str | None:
    """Return why the step that `report` tells of failed, or None when it does not say so."""
    found = _FAILED.search(report)
    return None if found is None else found[1].strip() or "no reason was given"
