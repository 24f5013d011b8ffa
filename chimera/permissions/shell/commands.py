"""What a shell text runs: its commands, and the commands inside them that wrappers and inner shells start."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise, takewhile
from os.path import normpath
from typing import Literal

from chimera.permissions.shell.environment import DECLARING, note_assignments, note_evaluation, note_script
from chimera.permissions.shell.findings import Findings, Handed, Heredoc, Piece, Simple, Word
from chimera.permissions.shell.parser import MAX_DEPTH, read_commands
from chimera.permissions.shell.starting import GIT, GIT_OPTIONS, STARTING, command_of_setting, option_values
from chimera.permissions.shell.wrappers import SHELLS, WRAPPERS, Wrapper, basename, option_end

__all__ = ["SPECIAL", "Command", "ShellText", "read_shell"]

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

    `writes` and `reads` are the files that redirections name, `handed` what programs get besides their words. With
    `functions` are defined in it; `variables` are what it sets, None for a value that is not known. With
    `doubts` the text may run more than `commands`; with `taints` a command may do something else than its words say.
    """

    commands: tuple[Command, ...]
    writes: tuple[Word, ...] = ()
    reads: tuple[Word, ...] = ()
    doubts: tuple[str, ...] = ()
    taints: tuple[str, ...] = ()
    handed: tuple[Handed, ...] = ()
    functions: tuple[str, ...] = ()
    variables: Mapping[str, tuple[Word | None, ...]] = field(default_factory=dict)

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
    if _runs_what_it_writes(commands, found):
        found.doubts.append("it runs a file that it writes")
    return ShellText(
        commands,
        tuple(found.writes),
        tuple(found.reads),
        tuple(found.doubts),
        tuple(found.taints),
        tuple(found.handed),
        tuple(found.functions),
        {name: tuple(values) for name, values in found.variables.items()},
    )


def _runs_what_it_writes(commands: Iterable[Command], found: Findings) -> bool:
    names = (command.words[0] for outer in commands for command in outer.all() if "/" in command.words[0].text)
    written = {normpath(word.text) for word in found.writes}
    return any(normpath(word.text) in written for word in (*names, *found.scripts))


def _read(text: str, found: Findings, depth: int) -> tuple[Command, ...]:
    """Read `text`, add what it touches to `found`, and return its commands."""
    inside = Findings()
    read_commands(text, inside, depth)
    commands = [command for simple in inside.commands for command in _Unwrapper(simple, inside, depth).commands()]
    found.writes += inside.writes
    found.reads += inside.reads
    found.doubts += inside.doubts
    found.taints += inside.taints
    found.handed += inside.handed
    found.scripts += inside.scripts
    found.functions += inside.functions
    for name, values in inside.variables.items():
        found.assign(name, *values)
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
        followed = self._follow(words, 0)
        self._note_stdin(followed)
        return [followed, *self._later]

    def _note_stdin(self, command: Command) -> None:
        stdin = self.simple.stdin
        if stdin is not None:
            text = Word(stdin.body, stdin.exact) if isinstance(stdin, Heredoc) else stdin
            program = list(command.all())[-1].words[0].text
            self.found.handed.append(Handed(basename(program), text))

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
        if name in STARTING:
            return self._starting(plain, STARTING[name])
        if name in SPECIAL:
            return SPECIAL[name](self, plain, level)
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
        for startup in option_values(words[: split.index], _STARTUP):
            note_script(startup, self.found)
        operands = words[split.index :]
        if operands and operands[0].text == "-":  # for a shell, this ends the options as -- does
            operands = operands[1:]
        if "-c" in split.seen and operands:
            self._check_dialect(operands[0])
            return replace(plain, inner=self._text(operands[:1]), transparent=True)
        if "-c" in split.seen or plain.open_ended:
            self._doubt(f"the script of {words[0].text} is known only when it runs")
        elif operands and "-s" not in split.seen:
            note_script(operands[0], self.found)
        elif not _SHELL.queries & split.seen.keys():
            return replace(plain, inner=self._standard_input(), transparent=True)
        return plain

    def _check_dialect(self, script: Word) -> None:
        if "$'" in script.text and basename(self.simple.words[0].text) != "bash":
            self._doubt("shells differ in how they read $'...'")

    def _standard_input(self) -> tuple[Command, ...]:
        stdin = self.simple.stdin
        if isinstance(stdin, Heredoc):
            return self._text([Word(stdin.body, stdin.exact)])
        if stdin is not None:
            return self._text([stdin])
        if self.simple.source is None:
            self._doubt("a shell reads what it runs from its standard input")
        else:
            note_script(self.simple.source, self.found)
        return ()

    def _eval(self, plain: Command, _level: int) -> Command:
        return replace(plain, inner=self._text(_after_dashes(plain.words)), transparent=True)

    def _trap(self, plain: Command, _level: int) -> Command:
        return replace(plain, inner=self._text(_after_dashes(plain.words)[:1]), transparent=True)

    def _source(self, plain: Command, _level: int) -> Command:
        for operand in _after_dashes(plain.words)[:1]:
            note_script(operand, self.found)
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
                inner.append(self._follow(_placeholders(_until_end(words[index + 1 :]), "{", "found"), level + 1))
        if any(word.splits for word in words[1:]):
            self._doubt(f"what {words[0].text} runs is known only when it runs")
        return replace(plain, inner=tuple(inner), inner_at=first if len(inner) == 1 else None)

    def _opaque(self, plain: Command, _level: int) -> Command:
        self._doubt(f"what {plain.words[0].text} runs is not followed")
        return plain

    def _history(self, plain: Command, level: int) -> Command:
        return self._opaque(plain, level) if len(plain.words) > 1 else plain

    def _set(self, plain: Command, level: int) -> Command:
        """`set` with history expansion makes commands of `!!` and its like."""
        options = takewhile(lambda word: word.text not in ("--", "-"), plain.words[1:])
        risky = any(not word.exact or word.text == "histexpand" or "H" in word.text for word in options)
        return self._opaque(plain, level) if risky else plain

    def _starting(self, plain: Command, options: frozenset[str]) -> Command:
        """Programs with options whose value is a command."""
        values = [replace(word, text=word.text.removeprefix("exec=")) for word in option_values(plain.words, options)]
        return replace(plain, inner=tuple(command for value in values for command in self._text((value,))))

    def _git(self, plain: Command, level: int) -> Command:
        """Follow `git`: settings that are commands, and subcommands that run what they are given."""
        words = plain.words
        split = option_end(words, 1, GIT_OPTIONS)
        inner = [command for word in _settings(words[: split.index]) for command in self._setting(word)]
        if not split.sure:
            self._doubt("the options of git are not all known")
        operands = words[split.index :]
        name = operands[0].text if operands else ""
        inner_at = None
        if name == "bisect" and len(operands) > 2 and operands[1].text == "run":
            inner_at = split.index + 2
            inner.append(self._follow(words[inner_at:], level + 1))
        elif name == "submodule" and "foreach" in [word.text for word in operands[1:3]]:
            script = [word for word in operands[1:] if word.text not in ("foreach", "--recursive", "--quiet", "-q")]
            inner += self._text(script)
        for value in option_values(operands[1:], GIT.get(name, frozenset())):
            inner += self._text((value,))
        return replace(plain, inner=tuple(inner), inner_at=inner_at)

    def _setting(self, word: Word) -> tuple[Command, ...]:
        text = command_of_setting(word.text)
        name, equals, _ = word.text.partition("=")
        if text is None and (word.exact or (equals and not set(name) & set("$`*?[{~"))):
            return ()
        return self._text((replace(word, text=text if text is not None else word.text),))


def _after_dashes(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the arguments of a builtin that takes `--` before them."""
    return words[2:] if len(words) > 1 and words[1].text == "--" else words[1:]


def _settings(words: tuple[Word, ...]) -> list[Word]:
    return [value for option, value in pairwise(words) if option.text == "-c"]


def _placeholders(
    words: Iterable[Word], marks: Iterable[str], kind: Literal["found", "unknown"] = "unknown"
) -> tuple[Word, ...]:
    """Mark the words as unknown in which something is put in the place of a mark when the command runs."""
    unknown = (Piece(kind, ""),)
    found = tuple(marks)
    return tuple(
        replace(word, exact=False, pieces=unknown) if any(mark in word.text for mark in found) else word
        for word in words
    )


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
_STARTUP = frozenset({"--rcfile", "--init-file"})
SPECIAL: dict[str, Callable[[_Unwrapper, Command, int], Command]] = {
    "eval": _Unwrapper._eval,
    "trap": _Unwrapper._trap,
    "source": _Unwrapper._source,
    ".": _Unwrapper._source,
    "git": _Unwrapper._git,
    "set": _Unwrapper._set,
    "history": _Unwrapper._history,
    "find": partial(_Unwrapper._actions, starters=frozenset({"-exec", "-execdir", "-ok", "-okdir"})),
    "fd": partial(_Unwrapper._actions, starters=frozenset({"-x", "--exec", "-X", "--exec-batch"})),
    **dict.fromkeys(("su", "sg", "script", "flock", "runuser"), _Unwrapper._dash_c),
    **dict.fromkeys(("parallel", "sem", "at", "batch", "tmux", "screen"), _Unwrapper._opaque),
    **dict.fromkeys(("alias", "enable", "hash", "bind", "complete", "compgen", "fc"), _Unwrapper._opaque),
}
