"""Scrubbing each message of a conversation once, however often the conversation is sent."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from itertools import compress, count
from operator import is_not
from threading import Lock
from typing import Any

from chimera.types import Message

__all__ = ["ConversationMemo", "Memos"]

_CONVERSATIONS = 1024
_MESSAGES = 200_000
_SLACK = 256


class ConversationMemo:
    """Remembers the messages of one conversation with their scrubbed versions. Sound because messages never change.

    A list that goes on where the last one ended is compared by identity, which costs a few nanoseconds a message.
    """

    def __init__(self, scrub: Callable[[Message], Message]) -> None:
        self._scrub = scrub
        self._lock = Lock()
        self._seen: list[Message] = []
        self._clean: list[Message] = []
        self._changed: set[int] = set()
        self._known: dict[int, tuple[Message, Message]] = {}
        self._tools: tuple[Any, Any] = (None, None)

    def __len__(self) -> int:
        return len(self._known)

    def messages(self, messages: list[Message]) -> list[Message]:
        """Return the scrubbed messages: a new list, or the very same one when there was nothing to scrub."""
        with self._lock:
            rewritten = list(compress(count(), map(is_not, self._seen, messages)))
            self._cut(len(messages))
            for index in rewritten:
                self._put(index, messages[index], self._again(index, messages[index]))
            for message in messages[len(self._seen) :]:
                self._put(len(self._seen), message, self._once(message))
            if len(self._known) > 2 * len(self._seen) + _SLACK:
                self._known = {id(pair[0]): pair for pair in zip(self._seen, self._clean, strict=True)}
            return list(self._clean) if self._changed else messages

    def tools(self, tools: Any, scrub: Callable[[Any], Any]) -> Any:
        """Return the scrubbed tool schemas; the work is done once for the same read-only object."""
        known, clean = self._tools
        if tools is not known:
            clean = scrub(tools)
            self._tools = (tools, clean)
        return clean

    def _cut(self, length: int) -> None:
        if length < len(self._seen):
            del self._seen[length:], self._clean[length:]
            self._changed = {index for index in self._changed if index < length}

    def _put(self, index: int, message: Message, clean: Message) -> None:
        self._seen[index : index + 1] = [message]
        self._clean[index : index + 1] = [clean]
        if clean is message:
            self._changed.discard(index)
        else:
            self._changed.add(index)

    def _again(self, index: int, message: Message) -> Message:
        """Scrub another message in the place of one: often the same text in a new object, as the system prompt is."""
        before = self._seen[index]
        if not _same_text(before, message):
            return self._once(message)
        return message if self._clean[index] is before else self._clean[index]

    def _once(self, message: Message) -> Message:
        known = self._known.get(id(message))
        if known is not None and known[0] is message:
            return known[1]
        clean = self._scrub(message)
        self._known[id(message)] = (message, clean)
        return clean


class Memos:
    """The memos of many conversations. Those that were silent longest are forgotten first."""

    def __init__(self, scrub: Callable[[Message], Message]) -> None:
        self._scrub = scrub
        self._lock = Lock()
        self._memos: OrderedDict[str, ConversationMemo] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._total = 0

    def messages(self, conversation: str, messages: list[Message]) -> list[Message]:
        """Return the scrubbed messages of a conversation, as `ConversationMemo.messages` does."""
        memo = self.of(conversation)
        clean = memo.messages(messages)
        self._weigh(conversation, memo)
        return clean

    def of(self, conversation: str) -> ConversationMemo:
        """Return the memo of a conversation, a new one for a conversation that is new or forgotten."""
        with self._lock:
            memo = self._memos.get(conversation)
            if memo is None:
                memo = self._memos[conversation] = ConversationMemo(self._scrub)
                self._sizes[conversation] = 0
            self._memos.move_to_end(conversation)
            return memo

    def _weigh(self, conversation: str, memo: ConversationMemo) -> None:
        with self._lock:
            if self._memos.get(conversation) is memo:
                self._total += len(memo) - self._sizes[conversation]
                self._sizes[conversation] = len(memo)
            while len(self._memos) > 1 and (len(self._memos) > _CONVERSATIONS or self._total > _MESSAGES):
                forgotten, _ = self._memos.popitem(last=False)
                self._total -= self._sizes.pop(forgotten)

    def clear(self) -> None:
        with self._lock:
            self._memos.clear()
            self._sizes.clear()
            self._total = 0


def _same_text(first: Message, second: Message) -> bool:
    if first.tool_calls or second.tool_calls or first.content_blocks or second.content_blocks:
        return False
    return (first.role, first.call_id, first.content) == (second.role, second.call_id, second.content)
