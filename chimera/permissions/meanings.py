"""What the words of a shell text may stand for: variables that it sets, wildcards, and the folders that it enters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from glob import escape, iglob
from itertools import islice, pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from chimera.permissions.paths import expanded
from chimera.permissions.shell.braces import expand
from chimera.permissions.shell.wrappers import SHELLS, basename

if TYPE_CHECKING:
    from chimera.permissions.shell import ShellText
    from chimera.permissions.shell.findings import Piece, Word

__all__ = ["Meanings", "Value"]

_WILDCARD = re.compile(r"[*?\[]")
_CLASSES = re.compile(r"\[[^/]*\]")
_ESCAPED = re.compile(r"\[([*?\[])\]")  # as glob.escape writes it
_SPACE = re.compile(r"[ \t\n]+")
_TILDE = re.compile(r"~(?:(\+)(?=/|\Z)|[-+\d])")
_SHELL_OPTIONS = frozenset({"shopt", "GLOBIGNORE", "BASHOPTS"})
_MAX_ALTERNATIVES = 64
_MAX_MATCHES = 1_000
_MAX_FOLDERS = 16
_MAX_DEPTH = 6
_HERE = frozenset({"pwd", "pwd -P", "pwd -L", "/bin/pwd"})
_TOP = "git rev-parse --show-toplevel"
_GOING = frozenset({"cd", "pushd"})
_TAR_FOLDER = re.compile(r"-[A-Za-z]+C\Z|[A-Za-z]*C[A-Za-z]*\Z")
_FOLDER_OPTIONS = frozenset({"-C", "--directory", "--chdir", "--cwd"})
_OTHER_C = frozenset(
    {"grep", "egrep", "fgrep", "rg", "diff", "curl", "bash", "sh", "set", "gcc", "g++", "cc", "ssh", "ruff"}
)


class Value(NamedTuple):
    """A value of a word. With `glob` it is a pattern."""

    text: str
    glob: bool = False


class Meanings:
    """Tells the values of words. `bases` are the folders that relative paths may start from; with `lost` it may be any.

    A value may be told that the word never has; none that it may have is left out.
    """

    def __init__(self, text: ShellText, root: Path) -> None:
        self.text = text
        self.bases: tuple[Path, ...] = (root,)
        self.lost = False
        programs = {command.words[0].text for command in text.all()}
        self._options = bool(_SHELL_OPTIONS & (programs | text.variables.keys())) or any(
            word.text in ("-O", "+O")
            for command in text.all()
            if basename(command.words[0].text) in SHELLS
            for word in command.words[1:]
        )
        self._redefined = bool({"pwd", "git", "cd"} & set(text.functions)) or "alias" in programs
        for command in text.all():
            self._enter(command.words)

    def values(self, word: Word, depth: int = 0) -> list[Value] | None:
        """Return what `word` may stand for; None when that cannot be told. Nothing is left of an empty word."""
        if word.text[:1] == "~" and self._sets("HOME"):
            return None
        if word.exact:  # one like ~+ that is, stood behind an equals sign
            return None if _TILDE.match(word.text) else [Value(word.text)]
        if not word.pieces or depth > _MAX_DEPTH or _grows(word.pieces):
            return None
        choices = [self._choices(piece, depth) for piece in word.pieces]
        known = [choice for choice in choices if choice is not None]
        size = 1
        for choice in known:
            size *= len(choice)
        if len(known) < len(choices) or size > _MAX_ALTERNATIVES:
            return None
        return self._joined(word, known)

    def _joined(self, word: Word, choices: list[list[Value]]) -> list[Value] | None:
        splits = any(piece.splits for piece in word.pieces)
        found: dict[Value, None] = {}
        for parts in product(*choices):
            glob = any(part.glob for part in parts)
            text = "".join(part.text if part.glob or not glob else escape(part.text) for part in parts)
            if splits and len(parts) > 1 and _SPACE.search(text):
                return None
            pieces = [text, *_SPACE.split(text)] if splits else [text]
            for piece in pieces:
                expansions = self._expanded(piece) if glob else [piece]
                if expansions is None:
                    return None
                found.update({Value(text, bool(glob and _WILDCARD.search(text))): None for text in expansions if text})
        return list(found)

    def _expanded(self, text: str) -> list[str] | None:
        tilde = _TILDE.match(text)
        if tilde is not None:
            if not tilde[1] or self._sets("PWD"):
                return None
            text = "." + text[2:]
        words = expand(text)
        return None if words is None else list(dict.fromkeys((text, *words)))

    def _choices(self, piece: Piece, depth: int) -> list[Value] | None:
        if piece.kind == "text":
            return [Value(piece.written)]
        if piece.kind == "glob":
            return [Value(piece.written, True)]
        if piece.kind == "output":
            return self._printed(piece.name.strip())
        return self._variable(piece, depth) if piece.kind == "variable" else None

    def _printed(self, command: str) -> list[Value] | None:
        if self._redefined or self.lost:
            return None
        if command in _HERE:
            return [Value(str(base)) for base in self.bases]
        if command == _TOP:
            return [Value(str(_repository(base))) for base in self.bases]
        return None

    def _sets(self, name: str) -> bool:
        return name in self.text.variables or "" in self.text.variables

    def _variable(self, piece: Piece, depth: int) -> list[Value] | None:
        name = piece.name
        if not self._sets(name):
            if name == "HOME":
                return [Value(expanded("~"))]
            return [Value(str(base)) for base in self.bases] if name == "PWD" and not self.lost else None
        if "" in self.text.variables:
            return None
        found = [Value("")]
        for word in self.text.variables[name]:
            values = None if word is None else self.values(word, depth + 1)
            paths = None if values is None else [self.paths(value) for value in values]
            if values is None or paths is None or None in paths:
                return None
            found += [*values, *(Value(path) for several in paths for path, _ in several or ())]
        if any(_TILDE.match(value.text) for value in found):
            return None
        return [*dict.fromkeys(self._quoted(value, piece) for value in found)]

    @staticmethod
    def _quoted(value: Value, piece: Piece) -> Value:
        """Within quotes a pattern stays as it is; without, what looks like one becomes one."""
        return Value(expanded(value.text), value.glob or bool(piece.splits and _WILDCARD.search(value.text)))

    def _enter(self, words: tuple[Word, ...]) -> None:
        program = words[0].text.rsplit("/", 1)[-1]
        if program in _GOING:
            operands = [word for word in words[1:] if word.text not in ("-P", "-L", "-e", "-n", "--")]
            if operands:
                self._go(operands[-1])
            else:
                self._add([expanded("~")] if not self._sets("HOME") else None)
            self.lost = self.lost or self._sets("CDPATH") or "cd" in self.text.functions
        self.lost = self.lost or (program == "find" and any(word.text in ("-execdir", "-okdir") for word in words))
        for target in _entered(words, program):
            self._go(target)

    def _go(self, target: Word) -> None:
        values = self.values(target)
        if values is None or target.text.startswith(("-", "+")) or "\0" in target.text:
            self._add(None)
            return
        self._add([path for value in values for path, _ in self.paths(value) or ()])

    def _add(self, targets: list[str] | None) -> None:
        if targets is None:
            self.lost = True
            return
        more = [folder / expanded(target) for target in targets for folder in self.bases]
        bases = tuple(dict.fromkeys((*self.bases, *more)))
        self.lost = self.lost or len(bases) > _MAX_FOLDERS
        self.bases = bases[:_MAX_FOLDERS]

    def paths(self, value: Value) -> list[tuple[str, bool]] | None:
        """Return the paths that a value stands for now, and whether that is certain; None when they cannot be told."""
        if not value.glob or "\0" in value.text:
            return [(value.text, True)]
        if self._options or "(" in value.text:
            return None
        pattern = expanded(value.text)
        sure = self._matches(pattern.replace("[^", "[!"))
        # Shells and Python read brackets in different ways, so any name may be meant by them.
        wide = self._matches(_CLASSES.sub("*", pattern)) if "[" in pattern else []
        if len(sure) > _MAX_MATCHES or len(wide) > _MAX_MATCHES:
            return None
        return [
            (_ESCAPED.sub(r"\1", value.text), True),
            *((path, True) for path in sure),
            *((path, False) for path in wide),
        ]

    def _matches(self, pattern: str) -> list[str]:
        """Return a bounded number of files that a pattern matches. As in shells, `*` passes over hidden ones."""
        found = (name for base in self.bases for name in iglob(pattern, root_dir=base))  # noqa: PTH207
        return list(islice(found, _MAX_MATCHES + 1))


def _entered(words: tuple[Word, ...], program: str) -> Iterator[Word]:
    """Yield the folders that a program is told to work in."""
    options = _FOLDER_OPTIONS | {"-D"} if program == "sudo" else _FOLDER_OPTIONS
    if program in _OTHER_C:
        return
    for index, word in enumerate(words):
        name, equals, _ = word.text.partition("=")
        if index and word.text in options:
            yield from words[index + 1 : index + 2]
        elif index and equals and name in options:
            yield word.after(len(name) + 1)
        elif index and word.text.startswith("-C"):
            yield word.after(2)
        elif program == "tar" and index and _TAR_FOLDER.match(word.text):
            yield from words[index + 1 :] if word.text[0] != "-" else words[index + 1 : index + 2]


def _grows(pieces: tuple[Piece, ...]) -> bool:
    """Tell whether braces put more letters behind the name of a variable: `$x{a,b}` is `$xa $xb`."""
    return any(
        piece.kind == "variable" and piece.written[:2] != "${" and after.kind == "glob" and after.written[0] in "{,}"
        for piece, after in pairwise(pieces)
    )


def _repository(folder: Path) -> Path:
    found = (place for place in (folder, *folder.parents) if (place / ".git").exists())
    return next(found, folder)
