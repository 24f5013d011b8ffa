"""Who is asking: the identity of the conversation that an interceptor is called for."""

from __future__ import annotations

import itertools
import os
from contextvars import ContextVar
from dataclasses import dataclass

__all__ = ["RunIdentity", "current_run", "new_id"]

_counter = itertools.count(1)
_stem = ""
_stem_pid = 0


def new_id(prefix: str) -> str:
    """Return an identifier that no other process and no earlier call has produced."""
    global _stem, _stem_pid
    pid = os.getpid()
    if pid != _stem_pid:  # a forked child must not go on with its parent's names
        _stem, _stem_pid = os.urandom(6).hex(), pid
    return f"{prefix}-{_stem}-{next(_counter)}"


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """One run: its own id, the conversation it goes on with, how deep below the first agent it is, and where it runs.

    `parent` is the run that started it, None at depth 0. `lane` names the lane of a race and is empty elsewhere.
    """

    run_id: str
    conversation_id: str
    depth: int = 0
    parent: str | None = None
    lane: str = ""
    loop: str = ""


running: ContextVar[RunIdentity | None] = ContextVar("chimera_current_run", default=None)


def current_run() -> RunIdentity | None:
    """Return the identity of the run that the calling interceptor decides for; None outside an interceptor."""
    return running.get()
