"""Permissions as an interceptor, for loops that check none of their own."""

from __future__ import annotations

from collections.abc import Callable

from chimera.core.decisions import InterceptDecision, Interceptors
from chimera.permissions.base import PermissionAction, PermissionPolicy
from chimera.types import PendingApproval, ToolCall

__all__ = ["PermissionGate"]


class PermissionGate:
    """Holds every tool call to `policy`. Registered by the host, it stands last and judges the effective call.

    `ask` decides what the policy asks, in the thread that it is called in; without it such calls are blocked.
    """

    def __init__(self, policy: PermissionPolicy, ask: Callable[[PendingApproval], None] | None = None) -> None:
        self._policy = policy
        self._ask = ask

    def interceptors(self) -> Interceptors:
        """Return the chain of this gate."""
        return Interceptors(tool_call=[self.permission])

    def permission(self, call: ToolCall) -> InterceptDecision | None:
        """Block what the policy or the person denies. Whatever fails in here blocks as well."""
        decision = self._policy.decide(call.name, call.arguments)
        if decision.action is PermissionAction.ALLOW:
            return None
        reason = decision.reason or f"{call.name} is not allowed"
        if decision.action is PermissionAction.ASK:
            if self._ask is None:
                return _denied(f"{reason}, and nobody is there to be asked")
            approval = PendingApproval(call, call.name, call.arguments, reason)
            self._ask(approval)
            if approval.approved:
                return None
            reason = f"the user denied it: {approval.message}" if approval.message else "the user denied it"
        return _denied(reason)


def _denied(reason: str) -> InterceptDecision:
    return InterceptDecision.block(f"permission denied: {reason}")
