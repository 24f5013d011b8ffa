"""Questions to the person at the terminal, and rules that make an answer last."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from chimera.errors import ConfigError
from chimera.permissions import PermissionAction, RuleSet
from chimera.permissions.families import COMMANDS, FAMILIES, FILE_CHANGING, READING
from chimera.permissions.paths import expanded
from chimera.permissions.shell import read_shell
from chimera.permissions.uses import tool_paths
from chimera.types import PendingApproval, ToolCall

__all__ = ["Answer", "Question", "SessionRules", "Verdict", "rules_for"]

_MANY = 5


class Answer(Enum):
    """What a person can say."""

    ONCE = "once"
    SESSION = "session"
    PROJECT = "project"
    NO = "no"
    CANCEL = "cancel"


class Verdict(NamedTuple):
    """An answer; `reason` is what the model is told of a no."""

    answer: Answer
    reason: str = ""


@dataclass(slots=True, eq=False)
class Question:
    """A call that waits in `lane`. Whoever asked waits for `future`.

    `original` is the call before policies rewrote it, None when they did not. `rules` are those that would allow just
    such calls, empty when none would be exact; `lasting` says whether the project's settings would let them. `was` is
    the text of the file that the call writes.
    """

    approval: PendingApproval
    lane: str = ""
    original: ToolCall | None = None
    rules: tuple[str, ...] = ()
    lasting: bool = False
    was: str | None = None
    future: Future[Verdict] = field(default_factory=Future)

    def settle(self, verdict: Verdict) -> None:
        """Answer; a question that was answered stays so."""
        if not self.future.done():
            self.future.set_result(verdict)


class SessionRules:
    """What the person allowed for the rest of the session. Used from the threads of all lanes."""

    def __init__(self) -> None:
        self._texts: tuple[str, ...] = ()
        self._lock = Lock()

    def add(self, rules: Iterable[str]) -> None:
        with self._lock:
            self._texts = tuple(dict.fromkeys((*self._texts, *rules)))

    def allow(self, call: ToolCall, root: Path) -> str | None:
        """Return the rules that allow `call`, None when none do."""
        texts = self._texts
        if not texts:
            return None
        decision = RuleSet(allow=texts, root=root).decide(call.name, call.arguments)
        return decision.rule if decision.action is PermissionAction.ALLOW else None


def rules_for(call: ToolCall, root: Path) -> tuple[str, ...]:
    """Return permission rules that allow this call and no others that differ in what they run or which files they
    touch; empty when there are none.

    A command gets a rule for itself word by word, a file tool one for itself and the file. Any other tool gets a rule
    for all of its calls: rules know no more of it.
    """
    if call.name in COMMANDS:
        rules = _command_rules(call)
    elif call.name in FILE_CHANGING | READING:
        rules = _file_rules(call, root)
    else:
        rules = (call.name,) if call.name not in FAMILIES and "*" not in call.name else ()
    return rules if _fits(rules, call, root) else ()


def _command_rules(call: ToolCall) -> tuple[str, ...]:
    command = call.arguments.get("command")
    text = read_shell(command) if isinstance(command, str) else None
    if text is None or len(text.commands) != 1 or text.writes or text.reads:
        return ()
    words = text.commands[0].words
    if not all(word.exact for word in words):
        return ()
    return (f"{call.name}({shlex.join(word.text for word in words)})",)


def _file_rules(call: ToolCall, root: Path) -> tuple[str, ...]:
    paths = tool_paths(call.name, call.arguments) or ()
    if not paths or len(paths) > _MANY:
        return ()
    return tuple(f"{call.name}({_pattern(path, root)})" for path in paths)


def _pattern(path: str, root: Path) -> str:
    place = Path(os.path.normpath(root / expanded(path)))
    try:
        inside = place.relative_to(root).as_posix()
        text = f"/{inside}"
    except ValueError:
        text = f"/{place.as_posix()}"
    return "".join(f"\\{letter}" if letter in "*?[]\\" else letter for letter in text)


def _fits(rules: tuple[str, ...], call: ToolCall, root: Path) -> bool:
    """Make sure that the rules mean this call, read as they will be read."""
    if not rules:
        return False
    try:
        policy = RuleSet(allow=rules, root=root, default=PermissionAction.DENY)
    except ConfigError:
        return False
    return policy.evaluate(call.name, call.arguments) is PermissionAction.ALLOW
