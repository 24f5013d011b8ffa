"""Programs that stand among the words of another program, which may run them in a way that is not followed.

Nobody knows all programs that run programs. So each counts as one that may, but for those known to take their words as
data, and those whose way of running others is followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from chimera.permissions.shell.commands import SPECIAL, Command, ShellText
from chimera.permissions.shell.findings import Word
from chimera.permissions.shell.starting import GIT_OPTIONS
from chimera.permissions.shell.wrappers import SHELLS, WRAPPERS, basename, option_end

__all__ = ["mentioned"]

_BREAK = re.compile(r"[\s'\"`;|&(){}<>$=,:!\\]+")
_SHORT = re.compile(r"-[A-Za-z](?=[^-])")
_PROGRAM_FILE = re.compile(r"/s?bin/[^/]+\Z")


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PLAIN_GIT = _set(
    "add annotate am apply blame branch cat-file cherry-pick checkout clean commit describe diff fetch format-patch gc"
    " init log ls-files ls-tree merge mv notes pull push reflog remote reset restore rev-list rev-parse revert rm"
    " shortlog show sparse-checkout stash status switch tag"
)
_WITH_SUBCOMMANDS = _set("docker podman kubectl helm aws gcloud az gh glab go nvm")
_PACKAGES = _set("apt apt-get apt-cache brew dnf yum apk pacman pip pip3 conda mamba snap npm pnpm yarn uv cargo")
_ABOUT_PACKAGES = _set("add download info install list policy purge remove search show uninstall update")
_FINDERS = frozenset({"find", "fd"})
_DATA = _set(
    "[ : basename cat cd chgrp chmod chown cksum cmp column comm curl cut date declare df diff dirname du echo egrep"
    " exit export expr false fgrep file fmt fold free grep groups head hostname id jobs jq join kill killall let"
    " local ls md5sum mkdir mktemp nl od paste pgrep pidof pkill popd printenv printf ps pushd pwd read readlink"
    " readonly realpath return rev rm rmdir seq set sha1sum sha256sum sha512sum shift shopt shred shuf sleep stat tac"
    " tail tee test touch tr tree true truncate type typeset ulimit umask uname uniq unset uptime wait wc whereis which"
    " whoami yes"
)
_COPIES_INPUT = frozenset({"cat", "head", "tail", "tee", "tac"})


def mentioned(words: Sequence[str], text: ShellText) -> bool:
    """Say whether a command in `text` may run the program `words[0]` with the other words among its arguments.

    A `*` in a word stands for any characters.
    """
    return any(_names(words, tokens, loose=loose) for tokens, loose in _sayings(text))


def _names(words: Sequence[str], tokens: Sequence[str], *, loose: bool) -> bool:
    program = basename(words[0])
    if not any(fnmatchcase(basename(token), program) for token in tokens):
        return False
    wanted = {word for word in words[1:] if not word.startswith("-") and "*" not in word}
    return loose or wanted <= set(tokens)


def _sayings(text: ShellText) -> Iterator[tuple[list[str], bool]]:
    """Yield what could be a command line within each command, as tokens, and whether some of it is not known."""
    for command in text.all():
        words = _open_words(command)
        loose = command.open_ended or not all(word.exact for word in words)
        yield list(_tokens(words)), loose
    for handed in text.handed:
        if handed.program not in _DATA | SHELLS | {"git"}:
            yield list(_tokens((handed.word,))), not handed.word.exact
    yield [word.text for word in text.reads if _PROGRAM_FILE.search(word.text)], True


def _tokens(words: Iterable[Word]) -> Iterator[str]:
    for word in words:
        for token in filter(None, _BREAK.split(word.text)):
            yield token
            if _SHORT.match(token):
                yield token[2:]


def _open_words(command: Command) -> tuple[Word, ...]:
    """Return the words that the program is not known to take as data, and that have not been followed."""
    words, name = command.words, basename(command.words[0].text)
    if name in _DATA:
        return tuple(word for word in words[1:] if name in _COPIES_INPUT and _PROGRAM_FILE.search(word.text))
    if name == "git":
        return _words_of_git(words)
    if name == "ssh":
        return words[1:]
    if command.inner_at and name not in _FINDERS:
        return words[1 : command.inner_at]
    if command.inner and (name in WRAPPERS or name in SHELLS):
        return ()
    if name == "command" or (name in SPECIAL and name not in ("source", ".")):
        return ()
    return _without_subcommand(words, name)


def _without_subcommand(words: tuple[Word, ...], name: str) -> tuple[Word, ...]:
    """Leave out a word that is a subcommand, and the packages that a package manager is told of."""
    first = words[1].text if len(words) > 1 and words[1].exact else ""
    if name in _PACKAGES and first in _ABOUT_PACKAGES and not any(word.text in ("-o", "-c") for word in words):
        return ()
    return words[2:] if name in _PACKAGES | _WITH_SUBCOMMANDS and first else words[1:]


def _words_of_git(words: tuple[Word, ...]) -> tuple[Word, ...]:
    split = option_end(words, 1, GIT_OPTIONS)
    operands = words[split.index :]
    if split.sure and operands and operands[0].text in _PLAIN_GIT:
        return ()
    return operands[1:]
