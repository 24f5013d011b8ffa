"""Variables that change what commands do, and builtins that run code hidden in names and sums."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from chimera.permissions.shell.findings import Findings, Handed, Word

__all__ = ["DECLARING", "note_assignments", "note_evaluation", "note_script"]

_NAME = re.compile(r"([A-Za-z_]\w*)(\[)?[^=]*=(.*)", re.DOTALL)
_HARMLESS = re.compile(
    r"(?:LANG|LANGUAGE|LC_\w+|TZ|TERM|COLUMNS|LINES|NO_COLOR|FORCE_COLOR|CLICOLOR|CI|DEBUG|VERBOSE|NODE_ENV|RUST_LOG"
    r"|RUST_BACKTRACE|PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE|PYTHONHASHSEED|DEBIAN_FRONTEND)\Z"
)
_LOCAL = re.compile(r"(?!npm_config)[a-z_][a-z0-9_]*(?<!_proxy)\Z")  # by convention not exported
_RUN_LATER = re.compile(r"(?:PS[0-4]|VISUAL|BROWSER|\w*(?:COMMAND|PAGER|EDITOR|ASKPASS|EXTERNAL_DIFF|_SSH))\Z")
DECLARING = frozenset({"export", "declare", "typeset", "local", "readonly"})
_IDENTIFIER = re.compile(r"(?a)[A-Za-z_]\w*")
_PLAIN_OPTIONS = re.compile(r"--|-[grx]+")  # of declare; the others change values, or make a name stand for another
_REFERENCE = re.compile(r"-[A-Za-z]*n")  # of declare: one name stands for another
_RUNS_FILE = frozenset({"BASH_ENV", "ENV"})
_REDEFINES = frozenset({"BASH_ALIASES", "BASH_CMDS"})
_NAMING = DECLARING | {"read", "unset", "wait", "mapfile", "readarray", "getopts"}
_TESTING = frozenset({"test", "[", "printf"})


def note_assignments(assignments: Iterable[Word], found: Findings, *, exported: bool) -> list[str]:
    """Note what assignments change; return the values that some program will run as shell text.

    `exported` says that programs get to see them, whatever their names.
    """
    texts = []
    for word in assignments:
        match = _NAME.match(word.text)
        if match is None:
            continue
        name, subscript, value = match.groups()
        found.computes = found.computes or bool(subscript)
        if not _HARMLESS.match(name) and (exported or not _LOCAL.match(name)):
            found.taints.append(f"it sets {name}")
        set_to = word.after(len(word.text) - len(value))
        if exported:
            found.handed.append(Handed("", set_to))
        _note_startup(name, set_to, found)
        found.assign(name, set_to if word.text.startswith(f"{name}=") else None)
        if name == "IFS" and not (set_to.exact and not value.strip(" \t\n")):
            found.assign("", None)  # variables may fall into words anywhere
        if _RUN_LATER.match(name):
            texts.append(value)
    return texts


def _note_startup(name: str, value: Word, found: Findings) -> None:
    """Note the variables that name a file for a shell to run, or say what a command is."""
    if name in _REDEFINES:
        found.doubts.append(f"it sets {name}, which changes what commands are")
    if name in _RUNS_FILE:
        note_script(value, found)


def note_script(script: Word, found: Findings) -> None:
    """Note a file that a shell runs. What stands in it is not looked into, unless the text itself makes it."""
    found.scripts.append(script)
    if not script.exact or script.text.startswith(("/dev/", "/proc/")):
        found.doubts.append("the script that a shell runs is known only when it runs")


def note_evaluation(name: str, words: Sequence[Word], found: Findings) -> None:
    """Note the builtins that evaluate subscripts or sums in their arguments, which can run code."""
    arguments = words[1:]
    tests_name = name in _TESTING and any(word.text == "-v" for word in arguments)
    names_element = name in _NAMING and any(_is_element(word) for word in arguments)
    found.computes = found.computes or name == "let" or tests_name or names_element
    if name in _NAMING or (name == "printf" and any(word.text[:2] == "-v" or word.splits for word in arguments[:1])):
        _note_names(arguments, found)
    if name in DECLARING and any(_REFERENCE.match(word.text) for word in arguments):
        found.assign("", None)


def _note_names(arguments: Iterable[Word], found: Findings) -> None:
    """Note the variables that a builtin may give a value that nobody knows."""
    plain = True
    for word in arguments:
        match = _NAME.match(word.text)
        if match is None and not word.exact:
            found.assign("", None)
        elif match is None and _IDENTIFIER.fullmatch(word.text.partition("[")[0].removeprefix("-v")):
            found.assign(word.text.partition("[")[0].removeprefix("-v"), None)
        elif match is None:
            plain = plain and _PLAIN_OPTIONS.fullmatch(word.text) is not None
        else:
            value = word.after(len(word.text) - len(match[3]))
            found.assign(match[1], value if plain and word.text.startswith(f"{match[1]}=") else None)


def _is_element(word: Word) -> bool:
    declares_number = word.text[:1] in ("-", "+") and "i" in word.text
    return "[" in word.text or not word.exact or declares_number
