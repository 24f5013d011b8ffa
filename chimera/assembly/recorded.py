"""A conversation that tells of every change, whoever makes it: a loop, compaction, middleware, a queue."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from chimera.core.context import Context
from chimera.types import Message

__all__ = ["RecordedContext", "Recorder"]


class Recorder(Protocol):
    """Who is told. Both are called in the thread that made the change, once it is made."""

    def added(self, context: RecordedContext, messages: list[Message]) -> None:
        """These were added to the end."""

    def replaced(self, context: RecordedContext) -> None:
        """The conversation is another one than it was."""


class RecordedContext(Context):
    """A `Context` whose list of messages cannot change without `recorder` being told.

    `messages` are what it begins with; of them nobody is told.
    """

    def __init__(self, recorder: Recorder, messages: Iterable[Message] = ()) -> None:
        self._recorder: Recorder | None = None
        super().__init__(messages=messages)
        self._recorder = recorder

    @property
    def messages(self) -> list[Message]:
        return self._messages

    @messages.setter
    def messages(self, messages: Iterable[Message]) -> None:
        if messages is not getattr(self, "_messages", None):  # else it is the end of a `+=`, which has told already
            self._messages = _Messages(messages, self)
            self._replaced()

    def _added(self, messages: list[Message]) -> None:
        if self._recorder is not None:
            self._recorder.added(self, messages)

    def _replaced(self) -> None:
        if self._recorder is not None:
            self._recorder.replaced(self)


def _telling(name: str) -> Any:
    """Return the method `name` of a list, which tells of the change also when it raises half-way."""
    method = getattr(list, name)

    def change(self: _Messages, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        finally:
            self._tell()

    change.__name__ = name
    return change


def _growing(self: Any, messages: Any) -> Any:
    self.extend(messages)
    return self


class _Messages(list[Message]):
    """The list inside. A list that the conversation has no more tells nothing."""

    def __init__(self, messages: Iterable[Message], context: RecordedContext) -> None:
        super().__init__(messages)
        self._context = context

    def append(self, message: Message) -> None:
        super().append(message)
        self._tell([message])

    def extend(self, messages: Iterable[Message]) -> None:
        new = list(messages)
        super().extend(new)
        if new:
            self._tell(new)

    __iadd__ = _growing
    __imul__ = _telling("__imul__")
    __setitem__ = _telling("__setitem__")
    __delitem__ = _telling("__delitem__")
    insert = _telling("insert")
    pop = _telling("pop")
    remove = _telling("remove")
    clear = _telling("clear")
    sort = _telling("sort")
    reverse = _telling("reverse")

    def _tell(self, added: list[Message] | None = None) -> None:
        if self._context.messages is not self:
            return
        if added is None:
            self._context._replaced()
        else:
            self._context._added(added)

    def __reduce__(self) -> tuple[Any, ...]:
        return (list, (list(self),))  # a copy is nobody's conversation
