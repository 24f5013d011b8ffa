"""The names that rules and hook matchers may use: the bundled tools and the families that coding-agent users know."""

from __future__ import annotations

import re
from collections.abc import Iterable

from chimera.errors import ConfigError

__all__ = [
    "BUNDLED",
    "COMMANDS",
    "FAMILIES",
    "FILE_CHANGING",
    "HARMLESS",
    "READING",
    "aliases_of",
    "check_known",
    "check_names",
    "nearest",
]

_NOISE = re.compile(r"[\W_]+")
_ALIKE = 0.8  # of difflib's ratio: one slip in a name of five letters or more

FILE_CHANGING = frozenset({"write_file", "edit_file", "replace_in_file", "apply_patch"})
READING = frozenset({"read_file", "list_files", "search"})
COMMANDS = frozenset({"bash"})
HARMLESS = frozenset({"think", "todo"})
BUNDLED = FILE_CHANGING | READING | COMMANDS | HARMLESS | {"delegate"}

FAMILIES: dict[str, frozenset[str]] = {
    "Bash": COMMANDS,
    "Edit": FILE_CHANGING,
    "Write": FILE_CHANGING,
    "Read": READING,
    "Glob": frozenset({"list_files"}),
    "LS": frozenset({"list_files"}),
    "Grep": frozenset({"search"}),
    "Task": frozenset({"delegate"}),
    "TodoWrite": frozenset({"todo"}),
    "WebFetch": frozenset({"WebFetch", "web_fetch"}),
    "WebSearch": frozenset({"WebSearch", "web_search"}),
}


def aliases_of(tool_name: str) -> tuple[str, ...]:
    """Return the name itself and every family that it belongs to."""
    families = (family for family, members in FAMILIES.items() if tool_name in members)
    return (tool_name, *(family for family in families if family != tool_name))


def nearest(name: str, known: Iterable[str], *, cutoff: float = 0.5) -> str | None:
    """Return the known name that is most like `name`, case aside; None when none is."""
    from difflib import get_close_matches

    by_folded = {candidate.casefold(): candidate for candidate in sorted(known, reverse=True)}
    close = get_close_matches(name.casefold(), by_folded, n=1, cutoff=cutoff)
    return by_folded[close[0]] if close else None


def check_names(names: Iterable[str], what: str) -> frozenset[str]:
    """Return `names` as a set. Raises `ConfigError` for a bare string and for anything that is no tool name."""
    if isinstance(names, str):
        raise ConfigError(f"{what} must be a collection of tool names, not the text {names!r}")
    found = frozenset(names)
    for name in found:
        if not isinstance(name, str) or not name.strip():
            raise ConfigError(f"{what} holds {name!r}, which is no tool name")
    return found


def check_known(name: str, tools: Iterable[str] | None = None) -> None:
    """Refuse a name that no tool has. `tools` are the names that exist; without them, a likely slip is refused.

    Raises `ConfigError` that gives the nearest valid name.
    """
    known = {*BUNDLED, *FAMILIES, *(tools or ())}
    if name in known:
        return
    if tools is not None:
        close = nearest(name, known)
        raise ConfigError(f"there is no tool {name!r}" + (f"; the nearest is {close!r}" if close else ""))
    plain = {_NOISE.sub("", candidate).casefold(): candidate for candidate in sorted(known, reverse=True)}
    slip = plain.get(_NOISE.sub("", name).casefold()) or nearest(name, known, cutoff=_ALIKE)
    if slip is not None:
        raise ConfigError(f"there is no tool {name!r}; did you mean {slip!r}?")
