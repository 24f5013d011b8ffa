"""The tools that a coding agent works with, rooted in its project folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from chimera.tools.apply_patch import ApplyPatchTool
from chimera.tools.bash import BashTool
from chimera.tools.edit_file import EditFileTool
from chimera.tools.list_files import ListFilesTool
from chimera.tools.read_file import ReadFileTool
from chimera.tools.replace_in_file import ReplaceInFileTool
from chimera.tools.search import SearchTool
from chimera.tools.think import ThinkTool
from chimera.tools.todo import TodoTool
from chimera.tools.write_file import WriteFileTool

if TYPE_CHECKING:
    from chimera.core.tool import BaseTool

__all__ = [
    "ApplyPatchTool",
    "BashTool",
    "EditFileTool",
    "ListFilesTool",
    "ReadFileTool",
    "ReplaceInFileTool",
    "SearchTool",
    "ThinkTool",
    "TodoTool",
    "WriteFileTool",
    "default_tools",
]


def default_tools(root: Path | None = None) -> list[BaseTool]:
    """Return new tools of the default set. `root` is their project folder where a run names none."""
    return [
        BashTool(root),
        ReadFileTool(root),
        WriteFileTool(root),
        EditFileTool(root),
        ReplaceInFileTool(root),
        ApplyPatchTool(root),
        ListFilesTool(root),
        SearchTool(root),
        ThinkTool(),
        TodoTool(),
    ]
