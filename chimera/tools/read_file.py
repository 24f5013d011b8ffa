"""Reading a text file, or a part of it."""

from __future__ import annotations

from typing import Any, NamedTuple

from chimera.core.tool import ToolEnv
from chimera.errors import ToolError
from chimera.tools._base import OUTPUT_CHARS, PATH_SCHEMA, ProjectTool, object_schema
from chimera.tools._paths import Project
from chimera.tools._text import load_text
from chimera.types import ToolResult

__all__ = ["ReadFileTool"]

_MAX_LINES = 2000
_MAX_LINE_CHARS = 4000


class ReadFileTool(ProjectTool):
    """Returns the text with `\\n` line ends and no byte order mark; a note in brackets says where the rest begins."""

    name = "read_file"
    description = (
        "Read a text file of the project and return its content exactly, without line numbers. At most "
        f"{_MAX_LINES} lines come at once; a note at the end says with which offset to go on. For a long file, find "
        "the place with search first and read around it."
    )
    parameters = object_schema(
        {
            "path": PATH_SCHEMA,
            "offset": {"type": "integer", "minimum": 1, "description": "Line to start at, counted from 1. Default 1."},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "description": f"How many lines to return at most. Default and upper limit {_MAX_LINES}.",
            },
        },
        required=("path",),
    )
    effect = "read"
    is_concurrency_safe = True

    def run(self, args: dict[str, Any], project: Project, env: ToolEnv | None) -> ToolResult:
        place = project.locate(args["path"])
        text, _ = load_text(place)
        lines = _lines(text.view)
        first = args.get("offset", 1)
        if first > max(len(lines), 1):
            raise ToolError(f"{str(place)!r} has {len(lines)} lines, so there is no line {first}; use a smaller offset")
        part = _part(lines, first - 1, min(args.get("limit", _MAX_LINES), _MAX_LINES))
        metadata = {"path": str(place), "first_line": first, "last_line": part.end, "total_lines": len(lines)}
        return ToolResult(_rendered(part, len(lines)), metadata=metadata)


class _Part(NamedTuple):
    text: str
    end: int
    clipped: bool


def _lines(view: str) -> list[str]:
    lines = view.split("\n")
    last = lines.pop()
    return [*(line + "\n" for line in lines), *([last] if last else [])]


def _part(lines: list[str], start: int, count: int) -> _Part:
    taken: list[str] = []
    clipped, room = False, OUTPUT_CHARS
    for line in lines[start : start + count]:
        if len(line) > _MAX_LINE_CHARS:
            line, clipped = _clip(line), True
        room -= len(line)
        if room < 0 and taken:
            break
        taken.append(line)
    return _Part("".join(taken), start + len(taken), clipped)


def _clip(line: str) -> str:
    return f"{line[:_MAX_LINE_CHARS]} [... {len(line) - _MAX_LINE_CHARS} more characters of this line ...]\n"


def _rendered(part: _Part, total: int) -> str:
    if not total:
        return "[the file is empty]"
    notes = []
    if part.end < total:
        notes.append(f"[{total - part.end} more lines; go on with offset={part.end + 1}]")
    if part.clipped:
        notes.append("[some lines are too long to show whole; search or bash can show parts of them]")
    if not notes:
        return part.text
    return part.text + ("" if part.text.endswith("\n") else "\n") + "\n".join(notes)
