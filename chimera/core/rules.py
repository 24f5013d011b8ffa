"""What one run is held to, read once when it starts: chains, policies, hooks, and who answers questions.

A run that starts inside the body of another run's tool (a sub-agent, say) is held to that run's rules as well as to
its own. Nobody has to hand them on, so nobody can forget to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from chimera.core.cancellation import CancellationToken
from chimera.core.decisions import Chains, interceptor_name
from chimera.core.loop_config import LoopConfig, PermissionCallback
from chimera.core.truncation import Truncation
from chimera.events import EventBus
from chimera.permissions.base import PermissionAction, PermissionDecision, PermissionPolicy
from chimera.types import ToolCall

__all__ = ["Held", "Rules", "cancellation_below"]


class Held(NamedTuple):
    """A policy or a hook runner; with `quiet`, what it wants asked runs unasked. Its denials always hold."""

    by: Any
    quiet: bool


_NO_CHAINS = Chains()


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one run. `policies` and `hooks` all have a say, and the strictest answer holds."""

    chains: Chains = _NO_CHAINS
    policies: tuple[Held, ...] = ()
    hooks: tuple[Held, ...] = ()
    permission_callback: PermissionCallback | None = None
    truncation: Truncation | None = None
    bus: EventBus | None = None
    enforces_resumed: bool = False

    @classmethod
    def of(cls, config: LoopConfig | None, tools: Mapping[str, Any], outer: Rules | None = None) -> Rules:
        """Return the rules of a run under `config`, and under `outer` when it starts inside another run's tool."""
        own = cls() if config is None else _own(config, tools)
        return own if outer is None else _below(own, outer)

    def permit(self, call: ToolCall) -> PermissionDecision:
        """Ask every policy about the effective call. One that raises or answers with junk denies."""
        strictest = _ALLOWED
        for policy, quiet in self.policies:
            decision = _consult(policy, call)
            if quiet and decision.action is PermissionAction.ASK:
                decision = PermissionDecision(PermissionAction.ALLOW, decision.reason, decision.rule)
            if strictest is _ALLOWED or _RANK[decision.action] > _RANK[strictest.action]:
                strictest = decision
        return strictest


_ALLOWED = PermissionDecision(PermissionAction.ALLOW)
_RANK = {PermissionAction.ALLOW: 0, PermissionAction.ASK: 1, PermissionAction.DENY: 2}


def cancellation_below(own: CancellationToken | None, outer: CancellationToken | None) -> CancellationToken:
    """Return the token of a run: its own, which the outer run's pulls along."""
    token = own or CancellationToken()
    if outer is not None and outer is not token:
        outer.on_cancel(token.cancel)
    return token


def _own(config: LoopConfig, tools: Mapping[str, Any]) -> Rules:
    policy = config.permissions
    if policy is None and not config.yolo_mode:
        from chimera.permissions import InteractivePolicy

        policy = InteractivePolicy.for_tools(tools.values())
    return Rules(
        chains=Chains.of(config.interceptors),
        policies=() if policy is None else (Held(policy, config.yolo_mode),),
        hooks=() if config.hooks is None else (Held(config.hooks, config.yolo_mode),),
        permission_callback=config.permission_callback,
        truncation=config.truncation,
        bus=_guarded_bus(config),
        enforces_resumed=config.resumed_approvals == "enforced",
    )


def _below(own: Rules, outer: Rules) -> Rules:
    return Rules(
        chains=Chains(*(_joined(above, below) for above, below in zip(outer.chains, own.chains, strict=True))),
        policies=_joined(outer.policies, own.policies),
        hooks=_joined(outer.hooks, own.hooks),
        permission_callback=own.permission_callback or outer.permission_callback,
        truncation=own.truncation or outer.truncation,
        bus=own.bus or outer.bus,
        enforces_resumed=own.enforces_resumed or outer.enforces_resumed,
    )


def _joined(above: tuple[Any, ...], below: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return `above`, then what only `below` has: a chain that both were given runs once."""
    return (*above, *(item for item in below if item not in above))


def _guarded_bus(config: LoopConfig) -> EventBus | None:
    bus = config.event_bus
    if bus is None or config.secrets_redaction is False:
        return bus
    from chimera.secrets import RedactionMiddleware  # compiles its rules: only who publishes events pays for that

    if not bus.uses(RedactionMiddleware):
        bus.use(RedactionMiddleware())
    return bus


def _consult(policy: Any, call: ToolCall) -> PermissionDecision:
    decide = policy.decide if isinstance(policy, PermissionPolicy) else policy.evaluate
    try:
        decision = decide(call.name, call.arguments)
    except Exception as exc:
        text = f"the permission policy {interceptor_name(policy)} failed: {type(exc).__name__}"
        return PermissionDecision(PermissionAction.DENY, text)
    if isinstance(decision, PermissionAction):
        return PermissionDecision(decision)
    if isinstance(decision, PermissionDecision) and isinstance(decision.action, PermissionAction):
        return decision
    text = f"the permission policy {interceptor_name(policy)} answered with {type(decision).__name__}"
    return PermissionDecision(PermissionAction.DENY, text)
