"""Keeping huge results out of the conversation."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chimera.errors import MisuseError
from chimera.types import ToolResult

__all__ = ["Truncation"]


@dataclass(frozen=True, slots=True)
class Truncation:
    """Cuts the middle out of output and error text that is longer than `max_chars` characters.

    `head_share`, between 0 and 1, of what is kept comes from the start, the rest from the end. The note in between
    that says how much is missing counts towards the limit, where there is room for it.
    """

    max_chars: int = 30_000
    head_share: float = 0.5

    def __post_init__(self) -> None:
        if self.max_chars < 0 or not 0 <= self.head_share <= 1:
            raise MisuseError("max_chars must not be negative, and head_share lies between 0 and 1")

    def apply(self, result: ToolResult) -> ToolResult:
        """Return the result within the limit; the same object when it already is."""
        output = self._cut(result.output)
        error = None if result.error is None else self._cut(result.error)
        if output is result.output and error is result.error:
            return result
        return replace(result, output=output, error=error)

    def _cut(self, text: str) -> str:
        if len(text) <= self.max_chars:
            return text
        room = self.max_chars - len(_note(len(text)))
        if room <= 0:
            return text[: self.max_chars]
        head = int(room * self.head_share)
        tail = room - head
        return text[:head] + _note(len(text) - room) + (text[-tail:] if tail else "")


def _note(left_out: int) -> str:
    return f"\n[... {left_out} characters left out ...]\n"
