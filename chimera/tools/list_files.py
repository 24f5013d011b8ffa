"""Listing the files of the project."""

from __future__ import annotations

from itertools import islice
from typing import Any

from chimera.core.tool import ToolEnv
from chimera.tools._base import OUTPUT_CHARS, ProjectTool, object_schema
from chimera.tools._paths import Project, keeping_folders
from chimera.tools._walk import Entry, glob_filter, walk
from chimera.types import ToolResult

__all__ = ["ListFilesTool"]

_DEFAULT_LIMIT, _MAX_LIMIT = 500, 2000
_MARKS = {"folder": "/", "link": " (symlink)", "unreadable": "/ (cannot be read)"}


class ListFilesTool(ProjectTool):
    """Lists files below a folder, one path a line, sorted; folders show only where they are empty or not entered."""

    name = "list_files"
    description = (
        "List the files below a folder of the project, sorted, one path a line, relative to the project folder. What "
        ".gitignore names is left out, and so are .git, __pycache__, node_modules and .venv, unless `path` points into "
        "them. Use depth=1 for a first look at a large project."
    )
    parameters = object_schema(
        {
            "path": {"type": "string", "minLength": 1, "description": "Folder to list. Default: the project folder."},
            "pattern": {
                "type": "string",
                "minLength": 1,
                "description": "Only files that match this glob, e.g. '*.py', 'src/**/*.{ts,tsx}', relative to `path`.",
            },
            "depth": {"type": "integer", "minimum": 1, "description": "How many levels deep to go. Default: all."},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": _MAX_LIMIT,
                "description": f"How many entries to return at most. Default {_DEFAULT_LIMIT}.",
            },
        }
    )
    effect = "read"
    is_concurrency_safe = True

    def run(self, args: dict[str, Any], project: Project, env: ToolEnv | None) -> ToolResult:
        start = project.locate(args.get("path", "."))
        wanted = glob_filter(args.get("pattern"), start)
        entries = (entry for entry in walk(start, env, depth=args.get("depth")) if wanted(entry.place))
        limit = args.get("limit", _DEFAULT_LIMIT)
        with keeping_folders():
            lines = [_line(entry) for entry in islice(entries, limit + 1)]
        shown = _fitting(lines[:limit])
        more = len(lines) > len(shown)
        metadata = {"entries": len(shown), "complete": not more}
        if not shown:
            return ToolResult("[no files]" if not args.get("pattern") else "[no files match]", metadata=metadata)
        if more:
            shown.append(f"[more than {len(shown)} entries; narrow it down with path, pattern or depth]")
        return ToolResult("\n".join(shown), metadata=metadata)


def _line(entry: Entry) -> str:
    return f"{entry.place}{_MARKS.get(entry.kind, '')}"


def _fitting(lines: list[str]) -> list[str]:
    room = OUTPUT_CHARS
    for index, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return lines[:index]
    return lines
