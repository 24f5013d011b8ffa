"""From the thread of a lane to the person and back: a question waits there until it is answered here."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock

from chimera.core.loop_events import LoopEvent, LoopEventType
from chimera.core.run import enclosing
from chimera.permissions import PermissionAction, PermissionPolicy, RuleSet
from chimera.permissions.rule import parse_rule
from chimera.tui.approvals import Answer, Question, SessionRules, Verdict, rules_for
from chimera.types import PendingApproval, ToolCall

__all__ = ["Asking", "Rewrites"]

_READ_AT_MOST = 200_000


class Rewrites:
    """Remembers what policies made of the latest calls, in order to show a person both. Used from the threads of all
    lanes, and kept in memory alone."""

    def __init__(self, at_most: int = 200) -> None:
        self._pairs: list[tuple[ToolCall, ToolCall]] = []
        self._at_most = at_most
        self._lock = Lock()

    def see(self, event: LoopEvent) -> None:
        """Take an event of a run."""
        if event.type is not LoopEventType.INTERCEPTOR:
            return
        before, after = event.data.before, event.data.after
        if not isinstance(before, ToolCall) or not isinstance(after, ToolCall):
            return
        with self._lock:
            if (before, after) not in self._pairs:
                self._pairs = [*self._pairs[-self._at_most + 1 :], (before, after)]

    def original_of(self, call: ToolCall) -> ToolCall | None:
        """Return what `call` was before the chain of rewrites that made it; None when nobody rewrote it."""
        found = call
        for before, after in reversed(self._pairs):
            if after == found:
                found = before
        return None if found is call else found


class Asking:
    """Answers what policies ask. `show` puts a question before the person, from any thread, and returns False when
    nobody is there any more. `policy` is what the project's settings hold the lane to, where that is known.
    """

    def __init__(self, root: Path, show: Callable[[Question], bool]) -> None:
        self.root = root
        self.session = SessionRules()
        self.rewrites = Rewrites()
        self.policy: PermissionPolicy | None = None
        self._show = show
        self._open: list[Question] = []
        self._lock = Lock()

    def ask(self, approval: PendingApproval, lane: str = "", root: Path | None = None) -> None:
        """Decide `approval`. Blocks the calling thread, which is that of the lane, until the person has answered."""
        root = root or self.root
        if self.session.allow(approval.tool_call, root) is not None:
            approval.approve()
            return
        question = self._question(approval, lane, root)
        with self._lock:
            self._open.append(question)
        try:
            verdict = question.future.result() if self._show(question) else Verdict(Answer.NO)
        finally:
            with self._lock:
                self._open.remove(question)
        _decide(approval, verdict)

    def settle(self, question: Question, verdict: Verdict) -> None:
        """Answer a question; what is allowed for longer is allowed from now on."""
        if verdict.answer in (Answer.SESSION, Answer.PROJECT):
            self.session.add(question.rules)
        question.settle(verdict)

    def give_up(self, lane: str | None = None) -> None:
        """Cancel what is asked in a lane, or in all of them."""
        with self._lock:
            waiting = [item for item in self._open if lane is None or item.lane == lane]
        for question in waiting:
            question.settle(Verdict(Answer.CANCEL))

    def _question(self, approval: PendingApproval, lane: str, root: Path) -> Question:
        call = approval.tool_call
        rules = rules_for(call, root)
        for event in _held_back():
            self.rewrites.see(event)
        return Question(
            approval,
            lane,
            self.rewrites.original_of(call),
            rules,
            bool(rules) and self._would_last(rules, call, root),
            _text_of(call, root),
        )

    def _would_last(self, rules: tuple[str, ...], call: ToolCall, root: Path) -> bool:
        """Tell whether the call runs unasked once the settings hold `rules`: an ask rule of theirs comes first."""
        if not isinstance(self.policy, RuleSet):
            return False
        other = copy.copy(self.policy)
        other.allow = (*other.allow, *(parse_rule(text, root=root, permits=True) for text in rules))
        return other.evaluate(call.name, call.arguments) is PermissionAction.ALLOW


def _held_back() -> Iterator[LoopEvent]:
    """Yield what the runs above have noted and not told yet: they tell it when the tool that runs now has ended."""
    run = enclosing.get()
    while run is not None:
        yield from tuple(run.notes)
        run = run.outer


def _decide(approval: PendingApproval, verdict: Verdict) -> None:
    if verdict.answer in (Answer.ONCE, Answer.SESSION, Answer.PROJECT):
        approval.approve()
    else:
        approval.deny(verdict.reason)


def _text_of(call: ToolCall, root: Path) -> str | None:
    """Return the text of the file that a call writes anew, None where there is none that can be shown."""
    path = call.arguments.get("path")
    if call.name != "write_file" or not isinstance(path, str):
        return None
    try:
        place = root / path
        if not place.is_file() or place.stat().st_size > _READ_AT_MOST:
            return None
        return place.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
