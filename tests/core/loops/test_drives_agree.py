"""Driven in a thread or on the event loop, a loop takes the same steps and ends the same way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chimera.core.interception import InterceptDecision, Interceptors
from chimera.core.loop import Loop
from chimera.core.loop_config import LoopConfig
from chimera.permissions.base import PermissionAction, PermissionPolicy
from chimera.providers.faux import FauxProvider
from chimera.types import Message, StepResult, ToolCall
from tests.core.loops.scenes import SCENES, Probe, Ran, conversation, steps_of

TEXTS = st.sampled_from(
    [
        "done",
        "",
        "1. look\n2. act",
        "ANSWER: yes",
        "- look\n- act",
        "STEP FAILED: no way",
        "VERDICT: PASS",
        "VERDICT: FAIL: bad",
        "2",
        "7",
    ]
)
ARGUMENTS = st.sampled_from([{}, {"n": 1}, {"n": 2}, "no json", {"gate": True}, {"ask": True}, {"deny": True}])
CALLS = st.fixed_dictionaries({"name": st.sampled_from(["probe", "probe", "absent"]), "arguments": ARGUMENTS})
USAGE = st.fixed_dictionaries({"input_tokens": st.integers(0, 9), "output_tokens": st.integers(0, 9)})
STEPS = st.one_of(
    st.fixed_dictionaries({"text": TEXTS, "usage": USAGE}),
    st.fixed_dictionaries({"text": TEXTS, "tool_calls": st.lists(CALLS, min_size=1, max_size=3), "usage": USAGE}),
    st.fixed_dictionaries({"text": TEXTS, "tool_calls": st.lists(CALLS, min_size=1, max_size=3), "usage": USAGE}),
    st.sampled_from([{"error": "the service is down"}]),
)
SCRIPTS = st.lists(STEPS, min_size=1, max_size=12)


class ByArgument(PermissionPolicy):
    def evaluate(self, tool_name: str, args: Mapping[str, Any]) -> PermissionAction:
        if "deny" in args:
            return PermissionAction.DENY
        return PermissionAction.ASK if "ask" in args else PermissionAction.ALLOW


def gate(call: ToolCall) -> InterceptDecision | None:
    return InterceptDecision.block("gated") if "gate" in call.arguments else None


def third_time_lucky() -> Any:
    """Return a `context` interceptor that blocks the ninth call that it meets."""
    met = 0

    def block(_messages: list[Message]) -> InterceptDecision | None:
        nonlocal met
        met += 1
        return InterceptDecision.block("enough") if met == 9 else None

    return block


def decide(step: StepResult) -> None:
    pending = step.pending_approval
    if pending is not None and step.step % 3:
        pending.approve() if step.step % 2 else pending.deny("no")


def started(name: str, script: list[Any]) -> tuple[Loop, FauxProvider, Probe]:
    chains = Interceptors(context=[third_time_lucky()], tool_call=[gate])
    config = LoopConfig(interceptors=chains, permissions=ByArgument(), max_blocked_steps=4)
    return SCENES[name].make(config), FauxProvider(script, usd_per_token=0.25), Probe()


def in_a_thread(name: str, script: list[Any]) -> Ran:
    loop, provider, probe = started(name, script)
    ran = Ran(context=conversation())
    try:
        steps_of(loop.iter_steps(provider, [probe], ran.context), decide, ran)
    except Exception as exc:
        ran.raised = f"{type(exc).__name__}: {exc}"
    return ran


async def on_the_event_loop(name: str, script: list[Any]) -> Ran:
    loop, provider, probe = started(name, script)
    ran = Ran(context=conversation())
    stream = loop.async_iter_steps(provider, [probe], ran.context)
    try:
        async for step in stream:
            decide(step)
            ran.steps.append(step)
        ran.result = stream.result
    except Exception as exc:
        ran.raised = f"{type(exc).__name__}: {exc}"
    return ran


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.mark.parametrize("name", SCENES)
@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(script=SCRIPTS)
def test_sync_and_async_take_the_same_steps(runner: asyncio.Runner, name: str, script: list[Any]) -> None:
    first, second = in_a_thread(name, script), runner.run(on_the_event_loop(name, script))
    assert first.steps == second.steps
    assert (first.result, first.raised) == (second.result, second.raised)
    assert first.context.messages == second.context.messages
    assert_whole(first)


def assert_whole(ran: Ran) -> None:
    """The conversation can be sent whatever happened, the counts are those of the steps, and at most one is last."""
    called = [call.id for message in ran.context.messages for call in message.tool_calls]
    assert called == [message.call_id for message in ran.context.messages if message.role == "tool"]
    steps = [step for step in ran.steps if step.pending_approval is None]
    assert [step.step for step in steps] == list(range(1, len(steps) + 1))
    assert not any(step.done for step in steps[:-1])
    if ran.result is not None:
        assert ran.result.steps == len(steps)
        assert ran.result.success == (ran.result.error is None)
        assert not ran.result.success or steps[-1].done
