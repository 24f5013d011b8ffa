"""Telling whether a user said something new, from nothing but the message lists of provider calls.

A list is looked at once: afterwards only what was added to it is. Lists that were rewritten (compacted, or rebuilt by
an interceptor) are recognised as such, and where it cannot be told, the answer is "new".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from chimera.types import Message

__all__ = ["UserTurns"]

_REMEMBERED = 6
"""How many messages at the end of a list are remembered: other interceptors may append a few of their own each time."""


class _Seen(NamedTuple):
    """A message, with how many user messages there are up to it and the latest of them."""

    message: Message
    users: int
    latest: Message | None


class UserTurns:
    """Follows one conversation. Holds on to a handful of its messages, whatever its length."""

    __slots__ = ("_end", "_length")

    def __init__(self) -> None:
        self._length = 0
        self._end: list[_Seen] = []

    def look(self, messages: Sequence[Message]) -> bool:
        """Take in the messages of one provider call; tell whether there is a user message that was not there before."""
        before, length = (self._end[-1] if self._end else None), self._length
        known = self._known(messages)
        kept = any(_is_in(seen.message, messages) for seen in self._end) if not known else True
        self._scan(messages, known)
        after = self._end[-1] if self._end else None
        if after is None or after.latest is None:
            return False
        if before is None or before.latest is None:
            return True
        if known:
            return after.users > before.users or not _alike(after.latest, before.latest)
        if after.latest is before.latest:
            return False
        if kept or len(messages) <= length or not _alike(after.latest, before.latest):
            return True
        return after.users > before.users  # every message is another object and reads the same: a copy of the list

    def _known(self, messages: Sequence[Message]) -> int:
        """Return how many messages at the start of the list were there before, as the end of the old list shows."""
        for back, seen in enumerate(reversed(self._end)):
            index = self._length - 1 - back
            if index < len(messages) and messages[index] is seen.message:
                return index + 1
        return 0

    def _scan(self, messages: Sequence[Message], known: int) -> None:
        if known:
            del self._end[len(self._end) - (self._length - known) :]
        else:
            self._end.clear()
        users, latest = (self._end[-1].users, self._end[-1].latest) if self._end else (0, None)
        for message in messages[known:]:
            if message.role == "user":
                users, latest = users + 1, message
            self._end.append(_Seen(message, users, latest))
            if len(self._end) > _REMEMBERED:
                del self._end[0]
        self._length = len(messages)


def _alike(first: Message, second: Message) -> bool:
    return first is second or (first.content == second.content and first.content_blocks == second.content_blocks)


def _is_in(message: Message, messages: Sequence[Message]) -> bool:
    return any(item is message for item in messages)
