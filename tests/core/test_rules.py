"""What a run is held to when it starts inside another run's tool: all that the outer run is held to, and more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from chimera.core.agent_loop import AgentLoop
from chimera.core.cancellation import CancellationToken
from chimera.core.context import Context
from chimera.core.decisions import InterceptDecision, Interceptors
from chimera.core.interception import intercepted_complete
from chimera.core.loop import ReAct, async_drain_steps
from chimera.core.loop_config import LoopConfig
from chimera.core.rules import Rules
from chimera.core.tool import BaseTool
from chimera.core.truncation import Truncation
from chimera.errors import ProviderCallBlocked
from chimera.events import Event, EventBus, InterceptorEvent
from chimera.permissions.base import PermissionAction, PermissionPolicy
from chimera.providers.faux import FauxProvider
from chimera.threads import run_coroutine
from chimera.types import Message, PendingApproval, ToolCall, ToolResult
from tests.core.driving import Note, calling, drive, every_mode, held

block = InterceptDecision.block
ALLOW, DENY, ASK = PermissionAction.ALLOW, PermissionAction.DENY, PermissionAction.ASK


class Spawn(BaseTool):
    """Runs a sub-agent in the way that `kind` says, and answers with what its tools answered."""

    name = "spawn"
    effect = "read"
    KINDS = ("run", "steps in a thread", "agent on this loop", "agent on a loop of its own")

    def __init__(self, kind: str, script: Any, tools: Any, config: LoopConfig | None = None) -> None:
        self.kind, self.script, self.tools, self.config = kind, script, list(tools), config
        self.provider = FauxProvider(script)
        if kind == "agent on this loop":
            self.async_execute = self._on_this_loop  # type: ignore[method-assign]

    def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        self.provider, context = FauxProvider(self.script), Context(None, [Message.user("sub-task")])
        if self.kind == "run":
            ReAct(config=self.config).run(self.provider, self.tools, context)
        elif self.kind == "steps in a thread":
            stream = ReAct(config=self.config).async_iter_steps(self.provider, self.tools, context)
            _in_a_fresh_loop(lambda: async_drain_steps(stream))
        else:
            _in_a_fresh_loop(lambda: self._agent(context))
        return self._report(context)

    async def _on_this_loop(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        self.provider, context = FauxProvider(self.script), Context(None, [Message.user("sub-task")])
        await self._agent(context)
        return self._report(context)

    async def _agent(self, context: Context) -> None:
        run = AgentLoop().run(
            (), tools=self.tools, provider=self.provider, system_prompt=None, context=context, config=self.config
        )
        async for _ in run:
            pass

    @staticmethod
    def _report(context: Context) -> ToolResult:
        return ToolResult("; ".join(m.content for m in context.messages if m.role == "tool") or "no tools")


def _in_a_fresh_loop(make: Callable[[], Any]) -> None:
    async def main() -> None:
        await make()

    run_coroutine(main())


class Policy(PermissionPolicy):
    def __init__(self, **actions: PermissionAction) -> None:
        self.actions = actions

    def evaluate(self, tool_name: str, args: Any) -> PermissionAction:
        return self.actions.get(tool_name, ALLOW)


every_kind = pytest.mark.parametrize("kind", Spawn.KINDS)
OPEN = LoopConfig(yolo_mode=True)


@every_mode
@every_kind
@pytest.mark.parametrize("own", [None, OPEN], ids=["unconfigured", "open"])
def test_chains_reach_every_call_of_a_sub_agent(mode: str, kind: str, own: LoopConfig | None) -> None:
    met: list[str] = []

    def on(seam: str) -> Any:
        def interceptor(*values: Any) -> InterceptDecision | None:
            met.append(seam)
            first = values[0]
            return block("not below") if isinstance(first, ToolCall) and first.name == "note" else None

        return [interceptor]

    seams = ("context", "provider_request", "tool_call", "tool_result")
    note, free = Note(), Note("free")
    spawn = Spawn(kind, [calling("note", "free"), "child done"], [note, free], own)
    ran = drive(mode, [calling("spawn"), "done"], [spawn], held(Interceptors(**{seam: on(seam) for seam in seams})))
    assert note.entered == []
    assert ran.answers == ["Blocked by interceptor: not below; noted"]
    assert [met.count(seam) for seam in seams] == [4, 4, 3, 2]
    assert [(event.tool_name, event.depth) for event in ran.decisions] == [("note", 1)]
    control = Note()
    drive(mode, [calling("spawn"), "done"], [Spawn(kind, [calling("note"), "x"], [control], own)], held())
    assert len(control.entered) == 1


@every_mode
@every_kind
@pytest.mark.parametrize("seam", ["context", "provider_request"])
def test_nothing_of_a_sub_agent_is_sent_past_a_block(mode: str, kind: str, seam: str) -> None:
    def gate(value: Any) -> InterceptDecision | None:
        messages = value if isinstance(value, list) else value.messages
        return block("secret task") if "sub-task" in str(messages) else None

    chain: list[Any] = [gate]
    spawn = Spawn(kind, ["never"], [])
    ran = drive(mode, [calling("spawn"), "done"], [spawn], held(Interceptors(**{seam: chain})))
    assert spawn.provider.requests == []
    assert ran.output == "done"


@every_mode
@every_kind
@pytest.mark.parametrize("own", [None, OPEN], ids=["unconfigured", "open"])
def test_denials_and_questions_reach_a_sub_agent(mode: str, kind: str, own: LoopConfig | None) -> None:
    asked: list[str] = []
    homes: list[Any] = []

    async def ask(approval: PendingApproval) -> bool:
        homes.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        asked.append(approval.tool_name)
        return True

    denied, queried = Note("denied"), Note("queried")
    spawn = Spawn(kind, [calling("denied", "queried"), "child done"], [denied, queried], own)
    config = LoopConfig(Policy(denied=DENY, queried=ASK, spawn=ASK), permission_callback=ask)
    ran = drive(mode, [calling("spawn"), "done"], [spawn], config)
    assert (denied.entered, len(queried.entered), asked) == ([], 1, ["spawn", "queried"])
    assert ran.answers == ["Permission denied: denied is not allowed; noted"]
    if mode not in ("run", "iter_steps"):
        assert len(set(homes)) == 1, "whoever is asked is asked on the event loop that the outer run lives on"


@every_mode
@every_kind
def test_the_safe_default_judges_the_tools_of_the_sub_agent_too(mode: str, kind: str) -> None:
    """A tool that only the sub-agent has is not among those that the outer policy was made for."""
    writes = Note("writes", effect="write")
    spawn = Spawn(kind, [calling("writes"), "child done"], [writes], OPEN)
    ran = drive(mode, [calling("spawn"), "done"], [spawn], LoopConfig())
    assert writes.entered == []
    assert "nobody is there to be asked" in ran.answers[0]


@every_mode
@every_kind
def test_own_rules_come_on_top(mode: str, kind: str) -> None:
    order: list[str] = []
    chains = [Interceptors(tool_call=[lambda _, who=who: order.append(who)]) for who in ("outer", "own")]
    note = Note(says="x" * 500)
    own = LoopConfig(Policy(gone=DENY), chains[1], truncation=Truncation(100))
    spawn = Spawn(kind, [calling("note", "gone"), "child done"], [note, Note("gone")], own)
    ran = drive(mode, [calling("spawn"), "done"], [spawn], held(chains[0]))
    assert order == ["outer", "outer", "own", "outer", "own"]
    assert "Permission denied: gone is not allowed" in ran.answers[0]
    assert len(ran.answers[0]) < 200


@every_mode
@every_kind
def test_a_chain_that_both_were_given_runs_once(mode: str, kind: str) -> None:
    met: list[str] = []

    class Pack:
        def gate(self, call: ToolCall) -> None:
            met.append(call.name)

    pack = Pack()
    shared = Interceptors(tool_call=[pack.gate])
    again = Interceptors(tool_call=[pack.gate])
    for own in (held(shared), held(again)):
        met.clear()
        spawn = Spawn(kind, [calling("note"), "child done"], [Note()], own)
        drive(mode, [calling("spawn"), "done"], [spawn], held(shared))
        assert met == ["spawn", "note"]


@dataclass(frozen=True)
class Equal:
    """A policy of which two are equal and each keeps its own books."""

    met: Any = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal)

    def __hash__(self) -> int:
        return 0

    def __call__(self, call: ToolCall) -> None:
        self.met.append(call.name)


def test_only_the_very_same_interceptor_counts_as_the_same() -> None:
    outer, own = Equal([]), Equal([])
    spawn = Spawn("run", [calling("note"), "x"], [Note()], held(Interceptors(tool_call=[own])))
    drive("run", [calling("spawn"), "done"], [spawn], held(Interceptors(tool_call=[outer])))
    assert (outer.met, own.met) == (["spawn", "note"], ["note"])


@every_mode
@every_kind
def test_a_sub_agent_stops_with_its_parent_and_leaves_other_switches_alone(mode: str, kind: str) -> None:
    outer, own = CancellationToken(), CancellationToken()
    chains = Interceptors(tool_call=[lambda call: outer.cancel() if call.name == "note" else None])
    note = Note()
    spawn = Spawn(kind, [calling("note"), "never"], [note], held(cancellation=own))
    ran = drive(mode, [calling("spawn"), "never"], [spawn], held(chains, cancellation=outer))
    assert not ran.success
    assert note.entered == []
    assert len(spawn.provider.requests) == 1
    assert not own.cancelled


@pytest.mark.parametrize("mode", ["async_iter_steps", "agent"])
@pytest.mark.parametrize("kind", ["agent on this loop", "agent on a loop of its own"])
def test_a_waiting_provider_call_of_a_sub_agent_is_given_up_too(mode: str, kind: str) -> None:
    token, started = CancellationToken(), threading.Event()

    class Slow(FauxProvider):
        async def async_complete(self, *_: Any, **__: Any) -> Any:
            started.set()
            await asyncio.sleep(10)

    class SpawnSlow(Spawn):
        async def _agent(self, context: Context) -> None:
            self.provider = Slow()
            await super()._agent(context)

        def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
            context = Context()
            _in_a_fresh_loop(lambda: self._agent(context))
            return ToolResult("over")

    def cancel() -> None:
        started.wait(10)
        token.cancel()

    threading.Thread(target=cancel).start()
    ran = drive(mode, [calling("spawn"), "never"], [SpawnSlow(kind, [], [])], held(cancellation=token))
    assert not ran.success


@every_mode
def test_one_provider_call_by_hand_inside_a_tool_meets_the_seams_too(mode: str) -> None:
    inner = FauxProvider("answer")

    class Asks(BaseTool):
        name = "asks"

        def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
            try:
                return ToolResult(intercepted_complete(inner, [Message.user("leak this")]).content)
            except ProviderCallBlocked as exc:
                return ToolResult("", str(exc))

    gate = Interceptors(context=[lambda messages: block("no leaks") if "leak" in str(messages) else None])
    ran = drive(mode, [calling("asks")], [Asks()], held(gate), max_steps=1)
    assert (ran.answers, inner.requests) == (["Blocked by interceptor: no leaks"], [])
    assert drive(mode, [calling("asks")], [Asks()], held(), max_steps=1).answers == ["answer"]


@every_mode
@every_kind
def test_approvals_that_are_enforced_above_are_enforced_below(mode: str, kind: str) -> None:
    assert Rules.of(held(), {}, Rules.of(held(resumed_approvals="enforced"), {})).enforces_resumed
    bus = EventBus()
    heard: list[Any] = []
    bus.subscribe("interceptor", heard.append)
    spawn = Spawn(kind, [calling("note"), "x"], [Note()])
    chains = Interceptors(tool_call=[lambda call: block("no") if call.name == "note" else None])
    drive(mode, [calling("spawn"), "done"], [spawn], held(chains, event_bus=bus, secrets_redaction=False))
    assert len(heard) == 1, "a decision below is told once on the bus that both have"


def test_records_are_redacted_before_any_other_middleware_sees_them() -> None:
    """One that was there first could write down what must not be written down."""
    bus = EventBus()
    seen: list[Any] = []

    def note(event: Event) -> Event:
        seen.append(event)
        return event

    bus.use(note)
    bus.subscribe("*", lambda event: None)
    Rules.of(LoopConfig(event_bus=bus, yolo_mode=True), {})
    secret = "sk-" + "a1b2c3d4" * 3
    bus.publish(InterceptorEvent(seam="tool_call", reason=f"holds {secret}"))
    assert secret not in str(seen)
    Rules.of(LoopConfig(event_bus=(plain := EventBus()), yolo_mode=True, secrets_redaction=False), {})
    plain.use(note)
    plain.subscribe("*", lambda event: None)
    plain.publish(InterceptorEvent(seam="tool_call", reason=f"holds {secret}"))
    assert secret in str(seen)
