"""Cutting markdown that comes in pieces into blocks, so that a repaint looks at the last one only."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Block", "BlockSplitter"]

_FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,})[ \t]*([^`\s]*)[^`]*\Z")
_LIMIT = 4_000
"""Characters after which a block is cut although it goes on: what is repainted stays small."""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of an answer: markdown, or with `code` the lines of a code block in `language`."""

    text: str
    code: bool = False
    language: str = ""


class BlockSplitter:
    """Takes text as it streams. `feed` returns the blocks that are whole, `tail` is the one that still grows."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._size = 0
        self._partial: list[str] = []
        self._fence: tuple[str, str, str] | None = None  # its marks, its indentation, its language
        self._gap = False

    def feed(self, text: str) -> list[Block]:
        done: list[Block] = []
        first, *others = text.split("\n")
        self._partial.append(first)
        for piece in others:
            self._line("".join(self._partial), done)
            self._partial = [piece]
        self._close_gap(done)
        if sum(map(len, self._partial)) > _LIMIT:
            self._cut_partial(done)
        return done

    @property
    def tail(self) -> Block | None:
        """What has come since the last whole block; None for nothing but space."""
        rest = "".join(self._partial)
        gap = [""] if self._gap else []
        return self._made([*self._lines, *gap, self._dedented(rest)] if rest else self._lines)

    def close(self) -> list[Block]:
        """Return what is left, and begin anew."""
        done: list[Block] = []
        if rest := "".join(self._partial):
            self._line(rest, done)
        self._flush(done)
        self.__init__()  # type: ignore[misc]
        return done

    def _line(self, line: str, done: list[Block]) -> None:
        match = _FENCE.match(line)
        if self._fence is not None:
            self._inside(line, match, done)
        elif match is not None:
            self._flush(done)
            self._fence = (match[2], match[1], match[3])
        else:
            self._outside(line, done)

    def _inside(self, line: str, match: re.Match[str] | None, done: list[Block]) -> None:
        assert self._fence is not None
        if match is not None and not match[3] and match[2].startswith(self._fence[0]):
            self._flush(done)
            self._fence = None
        else:
            self._keep(self._dedented(line), done)

    def _outside(self, line: str, done: list[Block]) -> None:
        if not line.strip():
            self._gap = bool(self._lines)
            return
        if self._gap and line[0].isspace():  # it belongs to the list above it
            self._lines.append("")
        elif self._gap:
            self._flush(done)
        self._gap = False
        self._keep(line, done)

    def _close_gap(self, done: list[Block]) -> None:
        """End the block above an empty line as soon as the next line shows that it is another one."""
        begun = next((piece for piece in self._partial if piece), " ")
        if self._gap and not begun[0].isspace():
            self._flush(done)

    def _keep(self, line: str, done: list[Block]) -> None:
        self._lines.append(line)
        self._size += len(line) + 1
        if self._size > _LIMIT:
            self._flush(done)

    def _cut_partial(self, done: list[Block]) -> None:
        text = "".join(self._partial)
        at = text.rfind(" ", 1, _LIMIT) + 1 or _LIMIT
        self._keep(text[:at], done)
        self._flush(done)
        self._partial = [text[at:]]

    def _flush(self, done: list[Block]) -> None:
        block = self._made(self._lines)
        if block is not None:
            done.append(block)
        self._lines, self._size, self._gap = [], 0, False

    def _made(self, lines: list[str]) -> Block | None:
        text = "\n".join(lines)
        if not text.strip():
            return None
        return Block(text) if self._fence is None else Block(text, True, self._fence[2])

    def _dedented(self, line: str) -> str:
        return line.removeprefix(self._fence[1]) if self._fence is not None else line
