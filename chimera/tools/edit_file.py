"""Replacing one exact text in a file, or every occurrence of it."""

from __future__ import annotations

from typing import Any

from chimera.core.tool import ToolEnv
from chimera.errors import ToolError
from chimera.tools._atomic import Change, commit
from chimera.tools._base import PATH_SCHEMA, ProjectTool, object_schema
from chimera.tools._matching import find_all, line_number, nearest, only_match, places
from chimera.tools._paths import Project
from chimera.tools._text import load_text
from chimera.types import ToolResult

__all__ = ["EditFileTool"]


class EditFileTool(ProjectTool):
    """Replaces `old_string` by `new_string`. Everything else in the file keeps its bytes."""

    name = "edit_file"
    description = (
        "Replace an exact piece of text in a file. old_string must be copied from the file with its indentation, and "
        "must occur exactly once unless replace_all is true. Line ends are always \\n here; the file keeps its own."
    )
    parameters = object_schema(
        {
            "path": PATH_SCHEMA,
            "old_string": {"type": "string", "description": "The text to replace, exactly as it stands in the file."},
            "new_string": {"type": "string", "description": "The text to put there; empty to delete."},
            "replace_all": {"type": "boolean", "description": "Replace every occurrence. Default false."},
        },
        required=("path", "old_string", "new_string"),
    )
    effect = "write"

    def run(self, args: dict[str, Any], project: Project, env: ToolEnv | None) -> ToolResult:
        place = project.locate(args["path"])
        old, new = _plain(args["old_string"]), _plain(args["new_string"])
        text, mark = load_text(place)
        _require_edit(old, new)
        starts = _starts(text.view, old, every=args.get("replace_all", False))
        edited = text.spliced((start, start + len(old), new) for start in starts)
        commit([Change(place, mark, edited.encode())])
        lines = [line_number(text.view, start) for start in starts[:11]]
        where = f"line {lines[0]}" if len(lines) == 1 else places(lines)
        output = f"Edited {place}: {len(starts)} replacement{'s' * (len(starts) > 1)} at {where}."
        return ToolResult(output, metadata={"path": str(place), "replacements": len(starts)})


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n")


def _require_edit(old: str, new: str) -> None:
    if not old:
        raise ToolError("old_string is empty; use write_file to create a file or to replace all of it")
    if old == new:
        raise ToolError("old_string and new_string are the same; there is nothing to change")


def _starts(view: str, old: str, *, every: bool) -> list[int]:
    if not every:
        return [only_match(view, old, "old_string", advice=", or set replace_all to change every one")]
    starts = list(find_all(view, old))
    if not starts:
        raise ToolError(f"old_string was not found. {nearest(view, old)}")
    return starts
