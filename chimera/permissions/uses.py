"""Which files a call touches, as far as its arguments tell."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from glob import iglob
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from chimera.permissions.globs import file_filter
from chimera.permissions.paths import PathPattern, expanded

if TYPE_CHECKING:
    from chimera.permissions.shell import Command, ShellText

__all__ = [
    "DEVICES",
    "folders",
    "globbed",
    "patch_paths",
    "reaches",
    "read_paths",
    "shell_reads",
    "shell_writes",
    "tool_paths",
]

MAX_ENTRIES = 20_000  # looked at below a folder before it counts as reaching everything
_MAX_FOLDERS = 16
_MAX_MATCHES = 1_000
_WILDCARD = re.compile(r"[*?\[]")
_ENVELOPE = re.compile(r"\*\*\* ((?:Add|Update|Delete) File|Move to): (.*)")
_RENAME = re.compile(r"rename (from|to) (.*)")
_SAME_NAME = re.compile(r"diff --git a/(.+) b/\1\Z")
_NOWHERE = "/dev/null"
_Role = Literal["source", "made", "header"]
DEVICES = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"})
_SILENT = frozenset({"echo", "printf", ":", "true", "false", "test", "[", "export"})
_REMOVING = frozenset({"rm", "rmdir", "unlink", "shred", "touch", "truncate", "mkdir", "chmod", "chown", "chgrp"})
_WRITING = _REMOVING | {"tee", "mv", "dd", "patch"}
_COPYING = frozenset({"cp", "ln", "install", "rsync", "scp"})
_IN_PLACE = frozenset({"sed", "gsed", "perl", "ruby"})


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


def folders(text: ShellText, root: Path) -> tuple[Path, ...]:
    """Return the folders that relative paths in a shell text may start from: the root, and those that it enters.

    A folder that the text does not tell stands as the root of the file system.
    """
    found = [root]
    for command in text.all():
        if command.words[0].text in ("cd", "pushd") and len(found) < _MAX_FOLDERS:
            target = command.words[-1] if len(command.words) > 1 else None
            if target is None:
                found.append(Path.home())
            elif not target.exact or target.text.startswith(("-", "+")) or "\0" in target.text:
                found.append(Path("/"))
            else:
                found += [folder / expanded(target.text) for folder in tuple(found)]
    return tuple(dict.fromkeys(found))


def globbed(path: str, bases: Iterable[Path]) -> Iterator[str]:
    """Yield `path`, and, when it holds wildcards, the files that they stand for now, seen from each base."""
    yield path
    if _WILDCARD.search(path) and "\0" not in path:
        for base in bases:
            matches = iglob(expanded(path), root_dir=base)  # noqa: PTH207 - as in a shell, * passes over hidden files
            yield from (str(base / match) for match in islice(matches, _MAX_MATCHES))


def shell_writes(text: ShellText) -> Iterator[str]:
    """Yield the files that a shell text writes to: by redirection, and as arguments of well-known programs."""
    yield from (word.text for word in text.writes if word.text not in DEVICES)
    for command in text.all():
        yield from _written(command)


def shell_reads(text: ShellText) -> Iterator[str]:
    """Yield what a shell text may read: files that are redirected in, and every argument that may be a file."""
    yield from (word.text for word in text.reads)
    for command in text.all():
        if _program(command) not in _SILENT | _REMOVING:
            yield from _arguments(command)


def _written(command: Command) -> Iterator[str]:
    program = _program(command)
    if program in _WRITING or (program in _IN_PLACE and any("i" in word.text[:4] for word in _options(command))):
        yield from _arguments(command)
    elif program in _COPYING:
        yield from list(_arguments(command))[-1:]
        yield from (word.text.partition("=")[2] for word in _options(command) if "=" in word.text)


def _program(command: Command) -> str:
    return command.words[0].text.rsplit("/", 1)[-1]


def _options(command: Command) -> Sequence[Any]:
    return [word for word in command.words[1:] if word.text.startswith("-")]


def _arguments(command: Command) -> Iterator[str]:
    """Yield operands, the values in `--name=value` and `of=value`, and what stands behind the @ of `@file`."""
    for word in command.words[1:]:
        name, equals, value = word.text.partition("=")
        if equals and re.fullmatch(r"-{0,2}[\w-]+", name):
            yield value
        if not word.text.startswith("-"):
            yield word.text.removeprefix("@")


def reaches(start: str, pattern: PathPattern, glob: object = None) -> str | None:
    """Return a file below the folder `start` that `pattern` matches, None when there is none.

    Counts as found after many entries. A `glob` leaves out the files that the tool leaves out for it.
    """
    budget = MAX_ENTRIES
    wanted = file_filter(glob).match_file if isinstance(glob, str) else _any
    for place in sorted({_meeting(start, spot) for spot in pattern.spots} - {""}):
        if Path(place).is_file() and pattern.forbids((place,)) and wanted(os.path.relpath(place, start)):
            return place
        for folder, subfolders, files in os.walk(place):
            subfolders[:] = [name for name in subfolders if name != ".git"]
            budget -= len(files) + len(subfolders) + 1
            if budget < 0:
                return f"some file below {start}"
            inside = os.path.relpath(folder, start)
            for name in files:
                file = f"{folder.rstrip('/')}/{name}"
                if pattern.forbids((file,)) and wanted(os.path.normpath(f"{inside}/{name}")):
                    return file
    return None


def _meeting(start: str, spot: str) -> str:
    """Return the deeper of two folders when one is inside the other; empty otherwise."""
    if spot == start or spot.startswith(start.rstrip("/") + "/"):
        return spot
    return start if start.startswith(spot.rstrip("/") + "/") else ""


def _any(_path: str) -> bool:
    return True
