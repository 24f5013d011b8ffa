"""Permissions: what may run, what is asked for, what is refused."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from chimera.permissions.base import PermissionAction, PermissionDecision, PermissionPolicy
from chimera.permissions.interactive import InteractivePolicy
from chimera.permissions.policies import AllOf, AllowAll, AllowList, DenyAll, DenyList

if TYPE_CHECKING:
    from chimera.permissions.presets import MODES, AcceptEdits, NoPrompts, PermissionMode, policy_for_mode
    from chimera.permissions.rules import RuleSet

__all__ = [
    "MODES",
    "AcceptEdits",
    "AllOf",
    "AllowAll",
    "AllowList",
    "DenyAll",
    "DenyList",
    "InteractivePolicy",
    "NoPrompts",
    "PermissionAction",
    "PermissionDecision",
    "PermissionMode",
    "PermissionPolicy",
    "RuleSet",
    "policy_for_mode",
]

_LATE = {"RuleSet": "rules", **dict.fromkeys(("MODES", "AcceptEdits", "NoPrompts", "PermissionMode"), "presets")}
_LATE["policy_for_mode"] = "presets"


def __getattr__(name: str) -> Any:
    """Import rules and presets when they are first asked for: a program without rules starts sooner."""
    module = _LATE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
