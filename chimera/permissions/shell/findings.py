"""What reading a shell text brings to light."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

__all__ = ["Findings", "Handed", "Heredoc", "Piece", "Simple", "Unreadable", "Word"]


class Unreadable(Exception):
    """The text is not understood from here on. It never leaves this package: the caller notes a doubt."""


class Piece(NamedTuple):
    """A part of a word. `written` is what stands for it in the text of the word.

    Kinds: `text` stands for itself, `glob` may be a pattern or hold braces, `variable` is replaced by the value of
    `name`, `output` by what the command in `name` prints, `found` by a file that `find` comes upon. Nothing is known of
    an `unknown` one.
    """

    kind: Literal["text", "glob", "variable", "output", "found", "unknown"]
    written: str
    name: str = ""
    splits: bool = False


@dataclass(frozen=True, slots=True)
class Word:
    """A word as the shell passes it on, quotes removed.

    `exact` is False when the shell puts something in its place that the text does not tell (a variable, a glob, the
    output of a command); `text` then holds it as written. `splits` is True when that may be several words or none. The
    first `plain` characters stood there without quotes.
    """

    text: str
    exact: bool = True
    plain: int = 0
    splits: bool = False
    pieces: tuple[Piece, ...] = ()

    def after(self, count: int) -> Word:
        """Return the word without its first `count` characters."""
        left, pieces = count, []
        for piece in self.pieces:
            cut = min(left, len(piece.written))
            left -= cut
            if not cut:
                pieces.append(piece)
            elif cut < len(piece.written):
                pieces.append(piece._replace(written=piece.written[cut:]))
        return replace(self, text=self.text[count:], plain=max(0, self.plain - count), pieces=tuple(pieces))

    @property
    def bare(self) -> bool:
        """True when nothing in it is quoted or replaced: only such a word can be a reserved one."""
        return self.exact and self.plain == len(self.text)


@dataclass(slots=True)
class Heredoc:
    """A here-document: known only once the line that announces it has ended."""

    delimiter: str
    literal: bool
    strip_tabs: bool
    body: str = ""
    exact: bool = True


@dataclass(slots=True)
class Simple:
    """One simple command as written: assignments in front, words, and what it gets as standard input.

    `stdin` is a here-document or a here-string, `source` the file that `<` names.
    """

    words: list[Word] = field(default_factory=list)
    assignments: list[Word] = field(default_factory=list)
    stdin: Heredoc | Word | None = None
    source: Word | None = None


@dataclass(frozen=True, slots=True)
class Handed:
    """A text that a program gets besides its words: on its standard input, or in a variable (`program` is empty)."""

    program: str
    word: Word


@dataclass(slots=True)
class Findings:
    """Everything found in one text and in the texts inside it.

    `doubts` say why the text may run something that is not in `commands`; `taints` say why a command in it may not do
    what its words say (a changed environment). `handed` is what programs get besides their words, `scripts` are the
    files that shells run, `functions` the names of those it defines. `variables` holds what is assigned to each name,
    with None for what is not known and the name "" for all names.

    `quoted_code` and `computes` are harmless apart: text that looks like code stands in quotes, and something evaluates
    variables as sums, which runs code that hides in them.
    """

    commands: list[Simple] = field(default_factory=list)
    writes: list[Word] = field(default_factory=list)
    reads: list[Word] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    taints: list[str] = field(default_factory=list)
    handed: list[Handed] = field(default_factory=list)
    scripts: list[Word] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    variables: dict[str, list[Word | None]] = field(default_factory=dict)
    quoted_code: bool = False
    computes: bool = False

    def assign(self, name: str, *values: Word | None) -> None:
        """Note that a variable may get one of `values`."""
        self.variables.setdefault(name, []).extend(values)
