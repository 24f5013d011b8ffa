"""Several changes to one file at once, as SEARCH/REPLACE blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from chimera.core.tool import ToolEnv
from chimera.errors import ToolError
from chimera.tools._atomic import Change, commit
from chimera.tools._base import PATH_SCHEMA, ProjectTool, object_schema
from chimera.tools._matching import line_number, only_match
from chimera.tools._paths import Project
from chimera.tools._text import Span, load_text
from chimera.types import ToolResult

__all__ = ["Block", "ReplaceInFileTool", "parse_blocks"]

# Models know the block with conflict markers and a younger one whose markers do not look like a merge conflict.
_SEARCH = re.compile(r"(?:<{7}|-{7}) SEARCH>?\s*")
_DIVIDER = re.compile(r"={7}\s*")
_REPLACE = re.compile(r"(?:>{7}|\+{7}) REPLACE>?\s*")
_FORM = "<<<<<<< SEARCH\n(lines of the file)\n=======\n(lines to put there)\n>>>>>>> REPLACE"


class ReplaceInFileTool(ProjectTool):
    """Replaces the whole lines of each SEARCH part by those of its REPLACE part, all blocks or none."""

    name = "replace_in_file"
    description = (
        "Make several changes to one file. `diff` holds one or more blocks of the form\n"
        f"{_FORM}\n"
        "The SEARCH part is one or more whole lines, copied exactly with their indentation, that occur once in the "
        "file as it is now. An empty REPLACE part deletes them. If one block does not fit, nothing is changed."
    )
    parameters = object_schema(
        {
            "path": PATH_SCHEMA,
            "diff": {"type": "string", "minLength": 1, "description": "One or more SEARCH/REPLACE blocks."},
        },
        required=("path", "diff"),
    )
    effect = "write"

    def run(self, args: dict[str, Any], project: Project, env: ToolEnv | None) -> ToolResult:
        place = project.locate(args["path"])
        blocks = parse_blocks(args["diff"])
        text, mark = load_text(place)
        spans = sorted(_span(text.view, block, number) for number, block in enumerate(blocks, 1))
        _require_apart(text.view, spans)
        edited = text.spliced(spans)
        if edited.raw == text.raw:
            raise ToolError("every REPLACE part equals its SEARCH part; there is nothing to change")
        commit([Change(place, mark, edited.encode())])
        output = f"Edited {place}: {len(blocks)} block{'s' * (len(blocks) > 1)} replaced."
        return ToolResult(output, metadata={"path": str(place), "replacements": len(blocks)})


class Block(NamedTuple):
    """The lines to find and the lines to put there, joined by `\\n`; None instead of lines that there are none of."""

    search: str
    replace: str | None


def parse_blocks(diff: str) -> list[Block]:
    """Read SEARCH/REPLACE blocks; blank lines and code fences may stand between them.

    Raises `ToolError` for anything else, because a block that is not recognised must not be left out in silence.
    """
    lines = iter(diff.replace("\r\n", "\n").split("\n"))
    blocks = []
    for line in lines:
        if _SEARCH.fullmatch(line):
            blocks.append(_block(lines))
        elif line.strip() and not line.startswith("```"):
            raise ToolError(f"{line!r} stands outside of a block; the form is\n{_FORM}")
    if not blocks:
        raise ToolError(f"the diff holds no block; the form is\n{_FORM}")
    return blocks


def _block(lines: Iterator[str]) -> Block:
    search = _until(lines, _DIVIDER, "=======")
    replace = _until(lines, _REPLACE, ">>>>>>> REPLACE")
    if not any(search):
        raise ToolError("a SEARCH part is empty; use write_file to create a file or to replace all of it")
    return Block("\n".join(search), "\n".join(replace) if replace else None)


def _until(lines: Iterator[str], end: re.Pattern[str], marker: str) -> list[str]:
    found: list[str] = []
    for line in lines:
        if end.fullmatch(line):
            return found
        if _SEARCH.fullmatch(line) or _DIVIDER.fullmatch(line) or _REPLACE.fullmatch(line):
            advice = "use edit_file for text that holds such marker lines itself"
            raise ToolError(f"a block has {line!r} where {marker!r} is due; {advice}")
        found.append(line)
    raise ToolError(f"a block ends without {marker!r}; the diff may be cut off. Nothing was changed")


def _span(view: str, block: Block, number: int) -> Span:
    start = only_match(view, block.search, f"the SEARCH part of block {number}", whole_lines=True)
    end = start + len(block.search)
    if block.replace is not None:
        return start, end, block.replace
    if end < len(view):
        return start, end + 1, ""
    return max(start - 1, 0), end, ""


def _require_apart(view: str, spans: list[Span]) -> None:
    for (_, end, _), (start, _, _) in pairwise(spans):
        if start < end:
            raise ToolError(
                f"two blocks change the same lines, at line {line_number(view, start)}; make them one block"
            )
