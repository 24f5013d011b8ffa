"""Going through the folders of the project."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

from chimera.errors import ToolError
from chimera.permissions.globs import file_filter
from chimera.tools._atomic import is_leftover
from chimera.tools._ignore import Rules
from chimera.tools._paths import Place, explained

__all__ = ["Entry", "glob_filter", "require_going_on", "walk"]

Kind = Literal["file", "folder", "link", "unreadable"]


class Entry(NamedTuple):
    """What `walk` meets. A folder is an entry only where the walk does not go into it, or finds nothing in it."""

    place: Place
    kind: Kind


class _Pending(NamedTuple):
    place: Place
    kind: Kind
    rules: Rules
    depth: int


def walk(start: Place, env: Any = None, *, depth: int | None = None) -> Iterator[Entry]:
    """Yield what is below the folder `start`, sorted by name, at most `depth` names deep, without what is ignored.

    Symlinks are not followed. Raises `ToolError` when `start` is no readable folder or the run is cancelled.
    """
    rules = Rules.at(start).entered(start)
    with explained("list", start):
        waiting = _inside(start, rules, 1)
    while waiting:
        require_going_on(env)
        item = waiting.pop()
        if item.kind != "folder" or item.depth == depth:
            yield Entry(item.place, item.kind)
            continue
        try:
            inner = _inside(item.place, item.rules.entered(item.place), item.depth + 1)
        except OSError:
            yield Entry(item.place, "unreadable")
            continue
        if inner:
            waiting += inner
        else:
            yield Entry(item.place, "folder")


def glob_filter(pattern: str | None, start: Place) -> Callable[[Place], bool]:
    """Return a check of places below `start` against a glob in gitignore style, with `{a,b}`; None lets all pass."""
    if pattern is None:
        return lambda place: True
    spec, depth = file_filter(pattern), len(start.parts)
    return lambda place: bool(spec.match_file("/".join(place.parts[depth:])))


def require_going_on(env: Any) -> None:
    """Raise `ToolError` when the run of `env` is being cancelled."""
    if getattr(env, "cancelled", False):
        raise ToolError("cancelled")


def _inside(folder: Place, rules: Rules, depth: int) -> list[_Pending]:
    """Return what `folder` holds and shows, in reverse order."""
    with folder.folder() as descriptor, os.scandir(descriptor) as entries:
        found = sorted(((entry.name, _kind(entry)) for entry in entries), reverse=True)
    pending = [_Pending(folder.inside(name), kind, rules, depth) for name, kind in found if not is_leftover(name)]
    return [item for item in pending if not rules.hide(item.place, is_folder=item.kind == "folder")]


def _kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_symlink():
        return "link"
    return "folder" if entry.is_dir(follow_symlinks=False) else "file"
