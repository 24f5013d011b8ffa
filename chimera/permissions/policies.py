"""Policies that need no rules, and the combinator that keeps the strictest answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chimera.errors import ConfigError
from chimera.permissions.base import PermissionAction, PermissionDecision, PermissionPolicy
from chimera.permissions.families import check_names

__all__ = ["AllOf", "AllowAll", "AllowList", "DenyAll", "DenyList"]

_STRICTNESS = {PermissionAction.ALLOW: 0, PermissionAction.ASK: 1, PermissionAction.DENY: 2}


class AllowAll(PermissionPolicy):
    """Allows every call."""

    def evaluate(self, tool_name: str, args: Mapping[str, Any]) -> PermissionAction:
        return PermissionAction.ALLOW


class DenyAll(PermissionPolicy):
    """Denies every call."""

    def evaluate(self, tool_name: str, args: Mapping[str, Any]) -> PermissionAction:
        return PermissionAction.DENY

    def decide(self, tool_name: str, args: Mapping[str, Any]) -> PermissionDecision:
        return PermissionDecision(PermissionAction.DENY, "no tool is allowed here")


class AllowList(PermissionPolicy):
    """Allows the tools named, exactly as they are called, and denies every other."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = check_names(names, "an allow list")

    def evaluate(self, tool_name: str, args: Mapping[str, Any]) -> PermissionAction:
        return PermissionAction.ALLOW if tool_name in self.names else PermissionAction.DENY

    def decide(self, tool_name: str, args: Mapping[str, Any]) -> PermissionDecision:
        action = self.evaluate(tool_name, args)
        allowed = ", ".join(sorted(self.names)) or "none"
        reason = "" if action is PermissionAction.ALLOW else f"{tool_name} is not among the allowed tools ({allowed})"
        return PermissionDecision(action, reason)


class DenyList(PermissionPolicy):
    """Denies the tools named, exactly as they are called, and allows every other."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = check_names(names, "a deny list")

    def evaluate(self, tool_name: str, args: Mapping[str, Any]) -> PermissionAction:
        return PermissionAction.DENY if tool_name in self.names else PermissionAction.ALLOW

    def decide(self, tool_name: str, args: Mapping[str, Any]) -> PermissionDecision:
        action = self.evaluate(tool_name, args)
        return PermissionDecision(action, f"{tool_name} is on the deny list" if tool_name in self.names else "")


class AllOf(PermissionPolicy):
    """Asks every policy and keeps the strictest answer: deny before ask before allow; of equals, the first.

    A member that raises makes the whole raise, which denies. Raises `ConfigError` when there is no member.
    """

    def __init__(self, policies: Iterable[PermissionPolicy]) -> None:
        self.policies = tuple(policies)
        if not self.policies:
            raise ConfigError("a combination of policies needs at least one")
        for policy in self.policies:
            if not isinstance(policy, PermissionPolicy):
                raise ConfigError(f"{policy!r} is no permission policy")

    def evaluate(self, tool_name: str, args: Mapping[str, Any]) -> PermissionAction:
        return self.decide(tool_name, args).action

    def decide(self, tool_name: str, args: Mapping[str, Any]) -> PermissionDecision:
        decisions = [policy.decide(tool_name, args) for policy in self.policies]
        return max(decisions, key=lambda decision: _STRICTNESS[decision.action])
