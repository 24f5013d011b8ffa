"""Shortening the conversation when a person asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chimera.compaction import CompactionStrategy
from chimera.compaction.base import Work
from chimera.types import Message

__all__ = ["OnDemand"]


class OnDemand(CompactionStrategy):
    """Does what `inner` does, and once more before the next answer when `wanted` is set."""

    def __init__(self, inner: Any) -> None:
        super().__init__(threshold=getattr(inner, "threshold", 0.8))
        self.inner = inner
        self.name = str(getattr(inner, "name", ""))
        self.wanted = False

    def due(self, messages: Sequence[Message], *, input_tokens: int, context_window: int) -> bool:
        wanted, self.wanted = self.wanted, False
        return wanted or bool(self.inner.due(messages, input_tokens=input_tokens, context_window=context_window))

    def compact(self, messages: Sequence[Message]) -> Work:
        shorter: list[Message] = yield from self.inner.compact(messages)
        return shorter
