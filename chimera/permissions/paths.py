"""Matching files against the pattern of a rule such as `Edit(src/**)` or `Read(~/.ssh/**)`.

Patterns are written as in `.gitignore`: `*` and `?` stay within one name, `**` spans folders, a pattern without a slash
matches a name at any depth. `~/x` is in the home folder, `//x` is absolute, everything else is relative to the root.

A rule that forbids is read loosely (whatever is below a match is meant too, case is ignored, any of the places that a
path may lead to counts), a rule that permits strictly (all of those places must match).
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from chimera.errors import ConfigError

__all__ = ["PathPattern", "absolute", "expanded", "parse_path_pattern", "places"]

_SPECIAL = re.compile(r"[*?\[\\]")
_TOKEN = re.compile(r"\\(.)|(\*+)|(\?)|\[([!^]?)(\]?[^\]]*)\]|(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PathPattern:
    """Where the files of a rule are. `exact` matches what the text says, `wide` also what lies below it.

    `spots` are the folders (or files) at or below which everything that it matches inside the root stands.
    """

    exact: re.Pattern[str]
    wide: re.Pattern[str]
    spots: frozenset[str] = frozenset()

    def forbids(self, candidates: Iterable[str]) -> bool:
        """Say whether any of the places that a path leads to is meant."""
        return any(self.wide.match(unicodedata.normalize("NFC", place)) for place in candidates)

    def permits(self, candidates: Iterable[str]) -> bool:
        """Say whether all of the places that a path leads to are meant."""
        found = tuple(candidates)
        return bool(found) and all(self.exact.match(place) for place in found)


def expanded(path: str) -> str:
    """Return `path` with the home folder that a leading `~` stands for, if there is such a user."""
    try:
        return str(Path(path).expanduser()) if path.startswith("~") else path
    except RuntimeError:
        return path


def absolute(path: Path | str | None) -> Path:
    """Return `path`, seen from the current folder, without `..`; the current folder for None. Follows no symlink."""
    return Path(_normal(str(Path.cwd() / (path or ""))))


def places(path: str, bases: Iterable[Path]) -> frozenset[str]:
    """Return every absolute place that `path` may mean, seen from each base: as written, and with symlinks followed.

    Raises `ValueError` for a path that cannot exist.
    """
    if not path or "\0" in path:
        raise ValueError("the path is empty or holds a NUL character")
    joined = [str(base / expanded(path)) for base in bases]
    return frozenset(place for text in joined for place in (_normal(text), os.path.realpath(text)))


def parse_path_pattern(text: str, root: Path) -> PathPattern:
    """Read what stands in the parentheses of an `Edit(...)` or `Read(...)` rule; `root` is an absolute folder.

    Raises `ConfigError` for a pattern that can match no file.
    """
    pattern = text.strip()
    if not pattern or pattern.startswith("!") or "\0" in pattern:
        raise ConfigError("a path pattern is empty or starts with !, which a single rule cannot mean")
    base, rest = _anchor(pattern, root)
    fixed, loose = _split(rest)
    floating = not pattern.startswith(("/", "~")) and rest[:1] == ["**"]
    if any(segment in ("..", ".") for segment in loose):
        raise ConfigError("a path pattern with .. behind a wildcard can match no file")
    spots = _spots(base, fixed)
    exact = "|".join(_regex(spot, loose) or "/" for spot in sorted(spots))
    return PathPattern(re.compile(rf"(?:{exact})\Z"), _wide(pattern, spots, loose, floating), spots)


def _wide(pattern: str, spots: frozenset[str], loose: list[str], floating: bool) -> re.Pattern[str]:
    """Add what the author may have meant: `/etc` as it stands, `x/**` with `x` itself, names outside the root."""
    if pattern.startswith("/") and not pattern.startswith("//"):
        fixed, _ = _split(pattern[1:].split("/"))
        spots |= _spots("/", fixed)
    if floating:
        spots |= {"/"}
    while loose and loose[-1] in ("**", ""):
        loose = loose[:-1]
    text = "|".join(_regex(spot, loose) for spot in sorted(spots))
    return re.compile(rf"(?:{unicodedata.normalize('NFC', text)})(?:/.*)?\Z", re.IGNORECASE | re.DOTALL)


def _anchor(pattern: str, root: Path) -> tuple[str, list[str]]:
    """Return the folder that the pattern starts from, and its segments below."""
    if pattern.startswith("//"):
        return "/", pattern[2:].split("/")
    if pattern == "~" or pattern.startswith("~/"):
        return expanded("~"), pattern[2:].split("/") if pattern != "~" else []
    name = pattern.rstrip("/")
    anchored = "/" in name or name in (".", "..")
    segments = pattern.removeprefix("/").split("/")
    return str(root), segments if anchored else ["**", *segments]


def _split(segments: list[str]) -> tuple[list[str], list[str]]:
    """Part the names that stand as they are from the rest, which starts with the first wildcard."""
    parts = [
        segment for index, segment in enumerate(segments) if segment not in ("", ".") or index == len(segments) - 1
    ]
    count = 0
    while count < len(parts) and parts[count] and not _SPECIAL.search(parts[count]):
        count += 1
    return parts[:count], [
        "**" if not segment.strip("*") and len(segment) > 1 else segment for segment in parts[count:]
    ]


def _spots(base: str, fixed: list[str]) -> frozenset[str]:
    start = str(Path(base, *fixed))
    return frozenset((_normal(start), os.path.realpath(start)))


def _regex(spot: str, loose: list[str]) -> str:
    """Write the pattern below `spot` as a regular expression; an empty last segment means what is below a folder."""
    text = re.escape(spot.rstrip("/"))
    for index, segment in enumerate(loose):
        last = index == len(loose) - 1
        if segment in ("**", ""):
            text += r"/.+" if last else r"(?:/[^/]+)*"
        else:
            text += "/" + "".join(_token(match) for match in _TOKEN.finditer(segment))
    return text


def _token(match: re.Match[str]) -> str:
    escaped, stars, question, negated, members, plain = match.groups()
    if stars:
        return "[^/]*"
    if question:
        return "[^/]"
    if members:
        inside = re.sub(r"([\\\[\]^&~|])", r"\\\1", members)
        return f"[^/{inside}]" if negated else f"(?!/)[{inside}]"
    return re.escape(escaped or plain)


def _normal(path: str) -> str:
    return "/" + os.path.normpath(path).lstrip("/")
