"""What a compaction strategy is: it says when a conversation is too long, and makes a shorter one of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chimera.compaction.tokens import estimate_tokens
from chimera.errors import MisuseError
from chimera.providers.base import Response
from chimera.types import Message

__all__ = ["CompactionStrategy", "SummaryRequest", "Work", "require_share"]


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """A strategy's wish for one model call over `messages`; `kwargs` go to the provider."""

    messages: tuple[Message, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)


Work = Generator[SummaryRequest, Response, list[Message]]


class CompactionStrategy(ABC):
    """Shortens the durable conversation.

    `compact` is a generator that touches nothing: it yields the model calls that it wants, is sent the answers and
    returns the new messages. A call that fails may be thrown into it. A strategy holds no state between two calls, so
    that one object may serve many conversations.
    """

    name: str = ""

    def __init__(self, *, threshold: float = 0.8) -> None:
        self.threshold = require_share("threshold", threshold)

    def due(self, messages: Sequence[Message], *, input_tokens: int, context_window: int) -> bool:
        """Say whether `messages` fill more than the `threshold` share of a window of `context_window` tokens.

        `input_tokens` is what the provider counted last, 0 when it did not; the larger of that and an estimate counts.
        """
        used = max(input_tokens, estimate_tokens(messages))
        return context_window > 0 and used > self.threshold * context_window

    @abstractmethod
    def compact(self, messages: Sequence[Message]) -> Work:
        """Return a shorter conversation, or an equal list when it cannot be shortened.

        Calls stay together with their results, system messages and the latest user message stay.
        """


def require_share(name: str, value: float) -> float:
    """Return `value`. Raises `MisuseError` when it is no number between 0 and 1, both excluded."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise MisuseError(f"{name} is a share between 0 and 1, not {value!r}")
    return float(value)
