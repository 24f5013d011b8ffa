"""Searching the files of the project for a regular expression."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from chimera.core.tool import ToolEnv
from chimera.errors import ToolError
from chimera.tools._base import OUTPUT_CHARS, ProjectTool, object_schema
from chimera.tools._files import is_file, size_text
from chimera.tools._paths import Place, Project, keeping_folders
from chimera.tools._regex import Hit, RegexProcess, RegexTimeout
from chimera.tools._text import load_text
from chimera.tools._walk import glob_filter, require_going_on, walk
from chimera.types import ToolResult

__all__ = ["SearchTool"]

_DEFAULT_LIMIT, _MAX_LIMIT = 100, 1000
_MAX_BYTES = 4 * 1024 * 1024
_LINE_CHARS, _BEFORE_MATCH = 300, 100


class SearchTool(ProjectTool):
    """Finds lines that match a Python regular expression, as `path:line:text`. `seconds` limits the matching."""

    name = "search"
    description = (
        "Search the text files of the project for a regular expression (Python syntax, matched line by line) and "
        "return matching lines as path:line:text. What .gitignore names is left out, unless `path` points to it. "
        f"Binary files and files over {size_text(_MAX_BYTES)} are skipped."
    )
    parameters = object_schema(
        {
            "pattern": {"type": "string", "minLength": 1, "description": "The regular expression to search for."},
            "path": {"type": "string", "minLength": 1, "description": "File or folder to search. Default: everything."},
            "glob": {
                "type": "string",
                "minLength": 1,
                "description": "Only files that match this glob, e.g. '*.py', 'src/**/*.{ts,tsx}', relative to `path`.",
            },
            "ignore_case": {"type": "boolean", "description": "Take upper and lower case for the same. Default false."},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": _MAX_LIMIT,
                "description": f"How many lines to return at most. Default {_DEFAULT_LIMIT}.",
            },
        },
        required=("pattern",),
    )
    effect = "read"
    is_concurrency_safe = True

    def __init__(self, root: Path | None = None, *, seconds: float = 20.0) -> None:
        super().__init__(root)
        self.seconds = seconds

    def run(self, args: dict[str, Any], project: Project, env: ToolEnv | None) -> ToolResult:
        start = project.locate(args.get("path", "."))
        found = _Found(args.get("limit", _DEFAULT_LIMIT))
        check = partial(require_going_on, env)
        error = None
        ignore_case = args.get("ignore_case", False)
        with (
            RegexProcess(args["pattern"], ignore_case=ignore_case, seconds=self.seconds, check=check) as regex,
            keeping_folders(),
        ):
            try:
                for place in _files(start, args.get("glob"), env):
                    if not found.search(place, regex):
                        break
            except RegexTimeout as timeout:
                error = str(timeout)
        return ToolResult(found.text(), error, {"matches": len(found.lines), "complete": not (error or found.full)})


class _Found:
    """The matching lines so far, and the files that were passed over."""

    def __init__(self, limit: int) -> None:
        self.lines: list[str] = []
        self.full = False
        self._limit = limit
        self._room = OUTPUT_CHARS
        self._skipped = 0

    def search(self, place: Place, regex: RegexProcess) -> bool:
        """Search one file; False when there is no room for more."""
        try:
            view = load_text(place, _MAX_BYTES)[0].view
        except ToolError:  # binary, huge, unreadable or just removed
            self._skipped += 1
            return True
        hits = regex.hits(view, self._limit - len(self.lines) + 1)
        if hits:
            lines = view.split("\n")
            for hit in hits:
                self._add(f"{place}:{hit.line + 1}:{_excerpt(lines[hit.line], hit)}")
        return not self.full

    def text(self) -> str:
        notes = []
        if self.full:
            notes.append(f"[more than {len(self.lines)} lines match; narrow it down with path, glob or pattern]")
        if not self.lines:
            notes.append("[no line matches]")
        if self._skipped:
            notes.append(f"[{self._skipped} files skipped: binary, unreadable or over {size_text(_MAX_BYTES)}]")
        return "\n".join([*self.lines, *notes])

    def _add(self, line: str) -> None:
        self._room -= len(line) + 1
        if self._room < 0 or len(self.lines) == self._limit:
            self.full = True
        elif not self.full:
            self.lines.append(line)


def _files(start: Place, glob: str | None, env: ToolEnv | None) -> Iterator[Place]:
    if is_file(start):
        load_text(start, _MAX_BYTES)
        yield start
        return
    wanted = glob_filter(glob, start)
    for entry in walk(start, env):
        if entry.kind == "file" and wanted(entry.place):
            yield entry.place


def _excerpt(line: str, hit: Hit) -> str:
    """Return the part of a long line that holds the match."""
    if len(line) <= _LINE_CHARS:
        return line
    begin = max(0, min(hit.start - _BEFORE_MATCH, len(line) - _LINE_CHARS))
    end = begin + _LINE_CHARS
    return ("..." if begin else "") + line[begin:end] + ("..." if end < len(line) else "")
