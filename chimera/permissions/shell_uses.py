"""What the commands of a shell text do to files, as far as their words tell.

A use is certain where the program is known to do just that with a word, and possible where it could.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import dropwhile, pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from chimera.permissions.shell.starting import GIT_OPTIONS
from chimera.permissions.shell.wrappers import SHELLS, WRAPPERS, basename, option_end

if TYPE_CHECKING:
    from chimera.permissions.shell import Command, ShellText
    from chimera.permissions.shell.findings import Word

__all__ = ["DEVICES", "Use", "changes", "fragments", "readings"]

Kind = Literal["file", "parts", "tree", "below", "copy", "more"]


class Use(NamedTuple):
    """One word and what it is to a command.

    - `file`: the path itself; certain with `sure`. With `known` it counts only where its value is known.
    - `parts`: a text with a path somewhere in it.
    - `tree`: a folder of which everything below is meant too; with `names`, only files of such names.
    - `below`: a folder somewhere below which files are written that nobody names.
    - `copy`: what stands in `word` goes to `target`, or below it.
    - `more`: words that are not there yet.
    """

    kind: Kind
    word: Word
    sure: bool = False
    known: bool = False
    target: Word | None = None
    names: tuple[str, ...] = ()


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


DEVICES = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"})
_SILENT = _set(
    "echo printf : true false test [ export local declare typeset readonly unset read mapfile readarray set shift exit"
    " return kill wait sleep type which trap eval alias hash let ulimit umask date dirname basename seq expr history"
)
_REMOVING = _set("rm rmdir unlink shred touch truncate mkdir chmod chown chgrp")
_WRITING = _REMOVING | {"tee", "mv", "dd", "patch"}
_COPYING = _set("cp ln install rsync scp mv")
_IN_PLACE = _set("sed gsed perl ruby awk gawk")
_READERS = _SILENT | _set(
    "cat tac head tail grep egrep fgrep ls wc stat file diff cmp comm cut tr nl od rev paste fold strings md5sum"
    " sha1sum sha256sum sha512sum cksum du df cd pushd popd pwd realpath readlink jq source . fmt column find fd"
    " hexdump ag ack rg whereis id ps pgrep env printenv"
)
_CHECKERS = _set("pytest mypy pyright flake8 pylint tsc python python3 node ruby perl php awk gawk mawk sed gsed git")
_GIT_READS = _set(
    "add annotate blame branch cat-file cherry check-ignore commit describe diff fetch for-each-ref grep log ls-files"
    " ls-remote ls-tree merge-base name-rev push reflog remote rev-list rev-parse shortlog show stash status tag"
)
_GIT_SPREADS = _set("apply am")
_SCRIPTED = _set("python python3 node ruby perl php awk gawk mawk sed gsed")
_CODE_OPTION = re.compile(r"-[A-Za-z0-9]*[ceEr]\Z|--expression|--eval|--source")
_SCRIPT_FIRST = _set("sed gsed awk gawk mawk")
_UNPACKING = _set("unzip 7z 7za 7zr unrar cpio patch")
_TAR_UNPACKS = re.compile(r"-?[A-Za-z]*x[A-Za-z]*\Z|--extract\Z|--get\Z")
_TREES = _set("tar zip 7z 7za rsync scp ln mv rg ag ack rgrep")
_TREES_WITH = {
    "cp": re.compile(r"-[A-Za-z]*[rRa]|--rec|--arch"),
    "grep": re.compile(r"-[A-Za-z]*[rR]|--(?:deref.*-)?rec|--directories=recurse|-d"),
    "diff": re.compile(r"-[A-Za-z]*r|--rec"),
}
_TREES_REMOVED = {
    "rm": re.compile(r"-[A-Za-z]*[rR]|--rec"),
    "chmod": re.compile(r"-[A-Za-z]*R|--rec"),
    "chown": re.compile(r"-[A-Za-z]*R|--rec"),
    "chgrp": re.compile(r"-[A-Za-z]*R|--rec"),
}
_TARGET_OPTION = re.compile(r"-[A-Za-z]*t\Z|--t(?:a(?:r(?:g.*)?)?)?\Z")
_MESSAGES = {
    "git": re.compile(r"-[A-Za-z]*m\Z|--(?:message|trailer|author|date)\Z"),
    "gh": re.compile(r"-[bt]\Z|--(?:body|title)\Z"),
}
_MESSAGE = re.compile(r"-m.|--(?:message|trailer|author|date|body|title)=")
_WITH_MESSAGES = _set("commit tag merge notes stash pr issue release")
_PIECES = re.compile(r"[\s'\"`;,:|&<>()\[\]{}=@!]+")
_LEADS = re.compile(r"[~/]|\.\.?/")
_MAX_FRAGMENTS = 2_000


def readings(text: ShellText) -> Iterator[Use]:
    """Yield what a shell text may read: files that are redirected in, and what its programs are told of."""
    yield from (Use("file", word, sure=True) for word in text.reads)
    yield from _code_on_stdin(text)
    for command in text.all():
        program = basename(command.words[0].text)
        if _is_wrapping(command, program):
            yield from (Use("file", word, sure=True, known=True) for word in command.words[1 : command.inner_at or 1])
        elif program not in _SILENT | _REMOVING:
            yield from _read(command, program)
        if program in ("find", "fd") and command.inner:
            yield from _searched(command)


def changes(text: ShellText) -> Iterator[Use]:
    """Yield what a shell text may change: files that are redirected to, and what its programs are told of."""
    yield from (Use("file", word, sure=True) for word in text.writes if word.text not in DEVICES)
    yield from _code_on_stdin(text)
    for command in text.all():
        program = basename(command.words[0].text)
        if _is_wrapping(command, program):
            yield from (Use("parts", word, known=True) for word in command.words[1 : command.inner_at or 1])
        else:
            yield from _changed(command, program)


def fragments(text: str) -> list[str] | None:
    """Return the parts of a text that could be paths; None when there are too many to look at."""
    found: dict[str, None] = {}
    for piece in filter(None, _PIECES.split(text)):
        found.update({piece: None, piece[1:]: None})
        if piece[0] == "-" and piece[1:2] not in ("", "-"):
            found.update(dict.fromkeys(piece[cut:] for cut in (2, 3, 4)))
        found.update({piece[match.start() :]: None for match in _LEADS.finditer(piece)})
    found.pop("", None)
    return None if len(found) > _MAX_FRAGMENTS else list(found)


def _code_on_stdin(text: ShellText) -> Iterator[Use]:
    for handed in text.handed:
        if handed.program in _SCRIPTED | {"ed", "ex"}:
            yield Use("parts", handed.word if handed.word.pieces else replace(handed.word, exact=True))


def _is_wrapping(command: Command, program: str) -> bool:
    """Tell whether all that the command does is what the commands inside it do, which are judged by themselves."""
    return (bool(command.inner) and (program in WRAPPERS or program in SHELLS)) or program in ("eval", "trap")


def _read(command: Command, program: str) -> Iterator[Use]:
    going = program in ("cd", "pushd")
    for word in _words(command, program):
        yield from (Use("file", operand, sure=True, known=going) for operand in _operands(word))
        yield Use("parts", word, known=going)
    if command.open_ended:
        yield Use("more", command.words[0])
    trees = _TREES_WITH.get(program)
    if program in _TREES or (trees is not None and _has(command, trees)):
        folders = [word for word in command.words[1:] if not word.text.startswith("-")]
        yield from (Use("tree", word, names=_names(command, "--include")) for word in folders)


def _searched(command: Command) -> Iterator[Use]:
    """Yield the folders in which `find` looks for the files that it hands to other commands."""
    words = command.words[1:]
    start = [word for word in words[: _first_test(words)] if not word.text.startswith("-")]
    plain = not any(word.text in ("-o", "-or", "!", "-not", "(", ",", "-L", "-follow") for word in words)
    names = _names(command, "-name") if plain else ()
    yield from (Use("tree", word, names=names) for word in start)
    if not start or command.words[0].text == "fd":
        yield Use("tree", type(command.words[0])("."), names=names)
    if any(word.text in ("-L", "-follow", "-files0-from") for word in words):
        yield Use("more", command.words[0])


def _first_test(words: tuple[Word, ...]) -> int:
    for index, word in enumerate(words):
        if word.text[:1] in ("-", "(", "!") and word.text not in ("-L", "-H", "-P"):
            return index
    return len(words)


def _names(command: Command, option: str) -> tuple[str, ...]:
    """Return the patterns that an option limits the names of files to; nothing where they are not all known."""
    words = command.words
    found = [after for word, after in pairwise(words) if word.text == option]
    found += [word.after(len(option) + 1) for word in words if word.text.startswith(f"{option}=")]
    known = all(word.exact or not set(word.text) & set("$`~{[\\(") for word in found)
    return tuple(word.text for word in found) if known else ()


def _changed(command: Command, program: str) -> Iterator[Use]:
    if program in _COPYING:
        yield from _copied(command, program)
    if program in _WRITING or (program in _IN_PLACE and _edits_in_place(command)):
        yield from (Use("file", word, sure=True) for given in command.words[1:] for word in _operands(given))
    elif program not in _READERS | _COPYING:
        yield from _may_change(command, program)
    trees = _TREES_REMOVED.get(program)
    if program == "mv" or (trees is not None and _has(command, trees)):
        yield from (Use("tree", word) for word in command.words[1:] if not word.text.startswith("-"))
    if program in ("find", "fd"):
        changing = any(not _only_reads(inner, basename(inner.words[0].text)) for inner in command.inner)
        yield from _searched(command) if changing or _has(command, re.compile("-delete")) else ()
        yield from (Use("file", word) for word in _values(command, re.compile("-f(?:print.*|ls)")))
    if command.open_ended and not _only_reads(command, program):
        yield Use("more", command.words[0])
    if _unpacks(command, program):
        yield Use("below", command.words[0])


def _only_reads(command: Command, program: str) -> bool:
    """Tell whether a command changes none of the files that are its operands."""
    if program == "git":
        return _git_name(command) in _GIT_READS
    return program in _READERS | (_CHECKERS - _IN_PLACE) or (program in _IN_PLACE and not _edits_in_place(command))


def _copied(command: Command, program: str) -> Iterator[Use]:
    """Follow programs that put what their first operands name at, or below, the place that the last one names."""
    operands = [word for word in command.words[1:] if not word.text.startswith("-")]
    targets = [*_values(command, _TARGET_OPTION), *operands[-1:]]
    targets += [word.after(2) for word in command.words[1:] if re.match(r"-t.", word.text)]
    for target in targets:
        yield Use("file", target, sure=True)
        yield from (Use("copy", source, target=target) for source in operands if source is not target)
    for word in command.words[1:]:
        if word.text.startswith("--") and "=" in word.text:
            yield Use("file", word.after(word.text.index("=") + 1), sure=True)
    if _last_is_unclear(command, program):
        yield from (Use("file", word) for word in operands)
    if program == "ln":
        yield from (Use("tree", word) for word in operands)


def _last_is_unclear(command: Command, program: str) -> bool:
    """Tell whether the last operand may be the value of an option, or all of them are targets."""
    leading = list(dropwhile(lambda word: word.text.startswith("-"), command.words[1:]))
    late = any(word.text.startswith("-") and word.text != "--" for word in leading)
    return late or (program == "install" and _has(command, re.compile("-[A-Za-z]*d|--dir")))


def _may_change(command: Command, program: str) -> Iterator[Use]:
    """Yield what a program could write to of which it is not known that it does not."""
    words = _words(command, program)
    if program == "git":
        yield from (Use("parts", word) for word in command.words[1 : _subcommand(command)])
        if _git_name(command) == "config" and not _has(command, re.compile("--get|--list|-l|--global|--system")):
            yield Use("file", replace(command.words[0], text=".git/config"))
        if _git_name(command) not in _GIT_READS:
            yield from (use for word in words for use in (Use("file", word), Use("parts", word)))
            return
    if program in _CHECKERS | SHELLS:
        yield from (Use("parts", word) for word in _values(command, re.compile("--.")) if word in words)
        yield from (Use("parts", word) for word in words if word.text.startswith("--") and "=" in word.text)
        yield from (Use("parts", word) for word in _code(command, program))
        return
    yield from (use for word in words for use in (Use("file", word), Use("parts", word)))


def _code(command: Command, program: str) -> Iterator[Word]:
    """Yield the words that are programs in the language of an interpreter."""
    if program not in _SCRIPTED:
        return
    values = list(_values(command, _CODE_OPTION))
    yield from values
    if program in _SCRIPT_FIRST and not values:
        yield from [word for word in command.words[1:] if not word.text.startswith("-")][:1]


def _unpacks(command: Command, program: str) -> bool:
    if program in ("tar", "bsdtar"):
        words = command.words
        return any(_TAR_UNPACKS.match(word.text) for word in words[1:2]) or _has(command, _TAR_UNPACKS)
    return program in _UNPACKING or (program == "git" and _git_name(command) in _GIT_SPREADS)


def _words(command: Command, program: str) -> list[Word]:
    """Return the arguments that may be about files: all but the messages that a program is given."""
    pattern = _MESSAGES.get(program)
    words = command.words[1:]
    if pattern is None or not any(word.text in _WITH_MESSAGES for word in words[:6]):
        return list(words)
    found, skip = [], False
    for word in words:
        if not skip and not _MESSAGE.match(word.text):
            found.append(word)
        skip = not skip and bool(pattern.match(word.text))
    return found


def _operands(word: Word) -> Iterator[Word]:
    """Yield an operand, the value in `--name=value` and `of=value`, and what stands behind the @ of `@file`."""
    name, equals, _ = word.text.partition("=")
    if equals and re.fullmatch(r"-{0,2}[\w-]+", name):
        yield word.after(len(name) + 1)
    if not word.text.startswith("-"):
        yield word.after(1) if word.text.startswith("@") else word


def _values(command: Command, option: re.Pattern[str]) -> Iterator[Word]:
    """Yield the words that follow an option."""
    words = command.words[1:]
    yield from (after for word, after in pairwise(words) if option.match(word.text))


def _has(command: Command, option: re.Pattern[str]) -> bool:
    return any(word.text.startswith("-") and option.match(word.text) for word in command.words[1:])


def _edits_in_place(command: Command) -> bool:
    options: Iterable[Word] = (word for word in command.words[1:] if word.text.startswith("-"))
    if basename(command.words[0].text) in ("awk", "gawk"):
        return any("inplace" in word.text for word in command.words[1:])
    return any(re.match(r"--i|-(?![-IMm])[A-Za-z0-9.]*i", word.text) for word in options)


def _subcommand(command: Command) -> int:
    return option_end(command.words, 1, GIT_OPTIONS).index


def _git_name(command: Command) -> str:
    index = _subcommand(command)
    return command.words[index].text if index < len(command.words) else ""
