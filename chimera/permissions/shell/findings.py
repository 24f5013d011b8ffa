"""What reading a shell text brings to light."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Findings", "Handed", "Heredoc", "Simple", "Unreadable", "Word"]


class Unreadable(Exception):
    """The text is not understood from here on. It never leaves this package: the caller notes a doubt."""


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
    files that shells run. `quoted_code` and `computes` are harmless apart: text that looks like code stands in quotes,
    and something evaluates variables as sums, which runs code that hides in them.
    """

    commands: list[Simple] = field(default_factory=list)
    writes: list[Word] = field(default_factory=list)
    reads: list[Word] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    taints: list[str] = field(default_factory=list)
    handed: list[Handed] = field(default_factory=list)
    scripts: list[Word] = field(default_factory=list)
    quoted_code: bool = False
    computes: bool = False
