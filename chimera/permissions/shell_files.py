"""Judging what a shell text does to files by a rule for file tools."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from chimera.permissions.match import Match
from chimera.permissions.meanings import Meanings
from chimera.permissions.paths import PathPattern, places
from chimera.permissions.shell_uses import Use, changes, fragments, readings
from chimera.permissions.uses import MAX_ENTRIES, meets_below, reaches

if TYPE_CHECKING:
    from chimera.permissions.shell import ShellText
    from chimera.permissions.shell.findings import Word

__all__ = ["ShellFiles"]

_OWN_FOLDER = re.compile(r"/+proc/+[^/]+/+cwd(?=/|\Z)")  # that of the shell, which is not the one of this process
_NO: tuple[Match, str] = (Match.NO, "")
_YES: tuple[Match, str] = (Match.YES, "")
_LATER = "a file that it uses is known only when it runs"


class ShellFiles:
    """The files that a shell text reads and changes; each fact is worked out when a rule first needs it."""

    def __init__(self, text: ShellText, root: Path) -> None:
        self.text = text
        self.meanings = Meanings(text, root)
        self._places: dict[str, frozenset[str]] = {}

    @cached_property
    def readings(self) -> tuple[Use, ...]:
        return tuple(dict.fromkeys(readings(self.text)))

    @cached_property
    def changes(self) -> tuple[Use, ...]:
        return tuple(dict.fromkeys(changes(self.text)))

    @property
    def bases(self) -> tuple[Path, ...]:
        """The folders that relative paths may start from; the root of the file system stands for one not known."""
        return (*self.meanings.bases, Path("/")) if self.meanings.lost else self.meanings.bases

    def reading(self, pattern: PathPattern | None) -> tuple[Match, str]:
        """Grade how a rule that forbids reading meets the text. Without a pattern, only redirections are meant."""
        if pattern is None:
            return _YES if self.text.reads else _NO
        return self._strictest(pattern, self.readings)

    def changing(self, pattern: PathPattern | None) -> tuple[Match, str]:
        """Grade how a rule that forbids changes meets the text. Without a pattern, only certain ones are meant."""
        if pattern is None:
            return _YES if any(use.sure for use in self.changes) else _NO
        return self._strictest(pattern, self.changes)

    def _strictest(self, pattern: PathPattern, uses: Iterable[Use]) -> tuple[Match, str]:
        doubts = self.text.doubts
        found: tuple[Match, str] = (Match.MAYBE, doubts[0]) if doubts else _NO
        for use in uses:
            match = self._meets(use, pattern)
            if match[0] is Match.YES:
                return match
            found = max(found, match, key=lambda graded: graded[0])
        return found

    def _meets(self, use: Use, pattern: PathPattern) -> tuple[Match, str]:
        if use.kind == "more":
            return Match.MAYBE, f"what {use.word.text} is given is known only when it runs"
        if use.kind == "below":
            unpacked = any(meets_below(str(base), spot) for base in self.bases for spot in pattern.spots)
            return (Match.MAYBE, f"{use.word.text} may write files that it does not name") if unpacked else _NO
        if any(piece.kind == "found" for piece in use.word.pieces):
            return _NO  # the folders in which they are found are judged
        found = self._paths(use.word)
        if found is None:
            return _NO if use.known else (Match.MAYBE, f"{_LATER}: {use.word.text}")
        return _JUDGES[use.kind](self, use, pattern, found)

    def _paths(self, word: Word) -> list[tuple[str, bool]] | None:
        """Return the paths that a word stands for, and whether each is certain; None when they cannot be told."""
        values = self.meanings.values(word)
        if values is None:
            return None
        certain = not any(piece.kind in ("variable", "output") for piece in word.pieces)
        found: list[tuple[str, bool]] = []
        for value in values:
            paths = self.meanings.paths(value)
            if paths is None:
                return None
            found += [(path, sure and certain) for path, sure in paths]
        return found

    def _file(self, use: Use, pattern: PathPattern, paths: list[tuple[str, bool]]) -> tuple[Match, str]:
        hits = [(path, certain) for path, certain in paths if pattern.forbids(self._at(path))]
        if any(certain for _, certain in hits) and use.sure:
            return _YES
        if hits:
            return Match.MAYBE, f"it may use {hits[0][0]}"
        relative = any(not path.startswith(("/", "~")) for path, _ in paths)
        if relative and self.meanings.lost and not use.known:
            return Match.MAYBE, f"the folder that {use.word.text} is in is known only when it runs"
        return _NO

    def _parts(self, use: Use, pattern: PathPattern, paths: list[tuple[str, bool]]) -> tuple[Match, str]:
        for text in dict.fromkeys(path for path, _ in paths):
            parts = fragments(text)
            if parts is None:
                return Match.MAYBE, "a text in it is too long to look into"
            if any(pattern.forbids(self._at(part)) for part in parts):
                return Match.MAYBE, f"a text in it names a file that is meant: {use.word.text}"
        return _NO

    def _tree(self, use: Use, pattern: PathPattern, paths: list[tuple[str, bool]]) -> tuple[Match, str]:
        for place in sorted({place for path, _ in paths for place in self._at(path)}):
            hit = reaches(place, pattern, wanted=lambda path: _named(path, use.names), hidden=())
            if hit is not None:
                return Match.MAYBE, f"it may use {hit}, which is below {use.word.text}"
        return _NO

    def _copy(self, use: Use, pattern: PathPattern, paths: list[tuple[str, bool]]) -> tuple[Match, str]:
        targets = self._paths(use.target) if use.target is not None else None
        entries = [entry for path, _ in paths for place in self._at(path) for entry in _entries(place)]
        if targets is None or len(entries) > MAX_ENTRIES:
            return Match.MAYBE, f"where {use.word.text} goes is known only when it runs"
        for target in {place for path, _ in targets for place in self._at(path)}:
            if any(pattern.forbids((f"{target.rstrip('/')}/{entry}",)) for entry in entries):
                return Match.MAYBE, f"it may put {use.word.text} where a file that is meant is"
        return _NO

    def _at(self, path: str) -> frozenset[str]:
        """Return the places that a path leads to, none when there cannot be such a path."""
        found = self._places.get(path)
        if found is None:
            try:
                found = places(_OWN_FOLDER.sub(".", path), self.meanings.bases)
            except ValueError:
                found = frozenset()
            self._places[path] = found
        return found


def _named(path: str, names: tuple[str, ...]) -> bool:
    from fnmatch import fnmatch

    return not names or any(fnmatch(os.path.basename(path), name) for name in names)  # noqa: PTH119


def _entries(place: str) -> list[str]:
    """Return the paths of what is copied with `place`, seen from where it goes, with its name and without."""
    name = os.path.basename(place)  # noqa: PTH119
    inside = islice(_below(place), MAX_ENTRIES + 1)
    return [name, *(path for entry in inside for path in (entry, f"{name}/{entry}"))]


def _below(place: str) -> Iterator[str]:
    for folder, subfolders, files in os.walk(place):
        for name in (*subfolders, *files):
            yield os.path.relpath(f"{folder}/{name}", place)


_JUDGES: dict[str, Callable[[ShellFiles, Use, PathPattern, list[tuple[str, bool]]], tuple[Match, str]]] = {
    "file": ShellFiles._file,
    "parts": ShellFiles._parts,
    "tree": ShellFiles._tree,
    "copy": ShellFiles._copy,
}
