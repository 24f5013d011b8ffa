"""Cutting a conversation where it may be cut: never between a call and its results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chimera.compaction.tokens import estimate_tokens, message_tokens
from chimera.types import Message

__all__ = ["Block", "Parts", "blocks_of", "part"]


@dataclass(frozen=True, slots=True)
class Block:
    """Messages that stand and fall together: one message, or calls with everything up to their last result."""

    messages: tuple[Message, ...]

    @property
    def is_system(self) -> bool:
        return self.messages[0].role == "system"

    @property
    def has_user(self) -> bool:
        return any(message.role == "user" for message in self.messages)


@dataclass(frozen=True, slots=True)
class Parts:
    """A conversation cut in two. `system` are all system messages, `older` and `recent` the rest in order.

    `asked` is the block with the latest user message when it is among the older ones, and stays out of `older` then.
    """

    system: tuple[Message, ...]
    older: tuple[Message, ...]
    asked: tuple[Message, ...]
    recent: tuple[Message, ...]


def blocks_of(messages: Sequence[Message]) -> list[Block]:
    """Cut `messages` into blocks. A tool message that answers no call is left out: no provider would take it."""
    blocks: list[Block] = []
    index = 0
    while index < len(messages):
        message = messages[index]
        end = _last_result(messages, index) + 1 if message.tool_calls else index + 1
        if message.role != "tool":
            blocks.append(Block(tuple(messages[index:end])))
        index = end
    return blocks


def _last_result(messages: Sequence[Message], start: int) -> int:
    """Return the index of the last message that answers the calls at `start`, before the next message with calls."""
    wanted = {call.id for call in messages[start].tool_calls}
    last = start
    for index in range(start + 1, len(messages)):
        if messages[index].tool_calls:
            break
        if messages[index].role == "tool" and messages[index].call_id in wanted:
            last = index
    return last


def part(messages: Sequence[Message], keep: float) -> Parts:
    """Cut so that the recent part holds at most the share `keep` of the estimated tokens, and at least one block."""
    blocks = blocks_of(messages)
    system = tuple(message for block in blocks if block.is_system for message in block.messages)
    spoken = [block for block in blocks if not block.is_system]
    start = _start(spoken, keep * estimate_tokens(messages))
    asked = _latest_user(spoken)
    return Parts(
        system,
        _flat(block for index, block in enumerate(spoken[:start]) if index != asked),
        spoken[asked].messages if asked is not None and asked < start else (),
        _flat(spoken[start:]),
    )


def _start(blocks: Sequence[Block], budget: float) -> int:
    start = len(blocks)
    while start > 0:
        budget -= sum(map(message_tokens, blocks[start - 1].messages))
        if budget < 0 and start < len(blocks):
            break
        start -= 1
    return start


def _latest_user(blocks: Sequence[Block]) -> int | None:
    return max((index for index, block in enumerate(blocks) if block.has_user), default=None)


def _flat(blocks: Iterable[Block]) -> tuple[Message, ...]:
    return tuple(message for block in blocks for message in block.messages)
