"""Telling whether a user said something new, from nothing but the message lists of provider calls.

A list is looked at once: afterwards only what was added to it is. Lists that were rewritten (compacted, or rebuilt by
an interceptor) are recognised as such, and where it cannot be told, the answer is "new".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import is_

from chimera.types import Message

__all__ = ["UserTurns"]

_REMEMBERED = 6
"""How many messages at the end of a list are remembered: other interceptors may append a few of their own each time."""


class UserTurns:
    """Follows one conversation. Holds on to a handful of its messages, whatever its length."""

    __slots__ = ("_end", "_length")

    def __init__(self) -> None:
        self._end: Sequence[Message] = ()
        self._length = 0

    def look(self, messages: Sequence[Message]) -> bool:
        """Take in the messages of one provider call; tell whether there is a user message that was not there before."""
        fresh = not self._unchanged(messages) and self._has_new(messages)
        self._end, self._length = messages[-_REMEMBERED:], len(messages)
        return fresh

    def _has_new(self, messages: Sequence[Message]) -> bool:
        landmark = self._in_place(messages) or self._moved(messages) or self._copied(messages)
        if landmark is None:
            return not all(any(user is seen for seen in self._end) for user in _users(messages))
        place, index = landmark
        return not _all_among(_users(messages[index + 1 :]), _users(self._end[place + 1 :]))

    def _unchanged(self, messages: Sequence[Message]) -> bool:
        """Tell whether this is the list that was looked at last: several answers to it are asked for, say."""
        if not self._end or len(messages) != self._length:
            return False
        return all(map(is_, messages[-len(self._end) :], self._end))

    def _in_place(self, messages: Sequence[Message]) -> tuple[int, int] | None:
        """Find the last remembered answer that stands where it stood: its places in `_end` and in the list.

        What users say is no landmark: it is what is looked for.
        """
        start = self._length - len(self._end)
        for place in range(len(self._end) - 1, -1, -1):
            message = self._end[place]
            if _is_answer(message) and start + place < len(messages) and messages[start + place] is message:
                return place, start + place
        return None

    def _moved(self, messages: Sequence[Message]) -> tuple[int, int] | None:
        """Find the last remembered answer in a list that was cut or summarised before it."""
        answers = {id(message): place for place, message in enumerate(self._end) if _is_answer(message)}
        for index in range(len(messages) - 1, -1, -1):
            place = answers.get(id(messages[index]))
            if place is not None:
                return place, index
        return None

    def _copied(self, messages: Sequence[Message]) -> tuple[int, int] | None:
        """Find how far a list of new objects reads like the old one. A copy that shows nothing more is no proof: a
        conversation that starts over looks the same. Nor is one that soon reads otherwise, up to its last answer."""
        start, found, proof = self._length - len(self._end), None, None
        if len(messages) <= self._length:
            return None
        for place, message in enumerate(self._end):
            if message.role == "system":
                continue
            other = messages[start + place]
            if not _alike(other, message):
                return proof
            found = place, start + place
            proof = found if other is message or _is_answer(message) else proof
        return found


def _is_answer(message: Message) -> bool:
    return message.role not in ("user", "system")


def _users(messages: Iterable[Message]) -> list[Message]:
    return [message for message in messages if message.role == "user"]


def _all_among(new: Iterable[Message], old: Iterable[Message]) -> bool:
    """Tell whether the old messages hold all the new ones, in their order."""
    rest = iter(old)
    return all(any(_alike(message, other) for other in rest) for message in new)


def _alike(first: Message, second: Message) -> bool:
    if first is second:
        return True
    same = first.role == second.role and first.content == second.content
    return same and first.content_blocks == second.content_blocks
