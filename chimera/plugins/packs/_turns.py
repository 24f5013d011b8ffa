"""Telling whether a user said something new, from nothing but the message lists of provider calls.

A list is looked at once: afterwards only what was added to it is. Lists that were rewritten (compacted, or rebuilt by
an interceptor) are recognised as such, and where it cannot be told, the answer is "new".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chimera.types import Message

__all__ = ["UserTurns"]

_REMEMBERED = 6
"""How many messages at the end of a list are remembered: other interceptors may append a few of their own each time."""


class UserTurns:
    """Follows one conversation. Holds on to a handful of its messages, whatever its length."""

    __slots__ = ("_end", "_latest", "_length", "_users")

    def __init__(self) -> None:
        self._end: Sequence[Message] = ()
        self._length = self._users = 0
        self._latest: Message | None = None

    def look(self, messages: Sequence[Message]) -> bool:
        """Take in the messages of one provider call; tell whether there is a user message that was not there before."""
        index = self._in_place(messages)
        if index is not None:
            old, new = _users(self._end[index + len(self._end) - self._length + 1 :]), _users(messages[index + 1 :])
            fresh, users = not _all_among(new, old), self._users - len(old) + len(new)
            latest = new[-1] if new else None if old else self._latest
        else:
            everyone = _users(messages)
            fresh, users = self._is_new_in_rewritten(messages, everyone), len(everyone)
            latest = everyone[-1] if everyone else None
        self._end, self._length = messages[-_REMEMBERED:], len(messages)
        self._users, self._latest = users, latest
        return fresh

    def _in_place(self, messages: Sequence[Message]) -> int | None:
        """Return the place of the last answer that stands where it stood; None when there is none, as in a rewritten
        list. What users say is no landmark: it is what is looked for."""
        for back, message in enumerate(reversed(self._end), start=1):
            index = self._length - back
            if _is_answer(message) and index < len(messages) and messages[index] is message:
                return index
        return None

    def _is_new_in_rewritten(self, messages: Sequence[Message], everyone: Sequence[Message]) -> bool:
        answers = {id(message): place for place, message in enumerate(self._end) if _is_answer(message)}
        for index in range(len(messages) - 1, -1, -1):
            place = answers.get(id(messages[index]))
            if place is not None:  # cut or summarised up to here
                return not _all_among(_users(messages[index + 1 :]), _users(self._end[place + 1 :]))
        if not everyone:
            return False
        copied = len(messages) > self._length and len(everyone) == self._users
        return not (copied and self._latest is not None and _alike(everyone[-1], self._latest))


def _is_answer(message: Message) -> bool:
    return message.role not in ("user", "system")


def _users(messages: Iterable[Message]) -> list[Message]:
    return [message for message in messages if message.role == "user"]


def _all_among(new: Iterable[Message], old: Iterable[Message]) -> bool:
    """Tell whether the old messages hold all the new ones, in their order."""
    rest = iter(old)
    return all(any(_alike(message, other) for other in rest) for message in new)


def _alike(first: Message, second: Message) -> bool:
    return first is second or (first.content == second.content and first.content_blocks == second.content_blocks)
