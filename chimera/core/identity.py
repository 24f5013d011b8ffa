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


class Frame:
    """A chain at work: for which run, which of its interceptors is being asked, and what chain it stands in, if any."""

    __slots__ = ("fn", "identity", "outer")

    def __init__(self, identity: RunIdentity | None, outer: Frame | None) -> None:
        self.identity, self.outer = identity, outer
        self.fn: object = None


running: ContextVar[Frame | None] = ContextVar("chimera_current_chain", default=None)


def current_run() -> RunIdentity | None:
    """Return the identity of the run that the calling interceptor decides for; None outside an interceptor."""
    frame = running.get()
    return None if frame is None else frame.identity


def being_asked() -> list[object]:
    """Return the interceptors that are at work around the caller, innermost first."""
    found, frame = [], running.get()
    while frame is not None:
        found.append(frame.fn)
        frame = frame.outer
    return found
