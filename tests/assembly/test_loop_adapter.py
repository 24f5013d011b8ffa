"""Lanes: every loop that can run in one, under the chains of the lane, as a stream with exactly one result."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from chimera.assembly import AgentDriver, CodingAgent
from chimera.assembly.loop_adapter import REAL_LOOPS, _made, adapt_loop, is_real_loop, lane_of, loop_names
from chimera.core.context import Context
from chimera.core.interception import InterceptDecision, Interceptors, current_run
from chimera.core.loop import Loop, ReAct
from chimera.core.loop_config import LoopConfig
from chimera.core.loop_events import LoopEventType
from chimera.core.tool import BaseTool
from chimera.errors import MisuseError
from chimera.plugins import PluginExtensionRegistry
from chimera.providers.faux import FauxProvider
from chimera.types import Message, ToolCall, ToolResult
from tests.assembly.lanes import (
    LANES,
    PLUGIN_LOOPS,
    every_lane,
    internal_calls,
    load_loop,
    of_type,
    prepared,
    result_of,
    run_lane,
    scene_of,
)
from tests.core.loops.marks import marking, seen_by_body, seen_by_request, tool_messages
from tests.core.loops.scenes import DRIVES, Probe, calls

T = LoopEventType
every_real_loop = pytest.mark.parametrize("name", REAL_LOOPS)


class Write(Probe):
    def __init__(self) -> None:
        super().__init__()
        self.effect = "write"  # type: ignore[assignment]


@every_lane
def test_every_call_of_a_lane_meets_every_seam(name: str) -> None:
    provider, probe = prepared(name), Probe()
    events = run_lane(name, provider, [probe], interceptors=marking())
    assert result_of(events).reason == "completed"
    seen = [seen_by_request(request) for request in provider.requests]
    assert seen.count({"context", "provider_request"}) == len(provider.requests) - internal_calls(name)
    assert seen.count(set()) == internal_calls(name)
    answers = tool_messages(result_of(events).messages)
    assert probe.entered
    for arguments, answer in zip(probe.entered, answers, strict=True):
        assert seen_by_body(arguments, answer) == {"tool_call", "tool_result"}


@every_lane
@pytest.mark.parametrize("seam", ["context", "provider_request"])
def test_a_block_before_a_call_ends_the_lane(name: str, seam: str) -> None:
    chains = Interceptors()
    getattr(chains, seam).append(lambda value: InterceptDecision.block("closed"))
    provider = prepared(name)
    events = run_lane(name, provider, [Probe()], interceptors=chains)
    result = result_of(events)
    assert result.reason == "interceptor_blocked: closed"
    assert result.output == "Blocked by interceptor: closed"
    assert not result.success
    assert provider.requests == []
    [decision] = of_type(events, T.INTERCEPTOR)
    assert (decision.seam, decision.decision, decision.reason) == (seam, "blocked", "closed")


@every_lane
def test_decisions_are_shown_as_events(name: str) -> None:
    def gate(call: ToolCall) -> InterceptDecision:
        return InterceptDecision.block("gated")

    events = run_lane(name, prepared(name), [Probe()], interceptors=Interceptors(tool_call=[gate]))
    decisions = of_type(events, T.INTERCEPTOR)
    assert decisions
    assert {(event.seam, event.decision, event.reason, event.tool_name) for event in decisions} == {
        ("tool_call", "blocked", "gated", "probe")
    }
    results = of_type(events, T.TOOL_RESULT)
    assert {result.error for _, result in results} == {"Blocked by interceptor: gated"}
    assert len(results) == len(decisions)


@every_lane
def test_the_events_tell_the_conversation(name: str) -> None:
    events = run_lane(name, prepared(name), [Probe()])
    messages = result_of(events).messages
    assert of_type(events, T.ASSISTANT) == [message for message in messages if message.role == "assistant"]
    assert [result.output for _, result in of_type(events, T.TOOL_RESULT)] == tool_messages(messages)
    assert of_type(events, T.TOOL_USE) == [call for message in messages for call in message.tool_calls]


@every_lane
def test_without_chains_nothing_differs(name: str) -> None:
    def observed(chains: Interceptors | None) -> tuple[Any, ...]:
        PluginExtensionRegistry._reset()
        provider, probe = prepared(name), Probe()
        result = result_of(run_lane(name, provider, [probe], interceptors=chains))
        return provider.requests, result.messages, result.reason, result.output, probe.entered

    plain = observed(None)
    assert observed(Interceptors()) == plain
    allow: list[Any] = [lambda *_: InterceptDecision.allow()]
    assert observed(Interceptors(allow, allow, allow, allow)) == plain
    if name in REAL_LOOPS:
        provider = prepared(name)
        ran = DRIVES["run"](scene_of(name).make(None), provider, [Probe()])
        assert (provider.requests, ran.context.messages) == plain[:2]


@every_real_loop
def test_a_loop_is_built_without_a_configuration_unless_there_are_chains(name: str) -> None:
    from chimera.assembly.loop_adapter import _SHIPPED

    assert _made(_SHIPPED[name], 7, None).config is None
    config = LoopConfig(interceptors=marking(), yolo_mode=True)
    loop = _made(_SHIPPED[name], 7, config)
    assert (loop.config, loop.max_steps, loop.name) == (config, 7, name)


def test_the_configuration_carries_the_chains_as_they_are_and_nothing_else() -> None:
    """The adapter merges nothing: with a plugin's chain loaded, the loop is still handed what the caller passed."""
    PluginExtensionRegistry.register_interceptor("tool_call", lambda call: InterceptDecision.block("not merged"))
    given: list[LoopConfig | None] = []

    def keep(config: LoopConfig | None = None) -> Loop:
        given.append(config)
        return ReAct(9, config)

    load_loop("kept", keep)
    chains = marking()
    probe = Probe()
    for interceptors in (chains, None, Interceptors()):
        run_lane("kept", FauxProvider([calls(), "done"]), [probe], interceptors=interceptors)
    config, *others = given
    assert others == [None, None]
    assert config is not None
    assert config.interceptors is chains
    default = LoopConfig()
    differing = {field.name for field in fields(config) if getattr(config, field.name) != getattr(default, field.name)}
    assert differing == {"interceptors", "yolo_mode"}
    assert len(probe.entered) == 3


@every_lane
@pytest.mark.parametrize("interceptors", [None, marking()], ids=["bare", "chains"])
def test_lanes_check_no_permissions(name: str, interceptors: Interceptors | None) -> None:
    tool = Write()
    run_lane(name, prepared(name), [tool], interceptors=interceptors)
    assert tool.entered


@every_lane
def test_interceptors_know_the_lane(name: str) -> None:
    met: list[Any] = []

    def note(*_: Any) -> None:
        met.append(current_run())

    context = Context()
    chains = Interceptors([note], [note], [note], [note])
    run_lane(name, prepared(name), [Probe()], interceptors=chains, context=context, lane="left")
    assert {who.lane for who in met} == {"left"}
    assert {who.conversation_id for who in met} == {context.conversation_id}


@every_lane
def test_usage_and_cost_are_told(name: str) -> None:
    if name in PLUGIN_LOOPS:
        load_loop(name)
    script = [{"text": "done", "usage": {"input_tokens": 3, "output_tokens": 1}}]
    provider = FauxProvider(script, on_exhausted="repeat", usd_per_token=0.25)
    result = result_of(run_lane(name, provider))
    assert result.cost_usd == len(provider.requests)
    assert result.turn_count == len(provider.requests)
    assert result.duration_ms > 0


@pytest.mark.parametrize("name", [name for name in LANES if name not in ("self-driving", "wrapped")])
def test_answers_are_streamed_unless_they_may_come_to_nothing(name: str) -> None:
    events = run_lane(name, prepared(name), [Probe()], stream=True)
    chunks = "".join(of_type(events, T.ASSISTANT_CHUNK))
    answers = [message.content for message in of_type(events, T.ASSISTANT)]
    assert chunks == ("" if name == "tot" else "".join(answers))
    assert answers[-1]


@every_lane
def test_an_agent_runs_a_lane_under_the_chains_of_plugins_and_host(name: str) -> None:
    def plugin(call: ToolCall) -> InterceptDecision:
        return InterceptDecision.replace(ToolCall(call.id, call.name, {"by": ["plugin"]}))

    def host(call: ToolCall) -> InterceptDecision:
        return InterceptDecision.replace(ToolCall(call.id, call.name, {"by": [*call.arguments["by"], "host"]}))

    provider, probe = prepared(name), Probe()
    PluginExtensionRegistry.register_interceptor("tool_call", plugin)
    agent = CodingAgent(
        provider=provider, tools_override=[probe], loop=name, interceptors=Interceptors(tool_call=[host])
    )
    result = asyncio.run(agent.run("go"))
    assert result.reason == "completed"
    assert probe.entered
    assert {str(entered) for entered in probe.entered} == {"{'by': ['plugin', 'host']}"}


@every_lane
def test_an_agent_goes_on_with_its_conversation_in_a_lane(name: str) -> None:
    """Policies that keep state by conversation see one conversation over all turns of a driver."""
    met: set[str] = set()

    def note(messages: list[Message]) -> None:
        who = current_run()
        met.add(who.conversation_id if who else "")

    if name in PLUGIN_LOOPS:
        load_loop(name)
    driver = AgentDriver(
        provider=FauxProvider("done"), tools_override=[], loop=name, interceptors=Interceptors(context=[note])
    )
    for text in ("one", "two"):
        result = asyncio.run(driver.send(text))
        assert result.messages == driver.history
    assert [message.content for message in driver.history if message.content in ("one", "two")] == ["one", "two"]
    assert len(met) == 1


@every_lane
def test_a_lane_of_a_sub_agent_is_held_to_the_rules_above_it(name: str) -> None:
    probe = Probe()
    provider = prepared(name)

    class Launch(BaseTool):
        name = "launch"

        def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
            sub = CodingAgent(provider=provider, tools_override=[probe], loop=lane)
            return ToolResult(asyncio.run(sub.run("go")).reason)

    lane = name
    chains = marking()
    outer = FauxProvider([{"tool_calls": [{"name": "launch", "arguments": {}}]}, "done"])
    agent = CodingAgent(provider=outer, tools_override=[Launch()], interceptors=chains)
    result = asyncio.run(agent.run("go"))
    assert tool_messages(result.messages)[0].startswith("completed")
    seen = [seen_by_request(request) for request in provider.requests]
    assert seen.count({"context", "provider_request"}) == len(seen) - internal_calls(name)
    assert probe.entered
    assert all("tool_call_seam" in arguments for arguments in probe.entered)


def test_real_loops_are_those_that_are_shipped() -> None:
    assert REAL_LOOPS == ("plan-execute", "reflexion", "tot")
    assert all(map(is_real_loop, REAL_LOOPS))
    assert not any(map(is_real_loop, ["react", "", "TOT", None, "plan_execute"]))
    load_loop("program")
    assert loop_names() == [*REAL_LOOPS, "program"]


@pytest.mark.parametrize(
    ("name", "words"), [("reflection", "did you mean 'reflexion'"), ("zzz", "there are plan-execute")]
)
def test_an_unknown_loop_is_refused_with_what_there_is(name: str, words: str) -> None:
    with pytest.raises(MisuseError, match=words):
        adapt_loop(name, provider=FauxProvider(), tools=None, system_prompt=None, messages=[])
    context = Context()
    agent = CodingAgent(provider=FauxProvider(), tools_override=[], loop=name)
    with pytest.raises(MisuseError, match=words):
        asyncio.run(agent.run("go", context=context))
    assert context.messages == []


def test_a_plugin_cannot_stand_in_for_a_shipped_loop() -> None:
    load_loop("reflexion", ReAct)
    with pytest.raises(MisuseError, match="shipped, and a plugin registers another one"):
        run_lane("reflexion", FauxProvider("x"))


def test_the_loop_of_an_unloaded_plugin_is_unknown() -> None:
    manager = load_loop("program")
    assert result_of(run_lane("program", FauxProvider("x"))).output == "X"
    manager.unload("program-plugin")
    with pytest.raises(MisuseError, match="there is no loop 'program'"):
        run_lane("program", FauxProvider("x"))


def test_a_plugin_that_is_refused_leaves_no_loop_behind() -> None:
    from chimera.errors import PluginError
    from chimera.plugins import PluginManager
    from tests.assembly.lanes import LoopPlugin

    class Broken(LoopPlugin):
        def register_interceptors(self, registry: Any) -> None:
            raise ValueError("no")

    with pytest.raises(PluginError):
        PluginManager().load_plugin(Broken("program", ReAct))
    assert loop_names() == list(REAL_LOOPS)


@pytest.mark.parametrize(
    ("spec", "lane"),
    [
        ("glm-5.2", ("glm-5.2", None)),
        ("glm-5.2:tot", ("glm-5.2", "tot")),
        ("llama3:8b", ("llama3:8b", None)),
        ("llama3:8b:plan-execute", ("llama3:8b", "plan-execute")),
        ("tot", ("tot", None)),
        (":tot", (":tot", None)),
        ("glm:", ("glm:", None)),
        ("", ("", None)),
    ],
)
def test_a_lane_is_a_model_and_perhaps_a_loop(spec: str, lane: tuple[str, str | None]) -> None:
    assert lane_of(spec) == lane


def test_tools_of_a_lane_know_the_project(tmp_path: Path) -> None:
    for name in LANES:
        provider, root = prepared(name), tmp_path / name
        root.mkdir()
        agent = CodingAgent(provider=provider, project_dir=root, tools_override=[Probe()], loop=name)
        asyncio.run(agent.run("go"))
        assert (root / "answer-1").exists(), name
