"""Messages for a run that is already under way."""

from __future__ import annotations

from collections import deque

from chimera.types import Message

__all__ = ["MessageQueue"]


class MessageQueue:
    """Two queues that may be filled from any thread while a run goes on.

    A *steering* message enters the conversation before the next provider call; a *follow-up* waits until the run would
    end, and makes it go on.
    """

    def __init__(self) -> None:
        self._steering: deque[Message] = deque()
        self._follow_ups: deque[Message] = deque()

    def steer(self, message: str | Message) -> None:
        self._steering.append(_as_message(message))

    def follow_up(self, message: str | Message) -> None:
        self._follow_ups.append(_as_message(message))

    def __bool__(self) -> bool:
        return bool(self._steering or self._follow_ups)

    def take_steering(self) -> list[Message]:
        """Return and forget all steering messages."""
        return _drain(self._steering)

    def take_next(self) -> list[Message]:
        """Return what makes a finished run go on: late steering messages, else the oldest follow-up."""
        return _drain(self._steering) or _drain(self._follow_ups, 1)

    def clear(self) -> None:
        self._steering.clear()
        self._follow_ups.clear()


def _drain(queue: deque[Message], at_most: int | None = None) -> list[Message]:
    taken: list[Message] = []
    while at_most is None or len(taken) < at_most:
        try:
            taken.append(queue.popleft())
        except IndexError:  # empty, or emptied by another thread just now
            break
    return taken


def _as_message(message: str | Message) -> Message:
    return message if isinstance(message, Message) else Message.user(message)
