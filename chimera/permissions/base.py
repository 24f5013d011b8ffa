"""What a permission policy is: it judges the effective call and never changes it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from chimera.frozen import quick_init

__all__ = ["PermissionAction", "PermissionDecision", "PermissionPolicy"]


class PermissionAction(Enum):
    """ALLOW runs the call, DENY refuses it, ASK leaves it to a person (and refuses it when nobody can be asked)."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"


@quick_init
@dataclass(frozen=True, slots=True)
class PermissionDecision:
    """An action with the words that explain it to a person and to the model; `rule` names the rule that decided."""

    action: PermissionAction
    reason: str = ""
    rule: str | None = None


class PermissionPolicy(ABC):
    """Judges calls by tool name and arguments. Synchronous, fast and in memory; a policy that raises denies."""

    @abstractmethod
    def evaluate(self, tool_name: str, args: Mapping[str, Any]) -> PermissionAction:
        """Say whether the call may run. `args` is read-only."""

    def decide(self, tool_name: str, args: Mapping[str, Any]) -> PermissionDecision:
        """Like `evaluate`, with the reason. Override it when there is more to say than the action."""
        return PermissionDecision(self.evaluate(tool_name, args))
