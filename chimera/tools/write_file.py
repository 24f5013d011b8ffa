"""Writing a whole file."""

from __future__ import annotations

from typing import Any

from chimera.core.tool import ToolEnv
from chimera.errors import ToolError
from chimera.tools._atomic import Change, commit
from chimera.tools._base import PATH_SCHEMA, ProjectTool, object_schema
from chimera.tools._files import look, read_start
from chimera.tools._paths import Place, Project
from chimera.tools._text import Form, NotText, decode
from chimera.types import ToolResult

__all__ = ["WriteFileTool"]

_SAMPLE_BYTES = 64 * 1024


class WriteFileTool(ProjectTool):
    """Creates or replaces a file in one step. What it replaces hands down its mode, encoding and line ends."""

    name = "write_file"
    description = (
        "Create a file, or replace the whole content of an existing one. Missing folders are made. An existing file "
        "keeps its permissions, encoding and line ends. To change a part of a file, use edit_file instead."
    )
    parameters = object_schema(
        {"path": PATH_SCHEMA, "content": {"type": "string", "description": "The whole new content of the file."}},
        required=("path", "content"),
    )
    effect = "write"

    def run(self, args: dict[str, Any], project: Project, env: ToolEnv | None) -> ToolResult:
        place, content = project.locate(args["path"]), args["content"]
        before = look(place)
        form = _form_of(place) if before else Form()
        data = form.encode(_shaped(content, form))
        commit([Change(place, before, data)])
        done = "Replaced" if before else "Created"
        lines = content.count("\n") + (not content.endswith("\n") and content != "")
        output = f"{done} {place} ({lines} lines, {len(data)} bytes{_habits(form)})."
        return ToolResult(output, metadata={"path": str(place), "bytes": len(data), "created": not before})


def _form_of(place: Place) -> Form:
    data = read_start(place, _SAMPLE_BYTES).data
    try:
        return decode(data, cut=len(data) == _SAMPLE_BYTES).form
    except NotText as error:
        advice = "remove it first (bash: rm) if text is to take its place"
        raise ToolError(f"{str(place)!r}: {error}, which is not overwritten; {advice}") from error


def _shaped(content: str, form: Form) -> str:
    """Give new content the line ends of the old file, unless it says itself what it wants."""
    if form.bom:
        content = content.removeprefix("\ufeff")
    return content if "\r" in content else form.localized(content)


def _habits(form: Form) -> str:
    kept = []
    if form.newline != "\n":
        kept.append("CRLF line ends" if form.newline == "\r\n" else "CR line ends")
    if form.bom or form.encoding != "utf-8":
        kept.append(form.encoding + (" with byte order mark" if form.bom else ""))
    return f"; kept {' and '.join(kept)}" if kept else ""
