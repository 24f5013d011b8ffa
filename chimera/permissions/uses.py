"""Which files a call touches, as far as its arguments tell."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Literal

from chimera.permissions.globs import file_filter
from chimera.permissions.paths import PathPattern

__all__ = ["MAX_ENTRIES", "meets_below", "patch_paths", "reaches", "read_paths", "searched", "tool_paths"]

MAX_ENTRIES = 20_000  # looked at below a folder before it counts as reaching everything
_ENVELOPE = re.compile(r"\*\*\* ((?:Add|Update|Delete) File|Move to): (.*)")
_RENAME = re.compile(r"rename (from|to) (.*)")
_SAME_NAME = re.compile(r"diff --git a/(.+) b/\1\Z")
_NOWHERE = "/dev/null"
_Role = Literal["source", "made", "header"]


def tool_paths(tool_name: str, args: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the paths that a bundled file tool is called with; None when its arguments do not tell."""
    if tool_name == "apply_patch":
        patch = args.get("patch")
        return patch_paths(patch) if isinstance(patch, str) else None
    path = args.get("path", "." if tool_name in ("list_files", "search") else None)
    return (path,) if isinstance(path, str) and path else None


def read_paths(tool_name: str, args: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the paths whose content a bundled tool that changes files takes in and may quote, in an error say.

    None when its arguments do not tell. What is written anew is not taken in; what is moved can be read where it goes.
    """
    if tool_name == "write_file":
        return ()
    if tool_name != "apply_patch":
        return tool_paths(tool_name, args)
    patch = args.get("patch")
    if not isinstance(patch, str) or patch_paths(patch) is None:
        return None
    named = _named(patch) or ()
    made = {path for path, role in named if role == "made"}
    sources = (path for path, role in named if role == "source" or (role == "header" and path not in made))
    return tuple(dict.fromkeys(path for path in sources if path != _NOWHERE))


def patch_paths(patch: str) -> tuple[str, ...] | None:
    """Return every path that a patch names, in an envelope or as a unified diff; None when one cannot be read."""
    found = _named(patch)
    named = tuple(dict.fromkeys(path for path, _ in found or () if path != _NOWHERE))
    return named if named and not any('"' in path for path in named) else None


def _named(patch: str) -> list[tuple[str, _Role]] | None:
    """Return the paths in a patch with what becomes of each; None when a header names a path that cannot be told."""
    lines = [line.removesuffix("\r") for line in patch.split("\n")]
    found: list[tuple[str, _Role]] = []
    for index, line in enumerate(lines):
        if line.startswith("--- ") and lines[index + 1 : index + 2] and lines[index + 1].startswith("+++ "):
            old, new = _pair(_header_name(line), _header_name(lines[index + 1]))
            found += [(old, "source"), (new, "made" if old == _NOWHERE else "source")]
        elif match := _ENVELOPE.match(line) or _RENAME.match(line):
            found.append((match[2].strip(), "made" if match[1] in ("Add File", "Move to", "to") else "source"))
        elif match := _SAME_NAME.match(line):
            found.append((match[1].strip(), "header"))
        elif line.startswith("diff --git ") and not any(map(_RENAME.match, lines)):
            return None
    return found


def _header_name(line: str) -> str:
    return line[4:].split("\t")[0].rstrip()


def _pair(old: str, new: str) -> tuple[str, str]:
    if old.startswith(("a/", _NOWHERE)) and new.startswith(("b/", _NOWHERE)):
        return old.removeprefix("a/"), new.removeprefix("b/")
    return old, new


def searched(start: str, pattern: PathPattern, glob: object = None) -> str | None:
    """Return a file below `start` that the search tool would read and `pattern` matches, None when there is none."""
    wanted = file_filter(glob).match_file if isinstance(glob, str) else _any
    return reaches(start, pattern, wanted=wanted, hidden=(".git",))


def reaches(
    start: str, pattern: PathPattern, *, wanted: Callable[[str], object], hidden: Collection[str]
) -> str | None:
    """Return a file below the folder `start` that `pattern` matches, None when there is none.

    Counts as found after many entries. Only files count that are `wanted`, by their path seen from `start`, and in no
    folder with a `hidden` name.
    """
    budget = MAX_ENTRIES
    for place in sorted({meets_below(start, spot) for spot in pattern.spots} - {""}):
        if Path(place).is_file() and pattern.forbids((place,)) and wanted(os.path.relpath(place, start)):
            return place
        for folder, subfolders, files in os.walk(place):
            subfolders[:] = [name for name in subfolders if name not in hidden]
            budget -= len(files) + len(subfolders) + 1
            if budget < 0:
                return f"some file below {start}"
            inside = os.path.relpath(folder, start)
            for name in files:
                file = f"{folder.rstrip('/')}/{name}"
                if pattern.forbids((file,)) and wanted(os.path.normpath(f"{inside}/{name}")):
                    return file
    return None


def meets_below(start: str, spot: str) -> str:
    """Return the deeper of two folders when one is inside the other; empty otherwise."""
    if spot == start or spot.startswith(start.rstrip("/") + "/"):
        return spot
    return start if start.startswith(spot.rstrip("/") + "/") else ""


def _any(_path: str) -> bool:
    return True
