"""Keeping huge results out of the conversation."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chimera.types import ToolResult

__all__ = ["Truncation"]


@dataclass(frozen=True, slots=True)
class Truncation:
    """Cuts the middle out of output and error text that is longer than `max_chars` characters.

    `head_share` of what is kept comes from the start, the rest from the end.
    """

    max_chars: int = 30_000
    head_share: float = 0.5

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
        head = int(self.max_chars * self.head_share)
        tail = self.max_chars - head
        note = f"\n[... {len(text) - self.max_chars} characters left out ...]\n"
        return text[:head] + note + (text[-tail:] if tail else "")
