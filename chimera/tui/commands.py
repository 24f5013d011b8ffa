"""The slash commands, and finding what a person means by the beginning of one or of a file's name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

__all__ = ["COMMANDS", "RACE_COMMANDS", "Completion", "complete", "split_command"]

COMMANDS: dict[str, str] = {
    "help": "keys and commands",
    "model": "show the model, or change it: /model NAME",
    "plugins": "the plugins that are loaded",
    "resync": "load and reload plugins as the settings and their files say now",
    "clear": "begin a new conversation",
    "compact": "shorten the conversation before the next answer",
    "cost": "tokens and money spent so far",
    "decisions": "what interceptors, permissions and you decided",
    "resume": "go on with an earlier conversation: /resume ID",
    "theme": "light or dark colours",
    "exit": "leave",
}
RACE_COMMANDS: dict[str, str] = {
    "diff": "what a lane did: /diff [N]",
    "apply": "do to the project what a lane did: /apply [N]",
}
_FILE = re.compile(r"(?:\A|(?<=\s))@(\S*)\Z")
_AT_MOST = 12


class Completion(NamedTuple):
    """`text` replaces what stands from `start` to the cursor; `about` explains it."""

    text: str
    start: int
    about: str = ""


def complete(before: str, files: Sequence[str], commands: Mapping[str, str] = COMMANDS) -> list[Completion]:
    """Return what the text before the cursor may become: a command at its beginning, or `@` and a file's name."""
    if before.startswith("/") and not re.search(r"\s", before):
        return [Completion(f"/{name} ", 0, about) for name, about in commands.items() if f"/{name}".startswith(before)][
            :_AT_MOST
        ]
    match = _FILE.search(before)
    if match is None:
        return []
    return [Completion(f"@{_quoted(name)} ", match.start()) for name in _ranked(match[1], files)[:_AT_MOST]]


def split_command(text: str) -> tuple[str, str] | None:
    """Return the name and the rest of a slash command; None for anything else, a path such as `/etc/hosts` too."""
    match = re.fullmatch(r"/([\w-]+)(?:\s+(.*))?", text.strip(), re.DOTALL)
    return (match[1], (match[2] or "").strip()) if match else None


def _ranked(typed: str, files: Iterable[str]) -> list[str]:
    """Best first: the name begins so, the path begins so, it is in the name, in the path, or its letters in order."""
    wanted, folded = typed.casefold(), [(path.casefold(), path) for path in files]
    found = [(rank, len(path), path) for low, path in folded if (rank := _rank(wanted, low)) is not None]
    if len(found) < _AT_MOST:
        known = {path for _, _, path in found}
        found += [(4, len(path), path) for low, path in folded if path not in known and _scattered(wanted, low)]
    return [path for _, _, path in sorted(found)]


def _rank(wanted: str, path: str) -> int | None:
    if wanted not in path:
        return None
    name = path.rpartition("/")[2]
    if name.startswith(wanted):
        return 0
    if path.startswith(wanted):
        return 1
    return 2 if wanted in name else 3


def _scattered(wanted: str, path: str) -> bool:
    letters = iter(path)
    return all(letter in letters for letter in wanted)


def _quoted(path: str) -> str:
    return f'"{path}"' if re.search(r"\s", path) else path
