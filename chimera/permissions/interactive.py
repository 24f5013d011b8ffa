"""The safe default: reading is free, writing and running commands is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chimera.permissions.base import PermissionAction, PermissionDecision, PermissionPolicy
from chimera.permissions.families import COMMANDS, FILE_CHANGING, HARMLESS, READING, check_names

__all__ = ["InteractivePolicy"]

_ASKED = FILE_CHANGING | COMMANDS
_FREE = READING | HARMLESS


class InteractivePolicy(PermissionPolicy):
    """Asks before the tools in `ask` (by default every bundled tool that writes or runs commands), allows the rest.

    With `ask_undeclared` it also asks before every tool that is in neither `ask` nor `free`: one that came later, or
    that does not say what it does. A name that stands in both is asked for.
    """

    def __init__(
        self, ask: Iterable[str] = _ASKED, *, free: Iterable[str] = _FREE, ask_undeclared: bool = False
    ) -> None:
        self.ask = check_names(ask, "the tools to ask for")
        self.free = check_names(free, "the tools that run freely") - self.ask
        self.ask_undeclared = ask_undeclared

    @classmethod
    def for_tools(cls, tools: Iterable[object], *, ask_undeclared: bool = False) -> InteractivePolicy:
        """Build the policy from what tools say of themselves in `effect`, on top of the bundled names."""
        declared = [(str(getattr(tool, "name", "") or ""), getattr(tool, "effect", None)) for tool in tools]
        ask = {name for name, effect in declared if effect in ("write", "command") and name}
        free = {name for name, effect in declared if effect == "read" and name}
        return cls(_ASKED | ask, free=_FREE | free, ask_undeclared=ask_undeclared)

    def evaluate(self, tool_name: str, args: Mapping[str, Any]) -> PermissionAction:
        asked = tool_name in self.ask or (self.ask_undeclared and tool_name not in self.free)
        return PermissionAction.ASK if asked else PermissionAction.ALLOW

    def decide(self, tool_name: str, args: Mapping[str, Any]) -> PermissionDecision:
        action = self.evaluate(tool_name, args)
        if action is PermissionAction.ALLOW:
            return PermissionDecision(action)
        return PermissionDecision(action, f"{tool_name} {self._why(tool_name)} and needs approval")

    def _why(self, tool_name: str) -> str:
        if tool_name in COMMANDS:
            return "runs a command"
        if tool_name in FILE_CHANGING:
            return "changes files"
        return "can change things" if tool_name in self.ask else "does not say what it does"
