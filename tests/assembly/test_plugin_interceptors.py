"""The merge contract on the assembled stack: plugins first, the host last, read at the start of every turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chimera.assembly import AgentDriver, CodingAgent
from chimera.assembly.loop_adapter import REAL_LOOPS
from chimera.core import InterceptDecision, Interceptors, ProviderRequest
from chimera.core.loop_events import LoopEventType
from chimera.core.tool import BaseTool
from chimera.plugins import BasePlugin, PluginExtensionRegistry, PluginManager
from chimera.plugins.packs import PlanGatePlugin
from chimera.providers.faux import FauxProvider
from chimera.session import AgentSession
from chimera.testing import create_assembled_harness
from chimera.tools.think import ThinkTool
from chimera.types import Message, ToolCall, ToolResult
from tests.assembly.lanes import PLUGIN_LOOPS, every_lane, load_loop, prepared, scene_of
from tests.core.loops.scenes import Probe

ECHO_ONCE: list[Any] = [{"tool_calls": [{"name": "echo", "arguments": {"text": "hi"}}]}, "done"]


class Echo(BaseTool):
    name = "echo"
    parameters = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}  # noqa: RUF012

    def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        return ToolResult(args["text"])


class OneSeam(BasePlugin):
    """A plugin with one interceptor."""

    def __init__(self, name: str, seam: str, fn: Callable[..., Any]) -> None:
        self._name, self.seam, self.fn = name, seam, fn

    @property
    def name(self) -> str:
        return self._name

    def register_interceptors(self, registry: Any) -> None:
        PluginExtensionRegistry.register_interceptor(self.seam, self.fn)

    def deactivate(self) -> None:
        PluginExtensionRegistry.unregister_interceptor(self.seam, self.fn)


def appender(mark: str) -> Callable[[ToolCall], InterceptDecision]:
    def append(call: ToolCall) -> InterceptDecision:
        return InterceptDecision.replace(ToolCall(call.id, call.name, {"text": call.arguments["text"] + mark}))

    return append


def blocker(reason: str, log: list[str] | None = None) -> Callable[[ToolCall], InterceptDecision]:
    def block(call: ToolCall) -> InterceptDecision:
        if log is not None:
            log.append(reason)
        return InterceptDecision.block(reason)

    return block


def driver(script: Any = ECHO_ONCE, **kwargs: Any) -> AgentDriver:
    return AgentDriver(provider=FauxProvider(script), tools_override=[Echo()], interactive=False, **kwargs)


def tool_messages(history: list[Message]) -> list[str]:
    return [message.content for message in history if message.role == "tool"]


def test_nothing_registered_means_none() -> None:
    assert driver().agent._effective_interceptors() is None


def test_host_chains_alone_pass_through_as_the_same_object() -> None:
    host = Interceptors(tool_call=[appender("h")])
    assert driver(interceptors=host).agent._effective_interceptors() is host


def test_plugins_come_first_in_load_order_and_the_host_last() -> None:
    manager = PluginManager()
    manager.load_plugin(OneSeam("first", "tool_call", appender("1")))
    manager.load_plugin(OneSeam("second", "tool_call", appender("2")))
    agent = driver(interceptors=Interceptors(tool_call=[appender("h")]))
    asyncio.run(agent.send("go"))
    assert tool_messages(agent.history) == ["hi12h"]


def test_the_host_sees_the_plugin_effective_value() -> None:
    seen: list[str] = []

    def look(call: ToolCall) -> None:
        seen.append(call.arguments["text"])

    PluginManager().load_plugin(OneSeam("p", "tool_call", appender("+plugin")))
    asyncio.run(driver(interceptors=Interceptors(tool_call=[look])).send("go"))
    assert seen == ["hi+plugin"]


def test_a_plugin_block_is_terminal_and_the_host_is_not_consulted() -> None:
    log: list[str] = []
    PluginManager().load_plugin(OneSeam("p", "tool_call", blocker("plugin")))
    agent = driver(interceptors=Interceptors(tool_call=[blocker("host", log)]))
    asyncio.run(agent.send("go"))
    assert tool_messages(agent.history) == ["Blocked by interceptor: plugin"]
    assert log == []


def test_a_host_block_cannot_be_undone_by_a_plugin() -> None:
    PluginManager().load_plugin(OneSeam("p", "tool_call", lambda call: InterceptDecision.allow()))
    agent = driver(interceptors=Interceptors(tool_call=[blocker("host")]))
    asyncio.run(agent.send("go"))
    assert tool_messages(agent.history) == ["Blocked by interceptor: host"]


@pytest.mark.parametrize(
    "make",
    [lambda **kw: CodingAgent(**kw), lambda **kw: AgentDriver(**kw).agent, lambda **kw: AgentSession(**kw).agent],
)
def test_every_front_door_takes_up_loaded_plugins(make: Callable[..., CodingAgent]) -> None:
    PluginManager().load_plugin(OneSeam("p", "tool_call", blocker("gated")))
    agent = make(provider=FauxProvider(ECHO_ONCE), tools_override=[Echo()])
    result = asyncio.run(agent.run("go"))
    assert tool_messages(result.messages) == ["Blocked by interceptor: gated"]


def test_loading_and_unloading_between_turns_takes_effect_on_the_next_turn() -> None:
    manager = PluginManager()
    agent = driver([*ECHO_ONCE, *ECHO_ONCE, *ECHO_ONCE])
    asyncio.run(agent.send("one"))
    manager.load_plugin(OneSeam("p", "tool_call", blocker("gated")))
    asyncio.run(agent.send("two"))
    manager.unload("p")
    asyncio.run(agent.send("three"))
    assert tool_messages(agent.history) == ["hi", "Blocked by interceptor: gated", "hi"]


@pytest.mark.parametrize("loads", [True, False], ids=["load", "unload"])
def test_a_change_in_the_middle_of_a_turn_waits_for_the_next_one(loads: bool) -> None:
    manager = PluginManager()
    gate = OneSeam("p", "tool_call", blocker("gated"))

    class Switch(BaseTool):
        name = "switch"

        def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
            manager.load_plugin(gate) if loads else manager.unload("p")
            return ToolResult("switched")

    host = Interceptors(tool_call=[])
    if not loads:
        gate = OneSeam("p", "tool_call", lambda call: blocker("gated")(call) if call.name == "echo" else None)
        manager.load_plugin(gate)
    script: list[Any] = [
        {"tool_calls": [{"name": "switch", "arguments": {}}]},
        {"tool_calls": [{"name": "echo", "arguments": {"text": "same turn"}}]},
        "done",
        {"tool_calls": [{"name": "echo", "arguments": {"text": "next turn"}}]},
        "done",
    ]
    agent = AgentDriver(provider=FauxProvider(script), tools_override=[Echo(), Switch()], interceptors=host)
    asyncio.run(agent.send("one"))
    asyncio.run(agent.send("two"))
    blocked = "Blocked by interceptor: gated"
    expected = ["same turn", blocked] if loads else [blocked, "next turn"]
    assert tool_messages(agent.history)[1:] == expected


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("seam", ["context", "provider_request"])
def test_a_plugin_block_before_the_provider_ends_the_turn_with_its_reason(seam: str, stream: bool) -> None:
    PluginManager().load_plugin(OneSeam("p", seam, lambda value: InterceptDecision.block("closed")))
    with create_assembled_harness("never", stream=stream) as harness:
        run = harness.run("go")
        assert run.reason == "interceptor_blocked: closed"
        assert run.output == "Blocked by interceptor: closed"
        assert harness.provider.requests == []


def test_decisions_are_loop_events_of_the_assembled_agent() -> None:
    PluginManager().load_plugin(OneSeam("p", "tool_call", blocker("gated")))
    with create_assembled_harness(ECHO_ONCE, tools=[Echo()]) as harness:
        run = harness.run("go")
    [decision] = run.decisions
    assert (decision.seam, decision.decision, decision.reason) == ("tool_call", "blocked", "gated")
    assert (decision.tool_name, decision.call_id) == ("echo", run.tool_calls[0].id)
    assert decision.conversation_id
    assert [event.type for event in run.events].count(LoopEventType.RESULT) == 1


def test_without_policy_the_transcript_is_that_of_an_agent_without_seams(tmp_path: Path) -> None:
    def one(interceptors: Interceptors | None) -> tuple[list[Message], list[Any]]:
        agent = driver(interceptors=interceptors)
        asyncio.run(agent.send("go"))
        return agent.history, [(request.messages, request.kwargs) for request in agent.agent.provider.requests]

    assert one(None) == one(Interceptors())


def test_a_wire_rewrite_by_a_plugin_leaves_the_durable_conversation_alone() -> None:
    def scrub(request: ProviderRequest) -> InterceptDecision:
        messages = [
            Message(m.role, m.content.replace("secret", "[gone]"), m.tool_calls, m.call_id) for m in request.messages
        ]
        return InterceptDecision.replace(ProviderRequest(request.model, messages, request.tools, request.kwargs))

    PluginManager().load_plugin(OneSeam("p", "provider_request", scrub))
    with create_assembled_harness("ok") as harness:
        run = harness.run("a secret")
        assert harness.provider.requests[0].messages[-1].content == "a [gone]"
        assert run.messages[0].content == "a secret"


@every_lane
def test_a_loaded_policy_gates_every_lane(name: str) -> None:
    """Loaded between turns it takes effect on the next one, in whichever loop; unloaded it is gone."""
    provider = FauxProvider([step if isinstance(step, str) else {"text": "no"} for step in scene_of(name).script])
    if name in PLUGIN_LOOPS:
        load_loop(name)
    manager, agent = PluginManager(), AgentDriver(provider=provider, tools_override=[Echo()], loop=name)
    asyncio.run(agent.send("one"))
    before = len(provider.requests)
    manager.load_plugin(OneSeam("p", "context", lambda messages: InterceptDecision.block("closed")))
    blocked = asyncio.run(agent.send("two"))
    assert (blocked.reason, blocked.output) == ("interceptor_blocked: closed", "Blocked by interceptor: closed")
    assert len(provider.requests) == before
    manager.unload("p")
    assert asyncio.run(agent.send("three")).reason == "completed"


@every_lane
def test_a_tool_gate_of_a_plugin_is_read_as_a_denial_in_every_lane(name: str) -> None:
    PluginManager().load_plugin(OneSeam("p", "tool_call", blocker("gated")))
    provider, probe = prepared(name), Probe()
    agent = CodingAgent(provider=provider, tools_override=[probe], loop=name)
    result = asyncio.run(agent.run("go"))
    assert probe.entered == []
    assert set(tool_messages(result.messages)) == {"Blocked by interceptor: gated"}


@pytest.mark.parametrize("name", REAL_LOOPS)
def test_a_plan_gate_holds_in_every_strategy(name: str) -> None:
    """Writing is refused until a plan is recorded, and what the loop says in its own name closes the gate again."""
    PluginManager().load_plugin(PlanGatePlugin(gated_tools=["probe"]))
    think = {"tool_calls": [{"name": "think", "arguments": {"thought": "a plan"}}]}
    write: Any = {"tool_calls": [{"name": "probe", "arguments": {}}]}
    each = 3 if name == "tot" else 1
    provider, probe = FauxProvider([step for step in (write, think, write, "done") for _ in range(each)]), Probe()
    agent = CodingAgent(provider=provider, tools_override=[probe, ThinkTool()], loop=name)
    result = asyncio.run(agent.run("go"))
    refused, _, allowed = tool_messages(result.messages)
    assert refused.startswith("Blocked by interceptor: plan-gate: no plan has been recorded")
    assert allowed == "the probe says 1"
    assert len(probe.entered) == 1
