"""What one run is held to, read once when it starts: chains, policies, hooks, and who answers questions.

A run that starts inside the body of another run's tool (a sub-agent, say) is held to that run's rules as well as to
its own. Nobody has to hand them on, so nobody can forget to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import iscoroutine
from types import MethodType
from typing import Any, NamedTuple

from chimera.core.decisions import Chains, interceptor_name
from chimera.core.loop_config import LoopConfig, PermissionCallback
from chimera.core.truncation import Truncation
from chimera.events import EventBus
from chimera.permissions.base import PermissionAction, PermissionDecision, PermissionPolicy
from chimera.types import ToolCall

__all__ = ["Asked", "Asker", "Held", "Rules"]


@dataclass(frozen=True, slots=True, eq=False)
class Asker:
    """Who answers the questions of a rule: a callback or, where there is none, whoever iterates over its run.

    Below the run whose rules these are, nobody iterates over it: `iterates` is False there.
    """

    callback: PermissionCallback | None = None
    iterates: bool = True


class Held(NamedTuple):
    """A policy or a hook runner; with `quiet`, what it wants asked runs unasked. Its denials always hold.

    What it wants asked is put to `asker`, wherever below the run is that makes the call: who starts a sub-agent does
    not answer for the one who set the rule.
    """

    by: Any
    quiet: bool
    asker: Asker


class Asked(NamedTuple):
    """What an asker has to answer before a call may run."""

    asker: Asker
    source: str
    reason: str
    rule: str | None = None


_NO_CHAINS = Chains()
_NOBODY = Asker()


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one run. `policies` and `hooks` all have a say, and the strictest answer holds.

    `asks_by_default`: nobody chose a policy, so the safe one is in force, for the tools of runs below too.
    """

    chains: Chains = _NO_CHAINS
    policies: tuple[Held, ...] = ()
    hooks: tuple[Held, ...] = ()
    asker: Asker = _NOBODY
    truncation: Truncation | None = None
    bus: EventBus | None = None
    enforces_resumed: bool = False
    asks_by_default: bool = False

    @classmethod
    def of(cls, config: LoopConfig | None, tools: Mapping[str, Any], outer: Rules | None = None) -> Rules:
        """Return the rules of a run under `config`, and under `outer` when it starts inside another run's tool."""
        if outer is None:
            return cls() if config is None else _own(config, tools, None)
        own = cls() if config is None else _own(config, tools, outer.asker.callback)
        if outer.asks_by_default:
            own = replace(own, policies=(*own.policies, Held(_safe_policy(tools), False, outer.asker)))
        return _below(own, outer)

    def permit(self, call: ToolCall) -> tuple[PermissionDecision, list[Asked]]:
        """Ask every policy about the effective call. One that raises or answers with junk denies.

        Returns the strictest decision, and who has to be asked, outermost run first.
        """
        strictest, questions = _ALLOWED, []
        for policy, quiet, asker in self.policies:
            decision = _consult(policy, call)
            if decision.action is PermissionAction.ASK:
                if quiet:
                    decision = PermissionDecision(PermissionAction.ALLOW, decision.reason, decision.rule)
                else:
                    questions.append(Asked(asker, "policy", decision.reason, decision.rule))
            if strictest is _ALLOWED or _RANK[decision.action] > _RANK[strictest.action]:
                strictest = decision
        return strictest, questions

    def for_runs_below(self, carry: Callable[[PermissionCallback], PermissionCallback]) -> Rules:
        """Return these rules as a run inside a tool is held to them. `carry` makes a callback fit for other threads."""
        moved: dict[Asker, Asker] = {}

        def move(held: Held) -> Held:
            return held._replace(asker=moved.setdefault(held.asker, _moved(held.asker, carry)))

        policies, hooks = tuple(map(move, self.policies)), tuple(map(move, self.hooks))
        asker = moved.setdefault(self.asker, _moved(self.asker, carry))
        return replace(self, policies=policies, hooks=hooks, asker=asker)

    def without(self, interceptors: Sequence[object]) -> Rules:
        """Return these rules but for interceptors that are at work right now: what one of them starts would come back
        to it for ever."""
        if not interceptors:
            return self
        kept = (tuple(fn for fn in chain if not _among(fn, interceptors)) for chain in self.chains)
        return replace(self, chains=Chains(*kept))


_ALLOWED = PermissionDecision(PermissionAction.ALLOW)
_RANK = {PermissionAction.ALLOW: 0, PermissionAction.ASK: 1, PermissionAction.DENY: 2}


def _moved(asker: Asker, carry: Callable[[PermissionCallback], PermissionCallback]) -> Asker:
    return Asker(None if asker.callback is None else carry(asker.callback), iterates=False)


def _own(config: LoopConfig, tools: Mapping[str, Any], callback_above: PermissionCallback | None) -> Rules:
    asker = Asker(config.permission_callback or callback_above)
    policy = config.permissions
    by_default = policy is None and not config.yolo_mode
    if by_default:
        policy = _safe_policy(tools)
    return Rules(
        chains=Chains.of(config.interceptors),
        policies=() if policy is None else (Held(policy, config.yolo_mode, asker),),
        hooks=tuple(Held(runner, config.yolo_mode, asker) for runner in _runners(config.hooks)),
        asker=asker,
        truncation=config.truncation,
        bus=_guarded_bus(config),
        enforces_resumed=config.resumed_approvals == "enforced",
        asks_by_default=by_default,
    )


def _runners(hooks: Any) -> Sequence[Any]:
    if hooks is None:
        return ()
    return hooks if isinstance(hooks, list | tuple) else (hooks,)


def _safe_policy(tools: Mapping[str, Any]) -> PermissionPolicy:
    from chimera.permissions import InteractivePolicy

    return InteractivePolicy.for_tools(tools.values())


def _below(own: Rules, outer: Rules) -> Rules:
    return Rules(
        chains=Chains(*(_joined(above, below) for above, below in zip(outer.chains, own.chains, strict=True))),
        policies=_joined(outer.policies, own.policies),
        hooks=_joined(outer.hooks, own.hooks),
        asker=own.asker if own.asker.callback is not None else Asker(outer.asker.callback),
        truncation=own.truncation or outer.truncation,
        bus=own.bus or outer.bus,
        enforces_resumed=own.enforces_resumed or outer.enforces_resumed,
        asks_by_default=own.asks_by_default or outer.asks_by_default,
    )


def _joined(above: tuple[Any, ...], below: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return `above`, then what only `below` has: a chain that both were given runs once.

    Only the very same thing counts as the same: two policies may be equal and still keep different books.
    """
    return (*above, *(item for item in below if not _among(item, above)))


def _among(item: object, others: Sequence[object]) -> bool:
    return any(_same(item, other) for other in others)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Held) and isinstance(other, Held):
        return one.by is other.by and one.quiet == other.quiet
    if isinstance(one, MethodType) and isinstance(other, MethodType):
        return one.__self__ is other.__self__ and one.__func__ is other.__func__
    return one is other


def _guarded_bus(config: LoopConfig) -> EventBus | None:
    bus = config.event_bus
    if bus is None or config.secrets_redaction is False:
        return bus
    from chimera.secrets import RedactionMiddleware  # compiles its rules: only who publishes events pays for that

    if not bus.uses(RedactionMiddleware):
        bus.use(RedactionMiddleware(), first=True)
    return bus


def _consult(policy: Any, call: ToolCall) -> PermissionDecision:
    try:
        decide = policy.decide if isinstance(policy, PermissionPolicy) else policy.evaluate
        decision = decide(call.name, call.arguments)
    except Exception as exc:
        return _refusal(policy, f"failed: {type(exc).__name__}")
    action = decision.action if isinstance(decision, PermissionDecision) else decision
    if not isinstance(action, PermissionAction):
        if iscoroutine(action):
            action.close()
        return _refusal(policy, f"answered with {type(action).__name__}")
    return decision if isinstance(decision, PermissionDecision) else PermissionDecision(action)


def _refusal(policy: Any, what: str) -> PermissionDecision:
    return PermissionDecision(PermissionAction.DENY, f"the permission policy {interceptor_name(policy)} {what}")
