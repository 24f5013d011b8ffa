"""What the tools of this package share: a project folder, and errors as results."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any

from chimera.core.env import root_of
from chimera.core.tool import BaseTool, ToolEnv
from chimera.errors import ToolError
from chimera.tools._paths import Project
from chimera.types import ToolResult

__all__ = ["OUTPUT_CHARS", "PATH_SCHEMA", "ProjectTool", "object_schema"]

# What one result may hold. Below the default limit of the loops, which would cut the middle out.
OUTPUT_CHARS = 28_000

PATH_SCHEMA = {"type": "string", "minLength": 1, "description": "Path of the file, relative to the project folder."}


def object_schema(properties: dict[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the JSON Schema of an object with these properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


class ProjectTool(BaseTool):
    """A tool that works in a project folder: that of the run, else `root`, else the current directory.

    A subclass writes `run`. What it raises as `ToolError` becomes the error of the result.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = root

    @abstractmethod
    def run(self, args: dict[str, Any], project: Project, env: ToolEnv | None) -> ToolResult:
        """Do the work in `project`. Raises `ToolError` when it cannot be done."""

    def execute(self, args: dict[str, Any], env: ToolEnv | None = None) -> ToolResult:
        try:
            return self.run(args, self.project(env), env)
        except ToolError as error:
            return ToolResult("", str(error))

    def project(self, env: ToolEnv | None) -> Project:
        """Return the folder that a call with this environment works in."""
        return Project(root_of(env) or self.root or Path.cwd())
