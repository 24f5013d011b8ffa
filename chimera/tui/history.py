"""What was typed before, for the arrow keys."""

from __future__ import annotations

__all__ = ["History"]

_AT_MOST = 1_000


class History:
    """The lines of this session, and a place in them. The text that is being typed waits behind the newest one."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._at = 0
        self._draft = ""

    def add(self, text: str) -> None:
        """Remember `text` and go back to the end; a repetition of the latest one is remembered once."""
        if text.strip() and self._texts[-1:] != [text]:
            self._texts = [*self._texts[-_AT_MOST + 1 :], text]
        self._at, self._draft = len(self._texts), ""

    def older(self, current: str) -> str | None:
        """Return the text before the one that is shown, None at the oldest."""
        if not self._at:
            return None
        if self._at == len(self._texts):
            self._draft = current
        self._at -= 1
        return self._texts[self._at]

    def newer(self) -> str | None:
        """Return the text after the one that is shown, at the end what was being typed, None behind it."""
        if self._at >= len(self._texts):
            return None
        self._at += 1
        return self._draft if self._at == len(self._texts) else self._texts[self._at]
