"""Matching commands against the pattern of a rule such as `Bash(git status:*)`.

Two readings of one pattern. A rule that forbids is read loosely: folders and case of the program's name do not matter,
options may stand between its words, and a word that is not known may be the one that is forbidden. A rule that permits
is read strictly: every word must be known and stand where the pattern has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chimera.errors import ConfigError
from chimera.permissions.match import Match
from chimera.permissions.shell.commands import Command, ShellText
from chimera.permissions.shell.findings import Findings, Word
from chimera.permissions.shell.mentions import mentioned
from chimera.permissions.shell.parser import read_commands
from chimera.permissions.shell.wrappers import basename

__all__ = ["ShellPattern", "covering", "may_start", "parse_pattern", "runs"]

_SYSTEM_FOLDERS = frozenset({"/bin", "/usr/bin"})
_COMMENT = re.compile(r"(?:\A|\s)#")
_CLUSTER = re.compile(r"-[A-Za-z]+\Z")


@dataclass(frozen=True, slots=True)
class ShellPattern:
    """The words of a rule. A `prefix` lets any words follow; `glob` is set when `*` stands inside them."""

    words: tuple[str, ...]
    prefix: bool
    glob: re.Pattern[str] | None = None


def parse_pattern(text: str) -> ShellPattern:
    """Read what stands in the parentheses of a `Bash(...)` rule.

    `git status` matches just that, `git status:*` and `git status *` that with anything behind it, and `*` elsewhere
    any run of characters. Raises `ConfigError` for a pattern that no command can match.
    """
    head, prefix = text.strip(), False
    for ending in (":*", " *"):
        if head.endswith(ending):
            head, prefix = head[: -len(ending)].strip(), True
            break
    words = _words_of(head)
    texts = tuple(word.text for word in words)
    if all(word.exact for word in words):
        return ShellPattern(texts, prefix)
    if any(set(word.text) & set("$`(") for word in words if not word.exact):
        raise ConfigError("variables and substitutions are not expanded in a rule")
    joined = " ".join(re.escape(word.text) if word.exact else _starred(word.text) for word in words)
    return ShellPattern(texts, prefix, re.compile(joined + (r"(?: .*)?\Z" if prefix else r"\Z"), re.DOTALL))


def _starred(text: str) -> str:
    return ".*".join(re.escape(part) for part in re.split(r"\*+", text))


def _words_of(text: str) -> list[Word]:
    found = Findings()
    read_commands(text, found)
    if _COMMENT.search(text):
        raise ConfigError("what follows # is a comment for the shell; quote it")
    if found.doubts:
        raise ConfigError(found.doubts[0])
    if len(found.commands) != 1 or not found.commands[0].words:
        raise ConfigError("a rule names one command; commands joined by ; & | or newlines are judged one by one")
    command = found.commands[0]
    if command.assignments or found.writes or found.reads or command.stdin:
        raise ConfigError("a rule names a command without assignments in front of it and without redirections")
    return command.words


def runs(pattern: ShellPattern, text: ShellText) -> Match:
    """Say whether `text` runs something that `pattern` forbids, wherever it hides."""
    unread = Match.MAYBE if text.doubts or may_start(pattern, text) else Match.NO
    return max(unread, *(_loose(pattern, command) for command in text.all()), unread)


def may_start(pattern: ShellPattern, text: ShellText) -> bool:
    """Say whether a command may start what `pattern` forbids in a way that is not followed."""
    return not pattern.words[0].startswith("*") and mentioned(pattern.words, text)


def covering(patterns: Sequence[ShellPattern], text: ShellText) -> list[ShellPattern]:
    """Return the patterns that together permit every command of `text`; none when one is left or is uncertain."""
    if text.doubts or text.taints:
        return []
    found = [_covering(patterns, command) for command in text.commands]
    return [pattern for used in found for pattern in used] if all(found) else []


def _covering(patterns: Sequence[ShellPattern], command: Command) -> list[ShellPattern]:
    """A pattern permits what a wrapper starts only when it names it; else the inner command needs its own."""
    matching = [pattern for pattern in patterns if _strict(pattern, command)]
    for pattern in matching:
        if not command.inner or _reaches(pattern, command):
            return [pattern]
    inner = [_covering(patterns, started) for started in command.inner]
    if not inner or not all(inner) or not (command.transparent or matching):
        return []
    return [*matching[:1], *(pattern for used in inner for pattern in used)]


def _reaches(pattern: ShellPattern, command: Command) -> bool:
    if pattern.glob is not None:
        return False
    return not pattern.prefix or (command.inner_at is not None and len(pattern.words) > command.inner_at)


def _strict(pattern: ShellPattern, command: Command) -> bool:
    words = command.words
    if not all(word.exact for word in words[: len(pattern.words)]) or not words:
        return False
    if pattern.glob is not None:
        return all(word.exact for word in words) and _same_program(words[0], pattern) and _globbed(pattern, words)
    if len(words) < len(pattern.words) or not _same_program(words[0], pattern):
        return False
    if any(word.text != expected for word, expected in zip(words[1:], pattern.words[1:], strict=False)):
        return False
    return pattern.prefix or (len(words) == len(pattern.words) and not command.open_ended)


def _same_program(word: Word, pattern: ShellPattern) -> bool:
    folder, _, name = word.text.rpartition("/")
    return word.text == pattern.words[0] or (folder in _SYSTEM_FOLDERS and name == pattern.words[0])


def _globbed(pattern: ShellPattern, words: Iterable[Word]) -> bool:
    return pattern.glob is not None and bool(pattern.glob.match(" ".join(word.text for word in words)))


def _loose(pattern: ShellPattern, command: Command) -> Match:
    words = command.words
    if pattern.glob is not None:
        return _loose_glob(pattern, command)
    if basename(words[0].text) != basename(pattern.words[0]) or not words[0].exact:
        return Match.NO if words[0].exact else Match.MAYBE
    if not pattern.prefix:
        return _whole(pattern.words[1:], command)
    options = [word for word in pattern.words[1:] if word.startswith("-")]
    operands = [word for word in pattern.words[1:] if not word.startswith("-")]
    return min(_operands(operands, command), _options(options, command))


def _loose_glob(pattern: ShellPattern, command: Command) -> Match:
    name = Word(basename(command.words[0].text))
    if _globbed(pattern, command.words) or _globbed(pattern, (name, *command.words[1:])):
        return Match.YES
    known = all(word.exact for word in command.words) and not command.open_ended
    return Match.NO if known else Match.MAYBE


def _whole(expected: Sequence[str], command: Command) -> Match:
    """Compare all words. From the first one that is not known, everything may follow."""
    words = command.words[1:]
    for index, word in enumerate(words):
        if not word.exact:
            return Match.MAYBE
        if index >= len(expected) or word.text != expected[index]:
            return Match.NO
    if len(words) == len(expected):
        return Match.YES
    return Match.MAYBE if command.open_ended else Match.NO


def _operands(expected: Sequence[str], command: Command) -> Match:
    """Look for the words in order; options and what may be their values can stand in between."""
    position, after_option, unsure = 0, False, False
    for word in command.words[1:]:
        if position == len(expected):
            break
        if not word.exact:
            unsure, after_option = True, False
        elif word.text == expected[position]:
            position, after_option = position + 1, False
        elif word.text.startswith("-"):
            after_option = True
        elif after_option:
            after_option = False
        else:
            return Match.MAYBE if unsure else Match.NO
    if position == len(expected):
        return Match.YES
    return Match.MAYBE if unsure or command.open_ended else Match.NO


def _options(expected: Sequence[str], command: Command) -> Match:
    """Look for the options anywhere, `-rf` as `-r -f` or `-fr` too, long ones also abbreviated or with a value."""
    words = command.words[1:]
    letters = {letter for word in words if word.exact and _CLUSTER.match(word.text) for letter in word.text[1:]}
    texts = [word.text.partition("=")[0] for word in words if word.exact]
    for option in expected:
        if _CLUSTER.match(option) and len(option) <= 4 and letters.issuperset(option[1:]):
            continue
        wanted = option.partition("=")[0]
        if not any(text == wanted or _abbreviates(text, wanted) for text in texts):
            return Match.MAYBE if command.open_ended or not all(word.exact for word in words) else Match.NO
    return Match.YES


def _abbreviates(text: str, option: str) -> bool:
    return len(text) > 3 and text.startswith("--") and option.startswith(text)
