"""What observers learn of decisions: on the bus, in the stream of loop events, and in texts."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from chimera.core.agent_loop import AgentLoop
from chimera.core.context import Context
from chimera.core.interception import InterceptDecision, Interceptors, ProviderRequest, interceptor_name
from chimera.core.loop import ReAct
from chimera.core.loop_config import LoopConfig
from chimera.core.seams import Watch, intercept_tool_call
from chimera.events import EventBus, InterceptorEvent
from chimera.providers.faux import FauxProvider
from chimera.secrets import RedactionMiddleware
from chimera.types import Message, ToolCall, ToolResult
from tests.core.driving import Boom, Note, Ran, call, calling, drive, edits, every_mode, held

allow, replace, block = InterceptDecision.allow, InterceptDecision.replace, InterceptDecision.block


def on_context(messages: list[Message]) -> InterceptDecision:
    return replace([*messages, Message.user("added")])


def on_request(_request: Any) -> InterceptDecision:
    raise ValueError("broken formatter")


def on_call(tool_call: ToolCall) -> InterceptDecision | None:
    if tool_call.name == "gated":
        return block("by policy")
    if tool_call.name == "crash":
        raise RuntimeError("gate fell over")
    return replace(ToolCall("x", "note", {"n": 2})) if tool_call.name == "alias" else None


def on_result(_call: ToolCall, _result: ToolResult) -> InterceptDecision:
    return block("it leaks")


CHAINS = Interceptors([on_context], [on_request], [on_call], [on_result])
SCRIPT: list[Any] = [calling("alias", "gated", "crash", "fine"), "done"]


@every_mode
def test_every_block_replace_and_error_is_an_event_with_all_its_fields(mode: str) -> None:
    tools = [Note(), Note("gated"), Note("crash"), Note("fine")]
    ran = drive(mode, SCRIPT, tools, held(CHAINS))
    told = [(e.seam, e.decision, e.reason, e.tool_name, e.call_id, e.interceptor) for e in ran.decisions]
    crash = "interceptor error: on_call: RuntimeError: gate fell over"
    formatter = "interceptor error: on_request: ValueError: broken formatter"
    before_call = [
        ("context", "replaced", None, None, None, "on_context"),
        ("provider_request", "error", formatter, None, None, "on_request"),
    ]
    assert told == [
        *before_call,
        ("tool_call", "replaced", None, "alias", "call_1", "on_call"),
        ("tool_call", "blocked", "by policy", "gated", "call_2", "on_call"),
        ("tool_call", "error", crash, "crash", "call_3", "on_call"),
        ("tool_result", "blocked", "it leaks", "note", "call_1", "on_result"),
        ("tool_result", "blocked", "it leaks", "fine", "call_4", "on_result"),
        *before_call,
    ]
    assert all(event.type == "interceptor" for event in ran.decisions)
    assert all(event.duration_us >= 0 for event in ran.decisions)
    assert len({event.run_id for event in ran.decisions}) == len({e.conversation_id for e in ran.decisions}) == 1
    assert ran.decisions[0].run_id
    assert ran.decisions[0].conversation_id
    assert all(event.before is event.after is None for event in ran.decisions), "records hold no contents"
    if ran.events:
        assert [dataclasses.replace(event, before=None, after=None) for event in ran.noted] == ran.decisions


@every_mode
def test_a_crash_and_a_verdict_are_told_apart_in_texts_too(mode: str) -> None:
    ran = drive(mode, SCRIPT, [Note(), Note("gated"), Note("crash"), Note("fine")], held(CHAINS))
    assert ran.answers[1] == "Blocked by interceptor: by policy"
    assert ran.answers[2] == "Blocked by interceptor: interceptor error: on_call: RuntimeError: gate fell over"


@pytest.mark.parametrize("stream", [False, True])
async def test_agent_loop_yields_decisions_without_any_bus(stream: bool) -> None:
    events = AgentLoop().run(
        [Message.user("go")],
        tools=[Note(), Note("gated"), Note("crash"), Note("fine")],
        provider=FauxProvider(SCRIPT),
        system_prompt=None,
        interceptors=CHAINS,
        stream=stream,
    )
    told = [event.data async for event in events if event.type == "interceptor"]
    assert [(e.seam, e.decision) for e in told[2:5]] == [
        ("tool_call", "replaced"),
        ("tool_call", "blocked"),
        ("tool_call", "error"),
    ]
    assert len(told) == 9


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("seam", ["context", "provider_request"])
@pytest.mark.parametrize("reason", ["too late", "", None])
async def test_the_reason_of_a_blocked_agent_run(stream: bool, seam: str, reason: Any) -> None:
    def gate(_value: Any) -> InterceptDecision:
        return block(reason)

    chain: list[Any] = [gate]
    events = AgentLoop().run(
        [Message.user("go")],
        tools=None,
        provider=FauxProvider("never"),
        system_prompt=None,
        interceptors=Interceptors(**{seam: chain}),
        stream=stream,
    )
    result = [event async for event in events][-1].data
    text = reason or f"no reason was given ({interceptor_name(gate)})"
    assert (result.reason, result.output) == (f"interceptor_blocked: {text}", f"Blocked by interceptor: {text}")
    assert not result.success


@every_mode
def test_a_subscriber_that_raises_breaks_no_decision(mode: str) -> None:
    def broken(_event: Any) -> None:
        raise RuntimeError("subscriber")

    bus = EventBus()
    bus.subscribe("*", broken)
    config = held(CHAINS, event_bus=bus, secrets_redaction=False)
    ran = drive(mode, SCRIPT, [Note(), Note("gated"), Note("crash"), Note("fine")], config)
    plain = drive(mode, SCRIPT, [Note(), Note("gated"), Note("crash"), Note("fine")], held(CHAINS))
    assert (ran.messages, ran.requests) == (plain.messages, plain.requests)
    assert len(ran.decisions) == len(plain.decisions) == 9


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
@every_mode
def test_an_interrupt_inside_a_subscriber_comes_out(mode: str, interrupt: type[BaseException]) -> None:
    def pressed(_event: Any) -> None:
        raise interrupt

    bus = EventBus()
    bus.subscribe("interceptor", pressed)
    with pytest.raises(interrupt):
        drive(mode, SCRIPT, [Note()], held(CHAINS, event_bus=bus, secrets_redaction=False))


def rewrite(request: ProviderRequest) -> InterceptDecision:
    return replace(dataclasses.replace(request, kwargs={"top_p": [0.5]}, headers={"A": "new"}, model="other"))


@every_mode
def test_an_observer_cannot_change_what_it_observes(mode: str) -> None:
    """Not the run, and not what the next observer hears: each event is tried with every edit there is."""

    def run(observer: Any) -> Ran:
        bus = EventBus()
        bus.subscribe("*", observer)
        chains = Interceptors(
            [on_context],
            [rewrite],
            [lambda c: block("no") if c.name == "gated" else replace(ToolCall("", c.name, {"n": [1]}))],
            [lambda _, result: replace(ToolResult("new", None, {"k": [1, {}]}))],
        )
        provider = FauxProvider([calling("note", "gated"), "done"], headers={"A": "own"})
        tools = [Note(says=ToolResult("old", None, {"k": [2]})), Note("gated")]
        return drive(mode, provider, tools, held(chains, event_bus=bus, secrets_redaction=False))

    meddled, plain = run(edits), run(lambda _: None)
    assert (meddled.messages, meddled.requests, meddled.steps) == (plain.messages, plain.requests, plain.steps)
    assert [_facts(event) for event in meddled.bus] == [_facts(event) for event in plain.bus]
    assert plain.requests[0].kwargs == {"top_p": [0.5], "model": "other"}


def _facts(event: Any) -> Any:
    own = ("timestamp", "run_id", "conversation_id", "duration_us")
    return {name: getattr(event, name) for name in event.__dataclass_fields__ if name not in own}


@every_mode
def test_the_bus_of_a_configuration_redacts_unless_told_otherwise(mode: str) -> None:
    secret = "sk-" + "a1B2c3D4" * 5

    def gate(_call: ToolCall) -> InterceptDecision:
        return block(f"it holds {secret}")

    for redaction, leaks in ((None, False), (True, False), (False, True)):
        bus = EventBus()
        config = held(Interceptors(tool_call=[gate]), event_bus=bus, secrets_redaction=redaction)
        ran = drive(mode, [calling(("note", {"key": secret})), "done"], [Note()], config)
        assert (secret in str([event.reason for event in ran.decisions])) is leaks
        assert bus.uses(RedactionMiddleware) is not leaks
        drive(mode, ["again"], [], config)
        assert len(bus._middleware) == (0 if leaks else 1), "a bus that serves many runs gets it once"


def test_chains_run_by_hand_tell_a_bus_too() -> None:
    heard: list[Any] = []
    bus = EventBus()
    bus.subscribe(InterceptorEvent, heard.append)
    intercept_tool_call([lambda _: block("no")], call(), event_bus=bus)
    intercept_tool_call([lambda _: None, lambda _: allow()], call(), event_bus=bus)
    [event] = heard
    assert (event.decision, event.reason, event.tool_name, event.call_id) == ("blocked", "no", "note", "c1")


def test_a_later_interceptor_is_reported_with_the_call_that_it_judged() -> None:
    heard: list[InterceptorEvent] = []
    chain = [lambda c: replace(ToolCall("", "delegate", c.arguments)), lambda _: block("no sub-agents")]
    intercept_tool_call(chain, call("spawn_x"), watch=Watch(heard.append))
    assert [(e.decision, e.tool_name, e.call_id) for e in heard] == [
        ("replaced", "spawn_x", "c1"),
        ("blocked", "delegate", "c1"),
    ]


def test_an_observer_of_ones_own_that_raises_is_skipped() -> None:
    def broken(_event: Any) -> None:
        raise RuntimeError

    watch = Watch(broken)
    after, reason = intercept_tool_call([lambda c: replace(c), lambda _: block("no")], call(), watch=watch)
    assert (after, reason) == (call(), "no")


def test_an_error_names_the_kind_of_failure_and_bounds_its_text() -> None:
    def crash(_call: ToolCall) -> InterceptDecision:
        raise ValueError("x" * 100_000)

    def silent(_call: ToolCall) -> InterceptDecision:
        raise KeyError

    assert len(intercept_tool_call([crash], call())[1] or "") < 1000
    assert str(intercept_tool_call([silent], call())[1]).endswith(": KeyError")


def test_run_events_frame_everything_and_name_the_end() -> None:
    for script, reason in (("done", "completed"), ([calling("note")] * 3, "max_turns")):
        ran = drive("run", script, [Note()], held(), max_steps=2)
        assert ran.bus[0].type == "run_started"
        assert (ran.bus[-1].type, ran.bus[-1].reason) == ("run_finished", reason)  # type: ignore[attr-defined]


@pytest.mark.parametrize("failure", [ValueError("v"), KeyboardInterrupt()])
def test_a_run_that_raised_is_told_as_one(failure: BaseException) -> None:
    heard: list[Any] = []
    bus = EventBus()
    bus.subscribe("run_finished", heard.append)
    provider = FauxProvider([{"error": failure}])
    config = LoopConfig(event_bus=bus, yolo_mode=True, secrets_redaction=False)
    with pytest.raises(type(failure)):
        ReAct(config=config).run(provider, [], Context())
    [event] = heard
    assert (event.reason, event.result) == ("error: v" if str(failure) else "aborted", None)


@every_mode
def test_events_of_a_call_say_how_it_ended(mode: str) -> None:
    chains = Interceptors(tool_call=[lambda c: block("no") if c.name == "gated" else None])
    script = [calling("note", "gated", "unknown", "boom", ("note", "{")), "done"]
    ran = drive(mode, script, [Note(), Note("gated"), Boom("boom", "b")], held(chains))
    outcomes = [event.outcome for event in ran.bus if event.type == "tool_result"]  # type: ignore[attr-defined]
    assert sorted(outcomes) == ["blocked", "invalid", "ran", "ran", "unknown"]
