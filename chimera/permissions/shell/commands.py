"""What a shell text runs: its commands, and the commands inside them that wrappers and inner shells start."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from chimera.permissions.shell.environment import DECLARING, note_assignments, note_evaluation
from chimera.permissions.shell.findings import Findings, Heredoc, Simple, Word
from chimera.permissions.shell.parser import MAX_DEPTH, read_commands
from chimera.permissions.shell.wrappers import SHELLS, WRAPPERS, Wrapper, basename, option_end

__all__ = ["Command", "ShellText", "read_shell"]

_DASH_C = re.compile(r"-[A-Za-z]*c")


@dataclass(frozen=True, slots=True)
class Command:
    """One command. `inner` are the commands that it starts in its turn.

    `inner_at` is the index of the word where the one inner command begins, when its words are words of this command.
    A `transparent` command does nothing but start its inner ones. An `open_ended` one gets more arguments when it runs.
    """

    words: tuple[Word, ...]
    inner: tuple[Command, ...] = ()
    inner_at: int | None = None
    transparent: bool = False
    open_ended: bool = False

    def all(self) -> Iterator[Command]:
        """Yield this command and every command inside it."""
        yield self
        for command in self.inner:
            yield from command.all()


@dataclass(frozen=True, slots=True)
class ShellText:
    """What a text runs, as far as the text tells.

    `writes` and `reads` are the files that redirections name. With `doubts` the text may run more than `commands`; with
    `taints` a command may do something else than its words say.
    """

    commands: tuple[Command, ...]
    writes: tuple[Word, ...] = ()
    reads: tuple[Word, ...] = ()
    doubts: tuple[str, ...] = ()
    taints: tuple[str, ...] = ()

    def all(self) -> Iterator[Command]:
        """Yield every command, the inner ones included."""
        for command in self.commands:
            yield from command.all()


def read_shell(text: str) -> ShellText:
    """Find what `text` would run if bash read it. Never raises: what cannot be read is a doubt."""
    found = Findings()
    commands = _read(text, found, 0)
    if found.computes:
        found.taints.append("it evaluates variables as arithmetic")
        if found.quoted_code:
            found.doubts.append("it evaluates variables as arithmetic, and quoted text in it could be code")
    return ShellText(commands, tuple(found.writes), tuple(found.reads), tuple(found.doubts), tuple(found.taints))


def _read(text: str, found: Findings, depth: int) -> tuple[Command, ...]:
    """Read `text`, add what it touches to `found`, and return its commands."""
    inside = Findings()
    read_commands(text, inside, depth)
    commands = [command for simple in inside.commands for command in _Unwrapper(simple, inside, depth).commands()]
    found.writes += inside.writes
    found.reads += inside.reads
    found.doubts += inside.doubts
    found.taints += inside.taints
    found.quoted_code |= inside.quoted_code
    found.computes |= inside.computes
    return tuple(commands)


class _Unwrapper:
    """Follows one simple command through the wrappers and shells that it starts."""

    def __init__(self, simple: Simple, found: Findings, depth: int) -> None:
        self.simple, self.found, self.depth = simple, found, depth
        self._later: list[Command] = []

    def commands(self) -> list[Command]:
        """Return the command, and those that the variables it sets will run."""
        words = tuple(self.simple.words)
        self._assign(self.simple.assignments, exported=bool(words))
        if not words:
            return self._later
        if words[0].text in DECLARING:
            self._assign(words[1:], exported=True)
        return [self._follow(words, 0), *self._later]

    def _assign(self, assignments: Sequence[Word], *, exported: bool) -> None:
        for text in note_assignments(assignments, self.found, exported=exported):
            self._later += _read(text, self.found, self.depth + 1)

    def _doubt(self, text: str) -> None:
        self.found.doubts.append(text)

    def _follow(self, words: tuple[Word, ...], level: int, *, open_ended: bool = False) -> Command:
        plain = Command(words, open_ended=open_ended)
        if not words[0].exact:
            self._doubt(f"the name of a command is known only when it runs: {words[0].text}")
            return plain
        if level + self.depth > MAX_DEPTH:
            self._doubt("commands nested too deeply")
            return plain
        name = basename(words[0].text)
        note_evaluation(name, words, self.found)
        if name in SHELLS:
            return self._shell(plain)
        if name in _SPECIAL:
            return _SPECIAL[name](self, plain, level)
        wrapper = WRAPPERS.get(name)
        return plain if wrapper is None else self._wrapped(plain, wrapper, level)

    def _wrapped(self, plain: Command, wrapper: Wrapper, level: int) -> Command:
        words, start = plain.words, 1
        if wrapper.subcommand:
            if len(words) < 2 or words[1].text not in wrapper.subcommand:
                return plain
            start = 2
        split = option_end(words, start, wrapper)
        if wrapper.queries & split.seen.keys():
            return plain
        index = split.index + wrapper.operands
        sure = split.sure and not any(word.splits for word in words[split.index : index])
        if wrapper.assigns:
            index = self._pass_assignments(words, index)
        if not sure or (index >= len(words) and plain.open_ended):
            self._doubt(f"what {words[0].text} starts is known only when it runs")
        if index >= len(words):
            return plain
        if wrapper.joined:
            return replace(plain, inner=self._text(words[index:]))
        return self._inner(plain, wrapper, index, level, split.seen)

    def _inner(self, plain: Command, wrapper: Wrapper, index: int, level: int, seen: Mapping[str, str]) -> Command:
        words = plain.words[index:]
        open_ended = plain.open_ended
        if basename(plain.words[0].text) == "xargs":
            marks = [seen[option] or "{}" for option in ("-I", "-i", "-J", "--replace") if option in seen]
            words = _placeholders(words, marks)
            open_ended = open_ended or not marks
        inner = self._follow(words, level + 1, open_ended=open_ended)
        return replace(plain, inner=(inner,), inner_at=index, transparent=wrapper.transparent)

    def _pass_assignments(self, words: tuple[Word, ...], index: int) -> int:
        start = index
        while index < len(words) and "=" in words[index].text:
            index += 1
        self._assign(words[start:index], exported=True)
        return index

    def _text(self, words: Sequence[Word]) -> tuple[Command, ...]:
        """Read words as one shell text, the way eval does."""
        if not all(word.exact for word in words):
            self._doubt("a part of the script that it runs is known only when it runs")
        return _read(" ".join(word.text for word in words), self.found, self.depth + 1)

    def _shell(self, plain: Command) -> Command:
        words = plain.words
        split = option_end(words, 1, _SHELL)
        while split.index < len(words) and words[split.index].text[:1] == "+":
            rest = option_end(words, split.index + 1 + (words[split.index].text in ("+o", "+O")), _SHELL)
            split.index, split.sure = rest.index, split.sure and rest.sure
            split.seen.update(rest.seen)
        if not split.sure:
            self._doubt(f"the options of {words[0].text} are not all known")
        operands = words[split.index :]
        if operands and operands[0].text == "-":  # for a shell, this ends the options as -- does
            operands = operands[1:]
        if "-c" in split.seen and operands:
            self._check_dialect(operands[0])
            return replace(plain, inner=self._text(operands[:1]), transparent=True)
        if "-c" in split.seen or plain.open_ended:
            self._doubt(f"the script of {words[0].text} is known only when it runs")
        elif operands and "-s" not in split.seen:
            self._script_file(operands[0])
        elif not _SHELL.queries & split.seen.keys():
            return replace(plain, inner=self._standard_input(), transparent=True)
        return plain

    def _check_dialect(self, script: Word) -> None:
        if "$'" in script.text and basename(self.simple.words[0].text) != "bash":
            self._doubt("shells differ in how they read $'...'")

    def _script_file(self, operand: Word) -> None:
        if not operand.exact or operand.text.startswith(("/dev/", "/proc/")):
            self._doubt("the script that a shell runs is known only when it runs")

    def _standard_input(self) -> tuple[Command, ...]:
        stdin = self.simple.stdin
        if isinstance(stdin, Heredoc):
            return self._text([Word(stdin.body, stdin.exact)])
        if stdin is not None:
            return self._text([stdin])
        if self.simple.source is None:
            self._doubt("a shell reads what it runs from its standard input")
        else:
            self._script_file(self.simple.source)
        return ()

    def _eval(self, plain: Command, _level: int) -> Command:
        return replace(plain, inner=self._text(plain.words[1:]), transparent=True)

    def _trap(self, plain: Command, _level: int) -> Command:
        return replace(plain, inner=self._text(plain.words[1:2]), transparent=True)

    def _source(self, plain: Command, _level: int) -> Command:
        for operand in plain.words[1:2]:
            self._script_file(operand)
        return plain

    def _dash_c(self, plain: Command, level: int) -> Command:
        """Programs that take a shell text after `-c`: su, script, flock, runuser."""
        for index, word in enumerate(plain.words[1:], 1):
            if word.text.startswith("--command="):
                return replace(plain, inner=self._text([replace(word, text=word.text[len("--command=") :])]))
            if word.text == "--command" or _DASH_C.fullmatch(word.text):
                return replace(plain, inner=self._text(plain.words[index + 1 : index + 2]))
        wrapper = WRAPPERS.get(basename(plain.words[0].text))
        if wrapper is not None:
            return self._wrapped(plain, wrapper, level)
        self._doubt(f"what {plain.words[0].text} runs is known only when it runs")
        return plain

    def _actions(self, plain: Command, level: int, *, starters: frozenset[str]) -> Command:
        """Programs that run a command on every file they find: find, fd."""
        inner, first = [], None
        words = plain.words
        for index, word in enumerate(words):
            if word.text in starters and index + 1 < len(words):
                first = first or index + 1
                inner.append(self._follow(_placeholders(_until_end(words[index + 1 :]), "{"), level + 1))
        if any(word.splits for word in words[1:]):
            self._doubt(f"what {words[0].text} runs is known only when it runs")
        return replace(plain, inner=tuple(inner), inner_at=first if len(inner) == 1 else None)

    def _opaque(self, plain: Command, _level: int) -> Command:
        self._doubt(f"what {plain.words[0].text} runs is not followed")
        return plain


def _placeholders(words: Iterable[Word], marks: Iterable[str]) -> tuple[Word, ...]:
    """Mark the words as unknown in which something is put in the place of a mark when the command runs."""
    return tuple(replace(word, exact=False) if any(mark in word.text for mark in marks) else word for word in words)


def _until_end(words: tuple[Word, ...]) -> tuple[Word, ...]:
    for index, word in enumerate(words):
        if index and word.text in (";", "+"):
            return words[:index]
    return words


_SHELL = Wrapper(
    valued=frozenset({"-o", "-O", "--rcfile", "--init-file"}),
    flags=frozenset("-" + letter for letter in "abcefhiklmnprstuvxBCDEHPT").union(
        (
            "--login",
            "--norc",
            "--noprofile",
            "--posix",
            "--restricted",
            "--verbose",
            "--noediting",
            "--version",
            "--help",
        )
    ),
    queries=frozenset({"--version", "--help"}),
)
_SPECIAL: dict[str, Callable[[_Unwrapper, Command, int], Command]] = {
    "eval": _Unwrapper._eval,
    "trap": _Unwrapper._trap,
    "source": _Unwrapper._source,
    ".": _Unwrapper._source,
    "find": partial(_Unwrapper._actions, starters=frozenset({"-exec", "-execdir", "-ok", "-okdir"})),
    "fd": partial(_Unwrapper._actions, starters=frozenset({"-x", "--exec", "-X", "--exec-batch"})),
    **dict.fromkeys(("su", "script", "flock", "runuser"), _Unwrapper._dash_c),
    **dict.fromkeys(("parallel", "sem", "at", "batch", "tmux", "screen"), _Unwrapper._opaque),
    **dict.fromkeys(("alias", "enable", "hash", "bind", "complete", "compgen", "fc"), _Unwrapper._opaque),
}
