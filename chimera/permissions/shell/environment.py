"""Variables that change what commands do, and builtins that run code hidden in names and sums."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

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
        if exported:
            found.handed.append(Handed("", replace(word, text=value)))
        _note_startup(name, replace(word, text=value), found)
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


def _is_element(word: Word) -> bool:
    declares_number = word.text[:1] in ("-", "+") and "i" in word.text
    return "[" in word.text or not word.exact or declares_number
