"""The files of the project, for `@` in the prompt."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from chimera.errors import ToolError
from chimera.tools._paths import Project
from chimera.tools._walk import walk

__all__ = ["project_files"]

_AT_MOST = 20_000


def project_files(root: Path) -> list[str]:
    """Return the files below `root` that git would not ignore, relative to it; an empty list when it cannot be read."""
    try:
        entries = islice(walk(Project(root).locate(".")), _AT_MOST)
        return [str(entry.place) for entry in entries if entry.kind == "file"]
    except ToolError:
        return []
