"""What list_files and search leave out: .gitignore rules, and folders that hold no work of the project."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from chimera.errors import ToolError
from chimera.permissions.globs import compiled
from chimera.tools._files import is_file, read_start
from chimera.tools._paths import Place

__all__ = ["ALWAYS_HIDDEN", "GITIGNORE", "Rules"]

GITIGNORE = ".gitignore"
ALWAYS_HIDDEN = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv"})
_MAX_RULES_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules in force in a folder: those of each `.gitignore` above, with the depth of its folder, nearest first."""

    specs: tuple[tuple[int, Any], ...] = ()

    @classmethod
    def at(cls, folder: Place) -> Rules:
        """Return the rules that come from above `folder`; none where they hide it, for it was asked for."""
        rules = cls()
        for depth in range(len(folder.parts)):
            above = Place(folder.root, folder.parts[:depth])
            rules = rules.entered(above)
            if rules.hide(Place(folder.root, folder.parts[: depth + 1]), is_folder=True):
                return cls()
        return rules

    def entered(self, folder: Place) -> Rules:
        """Return the rules in `folder`: these, and those of the `.gitignore` in it."""
        place = folder.inside(GITIGNORE)
        if not is_file(place):  # none at all, or none that git would heed
            return self
        try:
            data = read_start(place, _MAX_RULES_BYTES).data
        except ToolError:  # it cannot be read, or is gone
            return self
        spec = compiled(data.decode("utf-8", "replace").splitlines())
        return Rules(((len(folder.parts), spec), *self.specs))

    def hide(self, place: Place, *, is_folder: bool) -> bool:
        """Say whether `place` is left out. The nearest rule that speaks of it decides, as in git."""
        if place.name in ALWAYS_HIDDEN:
            return True
        for depth, spec in self.specs:
            path = "/".join(place.parts[depth:]) + "/" * is_folder
            for pattern in reversed(spec.patterns):
                if pattern.include is not None and _names(pattern.regex, path):
                    return bool(pattern.include)
        return False


def _names(regex: re.Pattern[str], path: str) -> bool:
    """Say whether a pattern matches `path` itself and not merely a folder above it.

    Folders above have been judged before, and a rule that lets one in (`!*/`) lets in nothing below it. The patterns of
    pathspec mark with a group where the folder that they match ends; `a/**` is without it, and does not mean `a/`.
    """
    for found in regex.finditer(path):
        if found.groupdict().get("ps_d"):
            if found.end("ps_d") == len(path):
                return True
        elif not (path.endswith("/") and found.end() == len(path)):
            return True
    return False
