"""What the tests of the tools share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from chimera.core.identity import RunIdentity
from chimera.core.tool import BaseTool
from chimera.types import ToolResult

__all__ = ["Env", "failure", "output", "tree"]


class Env:
    """An environment as a run gives it, cancelled by hand."""

    def __init__(self, root: Path | None = None, conversation: str = "c1") -> None:
        self.root = root
        self.identity = RunIdentity("r1", conversation)
        self.cancelled = False

    def on_cancel(self, fn: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    def run_tool(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        raise AssertionError("these tools call no others")


def output(tool: BaseTool, **args: Any) -> str:
    """Run a tool that must succeed and return what it says."""
    result = tool.execute(args)
    assert result.error is None, result.error
    return result.output


def failure(tool: BaseTool, **args: Any) -> str:
    """Run a tool that must fail and return its error."""
    result = tool.execute(args)
    assert result.error, result.output
    return result.error


def tree(root: Path) -> dict[str, bytes | None]:
    """Return everything below `root`: file contents, None for folders, the target of symlinks."""
    found: dict[str, bytes | None] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            found[name] = str(path.readlink()).encode()
        else:
            found[name] = path.read_bytes() if path.is_file() else None
    return found
