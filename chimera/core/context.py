"""The durable conversation."""

from __future__ import annotations

from collections.abc import Iterable

from chimera.core.identity import new_id
from chimera.types import Message

__all__ = ["Context"]


class Context:
    """A system prompt and the messages so far. Loops add to it; what a seam rewrites for one call never enters it.

    `conversation_id` stays the same for the life of the object: policies keep their state by it.
    """

    def __init__(
        self, system: str | None = None, messages: Iterable[Message] = (), *, conversation_id: str | None = None
    ) -> None:
        self.system = system
        self.messages: list[Message] = list(messages)
        self.conversation_id = conversation_id or new_id("conversation")
        self._prompt: Message | None = None

    def add(self, message: Message) -> None:
        self.messages.append(message)

    def to_messages(self) -> list[Message]:
        """Return a new list of what one provider call sends: the system prompt, when there is one, and all messages.

        The same prompt is the same `Message` each time, so that a policy can tell what it has already looked at.
        """
        if not self.system:
            return list(self.messages)
        if self._prompt is None or self._prompt.content != self.system:
            self._prompt = Message.system(self.system)
        return [self._prompt, *self.messages]
