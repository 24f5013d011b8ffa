"""A place to think: the model writes down what it considers, and nothing happens."""

from __future__ import annotations

from typing import Any

from chimera.core.tool import BaseTool, ToolEnv
from chimera.tools._base import object_schema
from chimera.types import ToolResult

__all__ = ["ThinkTool"]


class ThinkTool(BaseTool):
    """Records a thought in the conversation. It changes nothing and finds nothing out."""

    name = "think"
    description = (
        "Think about something. Nothing is changed and nothing new is found out; the thought stays in the "
        "conversation. Use it to plan before a complex change, or to weigh what a result means."
    )
    parameters = object_schema({"thought": {"type": "string", "description": "What you think."}}, required=("thought",))
    effect = "read"
    is_concurrency_safe = True

    def execute(self, args: dict[str, Any], env: ToolEnv | None = None) -> ToolResult:
        return _noted()

    async def async_execute(self, args: dict[str, Any], env: ToolEnv | None = None) -> ToolResult:
        return _noted()


def _noted() -> ToolResult:
    return ToolResult("Noted.")
