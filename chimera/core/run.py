"""The state of one run: what it is held to, and what it has counted so far."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Mapping
from copy import copy
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from chimera.core.cancellation import CancellationToken
from chimera.core.decisions import Chains, interceptor_name
from chimera.core.effects import Emit
from chimera.core.identity import RunIdentity
from chimera.core.loop_config import LoopConfig
from chimera.core.loop_events import LoopEvent, LoopEventType
from chimera.core.seams import Observer, Watch
from chimera.errors import BlockedStepsLimit, MisuseError, RunCancelled
from chimera.events import Event, EventBus, InterceptorEvent
from chimera.frozen import freeze
from chimera.permissions.base import PermissionAction, PermissionDecision, PermissionPolicy
from chimera.types import StepResult, ToolCall

__all__ = ["Run"]


class Run:
    """One run under one configuration. Chains, tools and policies are read here, once, and held until it ends.

    `listening` asks for `LoopEvent`s, `streaming` for streamed answers. `env` is what tools are handed.
    """

    def __init__(
        self,
        config: LoopConfig | None,
        provider: Any,
        tools: Iterable[Any] | Mapping[str, Any] | None,
        identity: RunIdentity,
        *,
        root: Path | None = None,
        listening: bool = False,
        streaming: bool = False,
        observer: Observer | None = None,
    ) -> None:
        unchecked = config is None
        config = config or LoopConfig(yolo_mode=True)
        self.config = config
        self.provider = provider
        self.identity = identity
        self.tools = _by_name(tools)
        self.schemas: Any = freeze([tool.schema for tool in self.tools.values()]) if self.tools else None
        self.chains = Chains.of(config.interceptors)
        self.policy = None if unchecked else _policy(config, self.tools)
        self.hooks = config.hooks
        self.middleware = tuple(config.middleware or ())
        self.bus = _guarded_bus(config)
        self.cancellation = config.cancellation or CancellationToken()
        self.root = root
        self.env: Any = None
        self.listening = listening
        self.streaming = streaming
        self.notes: deque[LoopEvent] = deque()
        self.holds_notes = False
        self.observer = observer
        watching = self.bus is not None or listening or observer is not None
        self.watch = Watch(self._observe if watching else None, identity)
        self.step: StepResult | None = None
        self.started = perf_counter()
        self.reason = "completed"
        self.turn = self.steps = self.calls = self.refused_in_a_row = 0
        self.last_input_tokens, self.last_refusal = 0, ""
        self.cost = self.reported_cost = 0.0
        self.usage: dict[str, int] = {"input_tokens": 0, "output_tokens": 0}

    @property
    def stamp(self) -> dict[str, Any]:
        """What every event of this run says of it."""
        who = self.identity
        return {"run_id": who.run_id, "conversation_id": who.conversation_id, "lane": who.lane, "depth": who.depth}

    def note(self, kind: LoopEventType, data: Any) -> None:
        """Queue a `LoopEvent` for whoever listens; `flush` hands it over."""
        if self.listening:
            self.notes.append(LoopEvent(kind, data, self.turn))

    def flush(self) -> Generator[Emit, Any, None]:
        """Hand over what has been noted. For use with `yield from`, guarded by `if run.notes`."""
        while self.notes and not self.holds_notes:
            yield Emit(self.notes.popleft())

    def nested(self) -> Run:
        """Return this run as a call from within a tool sees it: the same in all, but what it notes waits for the
        outer call, which is the one that somebody listens to."""
        inner = copy(self)
        inner.holds_notes = True
        return inner

    def wants(self, event_type: str) -> bool:
        return self.bus is not None and self.bus.wants(event_type)

    def publish(self, event_class: type[Event], **fields: Any) -> None:
        """Publish an event of this run when anybody listens to its type."""
        if self.bus is not None and self.bus.wants(str(event_class.__dataclass_fields__["type"].default)):
            self.bus.publish(event_class(**self.stamp, **fields))

    def check_cancelled(self) -> None:
        if self.cancellation.cancelled:
            raise RunCancelled

    def check_refusals(self) -> None:
        """End a run that a gate refuses everything to: it would go on paying for calls that change nothing."""
        limit = self.config.max_blocked_steps
        if limit and self.refused_in_a_row >= limit:
            raise BlockedStepsLimit(
                f"every tool call of the last {limit} steps was refused; the last time: {self.last_refusal}"
            )

    def permit(self, call: ToolCall) -> PermissionDecision:
        """Ask the policy about the effective call. A policy that raises or answers with junk denies."""
        if self.policy is None:
            return _ALLOWED
        decision = _consult_policy(self.policy, call)
        if decision.action is PermissionAction.ASK and self.config.yolo_mode:
            return PermissionDecision(PermissionAction.ALLOW, decision.reason, decision.rule)
        return decision

    def inherited_config(self, **changes: Any) -> LoopConfig:
        """Return the configuration that a run below this one is held to: these chains, this policy, this bus.

        Raises `MisuseError` for a change of `interceptors`, `permissions`, `yolo_mode` or `hooks`: a child that could
        drop them would be a way around them.
        """
        locked = sorted({"interceptors", "permissions", "yolo_mode", "hooks"} & set(changes))
        if locked:
            raise MisuseError(f"a run below another one cannot change {', '.join(locked)}")
        held: dict[str, Any] = {
            "interceptors": self.chains.as_interceptors(),
            "permissions": self.policy,
            "yolo_mode": self.config.yolo_mode or self.policy is None,
            "cancellation": self.cancellation,
            "message_queue": None,
            "compaction": self.config.compaction,
        }
        return replace(self.config, **held, **changes)

    def count(self, usage: Mapping[str, int]) -> None:
        """Add the usage and the price of one provider call."""
        for key, tokens in usage.items():
            if isinstance(tokens, int):
                self.usage[key] = self.usage.get(key, 0) + tokens
        price = getattr(self.provider, "cost_usd", None)
        if price is not None and usage:
            self.cost += price(usage)

    def _observe(self, event: InterceptorEvent) -> None:
        if self.bus is not None:
            self.bus.publish(event)
        self.note(LoopEventType.INTERCEPTOR, event)
        if self.observer is not None:
            self.observer(event)


_ALLOWED = PermissionDecision(PermissionAction.ALLOW)


def _by_name(tools: Iterable[Any] | Mapping[str, Any] | None) -> dict[str, Any]:
    named: dict[str, Any] = {}
    listed: Iterable[Any] = tools.values() if isinstance(tools, Mapping) else tools or ()
    for tool in listed:
        if tool.name in named:
            kinds = f"{type(named[tool.name]).__qualname__} and {type(tool).__qualname__}"
            raise MisuseError(f"two tools are named {tool.name!r}: {kinds}")
        named[tool.name] = tool
    return named


def _policy(config: LoopConfig, tools: Mapping[str, Any]) -> Any:
    if config.permissions is not None or config.yolo_mode:
        return config.permissions
    from chimera.permissions import InteractivePolicy

    return InteractivePolicy.for_tools(tools.values())


def _guarded_bus(config: LoopConfig) -> EventBus | None:
    bus = config.event_bus
    if bus is None or config.secrets_redaction is False:
        return bus
    from chimera.secrets import RedactionMiddleware  # compiles its rules: only who publishes events pays for that

    if not bus.uses(RedactionMiddleware):
        bus.use(RedactionMiddleware())
    return bus


def _consult_policy(policy: Any, call: ToolCall) -> PermissionDecision:
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
