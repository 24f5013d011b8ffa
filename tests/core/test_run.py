"""The state of one run: what it is held to, whom it tells, and what it counts."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from chimera.core.asking import AtHome
from chimera.core.cancellation import CancellationToken
from chimera.core.decisions import InterceptDecision, Interceptors
from chimera.core.loop_config import LoopConfig
from chimera.core.loop_events import LoopEvent, LoopEventType
from chimera.core.run import Run, enclosing
from chimera.errors import BlockedStepsLimit, MisuseError, RunCancelled
from chimera.events import EventBus, InterceptorEvent, RunStartedEvent
from chimera.permissions import AllowAll
from chimera.providers.faux import FauxProvider
from tests.core.driving import Boom, Note, held


def make(config: LoopConfig | None = None, **options: Any) -> Run:
    return Run(config, FauxProvider(), [Note()], **{"conversation_id": "c", **options})


def inside(outer: Run, config: LoopConfig | None = None, **options: Any) -> Run:
    """Make a run as if the body of a tool of `outer` did."""
    token = enclosing.set(outer)
    try:
        return make(config, **options)
    finally:
        enclosing.reset(token)


def heard_on(config: LoopConfig) -> list[Any]:
    heard: list[Any] = []
    config.event_bus = EventBus()
    config.secrets_redaction = False
    config.event_bus.subscribe("*", heard.append)
    return heard


def test_a_run_without_configuration_is_unchecked_and_has_no_seams() -> None:
    run = make()
    assert (any(run.rules.chains), run.rules.policies, run.rules.hooks, run.rules.bus) == (False, (), (), None)
    assert run.watch.observe is None


def test_the_tools_of_a_run_have_names_and_no_two_have_the_same() -> None:
    assert list(make().tools) == ["note"]
    assert list(Run(None, None, {"x": Note("a")}, conversation_id="c").tools) == ["a"]
    assert Run(None, None, None, conversation_id="c").schemas is None
    with pytest.raises(MisuseError, match="two tools are named 'note': Note and Boom"):
        Run(None, None, [Note(), Boom()], conversation_id="c")


def test_what_the_model_is_offered_cannot_be_edited() -> None:
    schemas = make().schemas
    with pytest.raises(TypeError, match="read-only"):
        schemas[0]["function"]["parameters"]["properties"]["extra"] = {}


def test_events_carry_the_run_and_are_made_for_listeners_only() -> None:
    config = held()
    heard = heard_on(config)
    run = make(config, loop="react", lane="blue")
    run.publish(RunStartedEvent, loop="react")
    [event] = heard
    assert (event.run_id, event.conversation_id, event.lane, event.depth) == (run.identity.run_id, "c", "blue", 0)
    assert run.wants("anything")
    assert not make(held(event_bus=EventBus())).wants("run_started")
    assert not make().wants("run_started")


def test_a_decision_below_is_told_above_and_once_on_each_bus() -> None:
    above, below = held(), held()
    heard_above, heard_below = heard_on(above), heard_on(below)
    outer = make(above, listening=True)
    event = InterceptorEvent(seam="context", decision="blocked", before="secret")
    inside(outer, below).observe(event)
    assert (len(heard_above), len(heard_below)) == (1, 1)
    assert [note.data for note in outer.notes] == [event]
    shared = held(event_bus=above.event_bus, secrets_redaction=False)
    inside(outer, shared).observe(event)
    assert len(heard_above) == 2
    assert heard_above[0].before is None, "what feeds records does not hold what a policy took out"
    inside(inside(outer)).observe(event)
    assert (len(heard_above), len(outer.notes)) == (3, 3)


def test_notes_wait_for_whoever_listens() -> None:
    run = make(listening=True)
    run.turn = 3
    run.note(LoopEventType.SYSTEM, "x")
    nested = run.nested()
    nested.note(LoopEventType.SYSTEM, "y")
    assert not nested.told.items, "what a nested call notes comes with the call around it"
    assert list(run.told.items) == [LoopEvent(LoopEventType.SYSTEM, "x", 3), LoopEvent(LoopEventType.SYSTEM, "y", 3)]
    quiet = make()
    quiet.note(LoopEventType.SYSTEM, "x")
    assert not quiet.notes


@pytest.mark.parametrize(
    ("usage", "counted", "cost"),
    [
        ({"input_tokens": 3, "output_tokens": 4}, {"input_tokens": 3, "output_tokens": 4}, 3.5),
        ({"input_tokens": 3, "cached": 9}, {"input_tokens": 3, "output_tokens": 0, "cached": 9}, 1.5),
        ({}, {"input_tokens": 0, "output_tokens": 0}, 0.0),
    ],
)
def test_counting(usage: Any, counted: Any, cost: float) -> None:
    run = make()
    run.provider = FauxProvider(usd_per_token=0.5)
    run.count(usage)
    assert (run.usage, run.cost) == (counted, cost)


def test_a_provider_without_prices_costs_nothing() -> None:
    for provider in (SimpleNamespace(), SimpleNamespace(cost_usd=0.5)):
        run = Run(None, provider, None, conversation_id="c")
        run.count({"input_tokens": 3})
        assert (run.usage["input_tokens"], run.cost) == (3, 0.0)


def test_checks_raise_what_ends_the_run() -> None:
    token = CancellationToken()
    run = make(held(cancellation=token, max_blocked_steps=2))
    run.check_cancelled()
    run.refused_in_a_row = 1
    run.begin_turn()
    run.refused_in_a_row, run.last_refusal = 2, "no"
    with pytest.raises(BlockedStepsLimit, match="last 2 steps was refused; the last time: no"):
        run.begin_turn()
    token.cancel()
    for check in (run.check_cancelled, run.begin_turn):
        with pytest.raises(RunCancelled):
            check()
    assert run.turn == 1


def test_a_run_is_watched_only_where_somebody_can_cancel_it() -> None:
    token = CancellationToken()
    assert make().signal is None
    assert make(held(cancellation=token)).signal is not None
    assert inside(make()).signal is not None


def test_identities_below() -> None:
    outer = make(lane="blue")
    inner = inside(outer, lane="")
    assert (inner.identity.depth, inner.identity.parent, inner.identity.lane) == (1, outer.identity.run_id, "blue")
    assert inside(outer, lane="red").identity.lane == "red"
    assert make().identity.depth == 0


async def _ask(_approval: Any) -> bool:
    return True


async def test_a_coroutine_that_answers_stays_on_the_loop_of_its_run() -> None:
    run = make(held(permission_callback=_ask))
    assert run.rules_below().asker.callback is _ask, "nobody knows yet where the run lives"
    run.home = asyncio.get_running_loop()
    assert run.rules_below().asker.callback is _ask
    elsewhere = await asyncio.to_thread(run.rules_below)
    assert isinstance(elsewhere.asker.callback, AtHome)
    plain = make(held(permission_callback=lambda _: True))
    plain.home = run.home
    assert (await asyncio.to_thread(plain.rules_below)).asker.callback is plain.rules.asker.callback


def test_below_a_run_nobody_iterates_over_it() -> None:
    rules = make(held(permissions=AllowAll())).rules
    assert (rules.asker.iterates, rules.policies[0].asker.iterates) == (True, True)
    below = rules.for_runs_below(lambda callback: callback)
    assert (below.asker.iterates, below.policies[0].asker.iterates) == (False, False)
    assert below.policies[0].asker is below.asker


def test_chains_are_read_once() -> None:
    chains = Interceptors(tool_call=[lambda _: InterceptDecision.allow()])
    run = make(held(chains))
    chains.tool_call.clear()
    assert len(run.rules.chains.tool_call) == 1
