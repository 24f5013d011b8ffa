"""Breaking lines between words while text comes in pieces."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Wrapper"]

_PIECE = re.compile(r"\n|[^\S\n]+|\S+")


class Wrapper:
    """Writes text to a console as it comes, and breaks its lines between words where they reach the edge.

    The last word is held back until it is known to be whole. Where the console is no terminal, no line is broken.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._width = console.width if console.is_terminal else None
        self._column = 0
        self._gap = ""
        self._word = ""

    def write(self, text: str) -> None:
        """Take the next piece of clean text."""
        for piece in _PIECE.findall(text):
            if piece.isspace():
                self._flush()
                self._break() if piece == "\n" else self._space(piece)
            else:
                self._word += piece

    def close(self) -> None:
        """Write what was held back, and end the line."""
        self._flush()
        if self._column:
            self._break()

    def _flush(self) -> None:
        if not self._word:
            return
        from rich.cells import cell_len

        wanted = cell_len(self._gap) + cell_len(self._word)
        if self._width is not None and self._column and self._column + wanted > self._width:
            self._break()
            wanted = cell_len(self._word)
        self._out(self._gap + self._word)
        self._column += wanted
        self._gap = self._word = ""

    def _space(self, text: str) -> None:
        self._gap += text.expandtabs(4)

    def _break(self) -> None:
        self._out("\n")
        self._column, self._gap = 0, ""

    def _out(self, text: str) -> None:
        self._console.print(text, end="", soft_wrap=True)
