"""The state of one run: what it is held to, and what it has counted so far."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from chimera.core.arguments import Validator, validator_for
from chimera.core.asking import AtHome, is_asynchronous, running_loop
from chimera.core.cancellation import CancellationToken, RunToken
from chimera.core.effects import Emit
from chimera.core.identity import RunIdentity, being_asked, new_id
from chimera.core.loop_config import LoopConfig, PermissionCallback
from chimera.core.loop_events import LoopEvent, LoopEventType
from chimera.core.rules import Rules
from chimera.core.seams import Watch
from chimera.core.tool import parameters_of, schema_of
from chimera.core.versions import versions_in
from chimera.errors import BlockedStepsLimit, MisuseError, RunCancelled
from chimera.events import Event, EventBus, InterceptorEvent
from chimera.frozen import freeze
from chimera.types import Message, PendingApproval, StepResult

__all__ = ["Run", "enclosing"]

enclosing: ContextVar[Run | None] = ContextVar("chimera_enclosing_run", default=None)
"""The run whose tool body is executing; set by the drivers."""


class Run:
    """One run under one configuration. Chains, tools and policies are read here, once, and held until it ends.

    `conversation_id` names the conversation that it goes on with. `listening` asks for `LoopEvent`s, `streaming` for
    streamed answers. `env` is what tools are handed. A run that starts inside another run's tool is held to that
    run's rules too, is cancelled with it, and shows it its decisions.
    """

    __slots__ = (
        *("_validators", "calls", "cancellation", "config", "cost", "env", "heard", "held_step", "home", "identity"),
        *("iterated", "last_input_tokens", "last_refusal", "listening", "message", "nesting", "notes", "outer"),
        *("policies", "provider", "publishes", "reason", "refused_in_a_row", "reported_cost", "root", "rules"),
        *("schemas", "shapes_turns", "started", "steps", "streaming", "told", "tools", "turn", "usage", "watch"),
    )

    def __init__(
        self,
        config: LoopConfig | None,
        provider: Any,
        tools: Iterable[Any] | Mapping[str, Any] | None,
        *,
        conversation_id: str,
        loop: str = "",
        lane: str = "",
        root: Path | None = None,
        listening: bool = False,
        streaming: bool = False,
    ) -> None:
        outer: Run | None = enclosing.get()
        self.outer = outer
        self.config = LoopConfig(yolo_mode=True) if config is None else copy(config)
        self.provider = provider
        self.offer(tools)
        self.rules: Rules = Rules.of(config, self.tools, outer.rules_below().without(being_asked()) if outer else None)
        self.policies = tuple(map(str, versions_in(self.rules.chains)))
        self.cancellation: RunToken = RunToken(self.config.cancellation, outer.cancellation if outer else None)
        self.home: AbstractEventLoop | None = None
        self.identity = _identity(outer, conversation_id, loop, lane)
        self.root = root
        self.env: Any = None
        self.listening = listening
        self.publishes = self.rules.bus is not None
        self.heard = listening or self.publishes  # where nobody hears, nothing is put together to be told
        self.iterated = not listening  # whether somebody takes its steps; whoever hears events has heard of them
        self.streaming = streaming
        config = self.config
        self.shapes_turns = bool(config.middleware) or config.compaction is not None or config.message_queue is not None
        self.notes: deque[Any] = deque()  # events, and steps for whoever iterates
        self.told = Emit(self.notes)
        """The effect that hands over what has been noted."""
        self.nesting = 0
        watched = self.rules.bus is not None or listening or (outer is not None and outer.watch.observe is not None)
        shows = listening or (outer is not None and outer.watch.shows_changes)
        self.watch: Watch = Watch(self.observe if watched else None, self.identity, shows)
        self.message: Message | None = None  # the one whose calls are being run
        self.held_step: StepResult | None = None
        self.started = perf_counter()
        self.reason = "completed"
        self.turn = self.steps = self.calls = self.refused_in_a_row = 0
        self.last_input_tokens, self.last_refusal = 0, ""
        self.cost = self.reported_cost = 0.0
        self.usage: dict[str, int] = {"input_tokens": 0, "output_tokens": 0}

    def offer(self, tools: Iterable[Any] | Mapping[str, Any] | None) -> None:
        """Let these be the tools of the run from now on. Raises `MisuseError` when two have one name."""
        self.tools = _by_name(tools)
        self.schemas: Any = freeze([schema_of(tool) for tool in self.tools.values()]) if self.tools else None
        self._validators: dict[str, Validator] = {}

    def validator(self, tool: Any) -> Validator:
        """Return the check of a tool's arguments. Raises `MisuseError` when the schema of the tool is wrong."""
        validate = self._validators.get(tool.name)
        if validate is None:
            validate = self._validators[tool.name] = validator_for(tool.name, parameters_of(tool))
        return validate

    @property
    def stamp(self) -> dict[str, Any]:
        """What every event of this run says of it."""
        who = self.identity
        return {"run_id": who.run_id, "conversation_id": who.conversation_id, "lane": who.lane, "depth": who.depth}

    def note(self, kind: LoopEventType, data: Any) -> None:
        """Queue a `LoopEvent` for whoever listens; they get it when `told` is yielded."""
        if self.listening:
            self.notes.append(LoopEvent(kind, data, self.turn))

    def nested(self) -> Run:
        """Return this run as a call from within a tool sees it: the same in all, but it hands over nothing: what it
        notes waits for the outer call, which is the one that somebody listens to."""
        inner = copy(self)
        inner.told = Emit(deque())
        inner.nesting += 1
        inner.rules = self.rules_below()
        return inner

    def rules_below(self) -> Rules:
        """Return the rules for what starts inside a tool of this run, in whichever thread: a coroutine function that
        answers questions is still awaited on the event loop that this run lives on."""
        home = self.home
        away = home is not None and running_loop() is not home

        def carry(callback: PermissionCallback) -> PermissionCallback:
            if home is None or not away or not is_asynchronous(callback):
                return callback
            return AtHome(callback, home, self.cancellation)

        return self.rules.for_runs_below(carry)

    @property
    def signal(self) -> CancellationToken | None:
        """What a driver has to watch while it waits; None when nobody but the driver itself can cancel the run."""
        return self.cancellation if self.cancellation.followed else None

    def wants(self, event_type: str) -> bool:
        return self.rules.bus is not None and self.rules.bus.wants(event_type)

    def pending(self, approval: PendingApproval) -> StepResult:
        """Return the step that is under way, as those who iterate see it while a call of it waits for a person."""
        message = self.message
        calls = [] if message is None else list(message.tool_calls)
        step = 0 if message is None else self.steps + 1
        return StepResult(message, calls, step=step, pending_approval=approval)

    def publish(self, event_class: type[Event], **fields: Any) -> None:
        """Publish an event of this run when anybody listens to its type."""
        bus = self.rules.bus
        if bus is not None and bus.wants(str(event_class.__dataclass_fields__["type"].default)):
            bus.publish(event_class(**self.stamp, **fields))

    def observe(self, event: InterceptorEvent, heard_by: EventBus | None = None) -> None:
        """Tell of a decision: on the bus, to whoever listens, and to the run above.

        What a policy took out of a value is for whoever listens; the bus, which feeds records, is not told.
        """
        bus = self.rules.bus
        if bus is not None and bus is not heard_by:
            bus.publish(event if event.before is event.after else replace(event, before=None, after=None))
        self.note(LoopEventType.INTERCEPTOR, event)
        if self.outer is not None:
            self.outer.observe(event, heard_by=bus)

    def check_cancelled(self) -> None:
        if self.cancellation.cancelled:
            raise RunCancelled

    def begin_turn(self) -> None:
        """Count a turn of the model, unless the run is over: cancelled, or a gate refuses everything to it.

        Without that limit it would go on paying for calls that change nothing.
        """
        if self.cancellation.cancelled:
            raise RunCancelled
        if self.refused_in_a_row:
            self._check_refusals()
        self.turn += 1

    def _check_refusals(self) -> None:
        limit = self.config.max_blocked_steps
        if limit and self.refused_in_a_row >= limit:
            raise BlockedStepsLimit(
                f"every tool call of the last {limit} steps was refused; the last time: {self.last_refusal}"
            )

    def count(self, usage: Mapping[str, int]) -> None:
        """Add the usage and the price of one provider call."""
        for key, tokens in usage.items():
            if isinstance(tokens, int):
                self.usage[key] = self.usage.get(key, 0) + tokens
        price = getattr(self.provider, "cost_usd", None)
        if callable(price) and usage:
            self.cost += price(usage)


def _by_name(tools: Iterable[Any] | Mapping[str, Any] | None) -> dict[str, Any]:
    named: dict[str, Any] = {}
    listed: Iterable[Any] = tools.values() if isinstance(tools, Mapping) else tools or ()
    for tool in listed:
        if isinstance(tool, type):
            raise MisuseError(f"{tool.__qualname__} is no tool but the class of one: call it")
        if not isinstance(getattr(tool, "name", None), str) or not tool.name:
            raise MisuseError(f"{tool!r} is no tool: it has no name; make one with BaseTool or @tool")
        if tool.name in named:
            kinds = f"{type(named[tool.name]).__qualname__} and {type(tool).__qualname__}"
            raise MisuseError(f"two tools are named {tool.name!r}: {kinds}")
        named[tool.name] = tool
    return named


def _identity(outer: Run | None, conversation_id: str, loop: str, lane: str) -> RunIdentity:
    if outer is None:
        return RunIdentity(new_id("run"), conversation_id, lane=lane, loop=loop)
    above = outer.identity
    return RunIdentity(new_id("run"), conversation_id, above.depth + 1, above.run_id, lane or above.lane, loop)
