"""Compaction that forgets: the oldest part goes."""

from __future__ import annotations

from collections.abc import Sequence

from chimera.compaction.base import CompactionStrategy, Work, require_share
from chimera.compaction.blocks import Parts, part
from chimera.types import Message

__all__ = ["DropOldest"]


class DropOldest(CompactionStrategy):
    """Drops the oldest messages until about the share `keep` of the tokens is left; no model is asked.

    What is left begins with a user message where there is one: the latest one at least, which always stays.
    """

    name = "drop-oldest"

    def __init__(self, *, keep: float = 0.5, threshold: float = 0.8) -> None:
        super().__init__(threshold=threshold)
        self.keep = require_share("keep", keep)

    def compact(self, messages: Sequence[Message]) -> Work:
        yield from ()
        return self.shorten(messages)

    def shorten(self, messages: Sequence[Message]) -> list[Message]:
        """Do at once what `compact` does."""
        parts = part(messages, self.keep)
        shorter = [*parts.system, *parts.asked, *_from_user(parts)]
        return shorter if len(shorter) < len(messages) else list(messages)


def _from_user(parts: Parts) -> Sequence[Message]:
    """Leave out what comes before the first user message, unless the latest one stands in front of it anyway."""
    if parts.asked or not parts.older:
        return parts.recent
    for index, message in enumerate(parts.recent):
        if message.role == "user" and _is_cut(parts.recent, index):
            return parts.recent[index:]
    return parts.recent


def _is_cut(messages: Sequence[Message], index: int) -> bool:
    """Say whether no call before `index` is answered after it."""
    called = {call.id for message in messages[:index] for call in message.tool_calls}
    return not any(message.role == "tool" and message.call_id in called for message in messages[index:])
