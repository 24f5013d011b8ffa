"""The four seams in every loop, however it is driven: enforced where they are promised, inert where they are not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chimera.core.cancellation import CancellationToken
from chimera.core.interception import InterceptDecision, Interceptors, ProviderRequest, current_run
from chimera.core.loop import Loop
from chimera.core.loop_config import LoopConfig
from chimera.events import EventBus, InterceptorEvent
from chimera.permissions.base import PermissionAction, PermissionPolicy
from chimera.types import Message, StepResult, ToolCall, ToolResult
from tests.core.loops.marks import marking, seen_by_body, seen_by_request, tool_messages
from tests.core.loops.scenes import DRIVES, SCENES, Probe, Ran, Scene, calls, conversation

every_loop = pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
every_drive = pytest.mark.parametrize("drive", DRIVES.values(), ids=DRIVES)
INTERNAL = pytest.mark.parametrize("name", [name for name, scene in SCENES.items() if scene.internal])


class AskAlways(PermissionPolicy):
    def evaluate(self, tool_name: str, args: Mapping[str, Any]) -> PermissionAction:
        return PermissionAction.ASK


def held_to(interceptors: Interceptors | None, **options: Any) -> LoopConfig:
    return LoopConfig(interceptors=interceptors, **{"yolo_mode": True, **options})


@every_loop
@every_drive
def test_every_call_meets_every_seam(scene: Scene, drive: Any, tmp_path: Path) -> None:
    provider, probe = scene.provider(), Probe()
    ran = drive(scene.make(held_to(marking())), provider, [probe], tmp_path)
    assert ran.result is not None
    assert (ran.result.output, ran.result.success) == (scene.output, True)
    assert len(provider.requests) == len(scene.script)
    seen = [seen_by_request(request) for request in provider.requests]
    assert seen.count({"context", "provider_request"}) == len(scene.script) - scene.internal
    assert seen.count(set()) == scene.internal
    answers = tool_messages(ran.context.messages)
    assert len(answers) == len(probe.entered) >= 1
    for arguments, answer in zip(probe.entered, answers, strict=True):
        assert seen_by_body(arguments, answer) == {"tool_call", "tool_result"}


@every_loop
def test_what_is_rewritten_for_a_call_stays_out_of_the_conversation(scene: Scene, tmp_path: Path) -> None:
    rewriting = Interceptors(context=marking().context, provider_request=marking().provider_request)
    ran = []
    for number, chains in enumerate((rewriting, None)):
        root = tmp_path / str(number)
        root.mkdir()
        ran.append(DRIVES["run"](scene.make(held_to(chains)), scene.provider(), [Probe()], root))
    marked, plain = ran
    assert marked.context.messages == plain.context.messages
    assert marked.result == plain.result


@every_loop
@every_drive
@pytest.mark.parametrize("seam", ["context", "provider_request"])
@pytest.mark.parametrize("nth", [1, 2])
def test_a_block_before_a_call_ends_the_run(scene: Scene, drive: Any, seam: str, nth: int, tmp_path: Path) -> None:
    met = 0

    def block(_value: Any) -> InterceptDecision:
        nonlocal met
        met += 1
        return InterceptDecision.block("not today") if met == nth else InterceptDecision.allow()

    chains = Interceptors()
    getattr(chains, seam).append(block)
    provider, probe = scene.provider(), Probe()
    ran = drive(scene.make(held_to(chains)), provider, [probe], tmp_path)
    assert ran.result is not None
    assert not ran.result.success
    assert ran.result.output == ran.result.error == "Blocked by interceptor: not today"
    conversation_calls = [request for request in provider.requests if request.tools is not None]
    assert len(conversation_calls) == nth - 1
    assert met == nth
    assert not ran.steps or not ran.steps[-1].done


@every_loop
@every_drive
def test_a_blocked_tool_call_reads_as_a_denial(scene: Scene, drive: Any, tmp_path: Path) -> None:
    def gate(call: ToolCall) -> InterceptDecision:
        return InterceptDecision.block(f"{call.name} is gated")

    probe = Probe()
    ran = drive(scene.make(held_to(Interceptors(tool_call=[gate]))), scene.provider(), [probe], tmp_path)
    assert probe.entered == []
    answers = tool_messages(ran.context.messages)
    assert answers
    assert set(answers) == {"Blocked by interceptor: probe is gated"}
    for step in ran.steps:
        assert [result.error for result in step.tool_results] == answers[:1] * len(step.tool_calls)


@every_loop
@every_drive
def test_a_gate_that_crashes_blocks_and_shapers_that_crash_are_skipped(
    scene: Scene, drive: Any, tmp_path: Path
) -> None:
    def crash(*_: Any) -> InterceptDecision:
        raise ValueError("broken")

    probe = Probe()
    ran = drive(scene.make(held_to(Interceptors(tool_call=[crash]))), scene.provider(), [probe], tmp_path)
    assert probe.entered == []
    assert all("interceptor error" in answer for answer in tool_messages(ran.context.messages))
    shapers = Interceptors(context=[crash], provider_request=[crash], tool_result=[crash])
    ran = drive(scene.make(held_to(shapers)), scene.provider(), [Probe()], tmp_path)
    assert ran.result is not None
    assert (ran.result.output, ran.result.success) == (scene.output, True)


@every_loop
@every_drive
def test_a_withheld_result_reaches_neither_model_nor_conversation(scene: Scene, drive: Any, tmp_path: Path) -> None:
    def withhold(_call: ToolCall, _result: ToolResult) -> InterceptDecision:
        return InterceptDecision.block("private")

    provider = scene.provider()
    config = held_to(Interceptors(tool_result=[withhold]))
    ran = drive(scene.make(config), provider, [Probe()], tmp_path)
    placeholder = "[tool result withheld by interceptor: private]"
    assert set(tool_messages(ran.context.messages)) == {placeholder}
    sent = [message.content for request in provider.requests for message in request.messages]
    assert not [text for text in sent if "the probe says" in text]


@every_loop
@every_drive
def test_without_interceptors_nothing_differs(scene: Scene, drive: Any, tmp_path: Path) -> None:
    def unmoved(*_: Any) -> InterceptDecision:
        return InterceptDecision.allow()

    def observed(config: LoopConfig | None, folder: str) -> tuple[Any, ...]:
        root = tmp_path / folder
        root.mkdir()
        provider = scene.provider()
        ran = drive(scene.make(config), provider, [Probe()], root)
        return provider.requests, ran.context.messages, ran.result, ran.steps

    plain = observed(None, "none")
    assert observed(LoopConfig(yolo_mode=True), "config") == plain
    assert observed(held_to(Interceptors()), "empty") == plain
    assert observed(held_to(Interceptors([unmoved], [unmoved], [unmoved], [unmoved])), "allow") == plain


@INTERNAL
@every_drive
def test_internal_calls_are_inert(name: str, drive: Any, tmp_path: Path) -> None:
    """No seam is handed the envelope of an internal call, and nothing of it enters the conversation."""
    handed: list[Any] = []

    def keep_messages(messages: list[Message]) -> None:
        handed.append(messages)

    def keep_request(request: ProviderRequest) -> None:
        handed.append(request.messages)

    scene = SCENES[name]
    provider = scene.provider()
    config = held_to(Interceptors(context=[keep_messages], provider_request=[keep_request]))
    ran = drive(scene.make(config), provider, [Probe()], tmp_path)
    internal = [request for request in provider.requests if request.tools is None]
    assert len(internal) == scene.internal
    assert len(handed) == 2 * (len(scene.script) - scene.internal)
    for request in internal:
        assert list(request.messages) not in handed
        assert not [message for message in request.messages if message in ran.context.messages]


def test_the_evaluator_is_sent_nothing_of_the_conversation(tmp_path: Path) -> None:
    """What a redactor would have scrubbed cannot leave through a call that no redactor sees."""
    provider = SCENES["tot"].provider()
    DRIVES["run"](SCENES["tot"].make(None), provider, [Probe()], tmp_path)
    sent = [message.content for request in provider.requests if request.tools is None for message in request.messages]
    assert sent
    for message in conversation().to_messages():
        assert not any(message.content in text for text in sent)


@every_drive
def test_the_envelope_of_a_candidate_carries_its_temperature(drive: Any, tmp_path: Path) -> None:
    seen: list[Any] = []

    def cool(request: ProviderRequest) -> InterceptDecision:
        seen.append(request.kwargs)
        return InterceptDecision.replace(replace(request, kwargs={"temperature": 0.25, "top_p": 0.5}))

    scene = SCENES["tot"]
    provider = scene.provider()
    drive(scene.make(held_to(Interceptors(provider_request=[cool]))), provider, [Probe()], tmp_path)
    assert seen == [{"temperature": 0.7}] * 6
    candidates = [request for request in provider.requests if request.tools is not None]
    assert [dict(request.kwargs) for request in candidates] == [{"temperature": 0.25, "top_p": 0.5}] * 6


@pytest.mark.parametrize("name", sorted(SCENES.keys() - {"tot"}))
def test_the_envelopes_of_other_loops_carry_no_options(name: str, tmp_path: Path) -> None:
    provider = SCENES[name].provider()
    DRIVES["run"](SCENES[name].make(None), provider, [Probe()], tmp_path)
    assert {tuple(request.kwargs) for request in provider.requests} == {()}


@every_loop
@every_drive
def test_decisions_are_published(scene: Scene, drive: Any, tmp_path: Path) -> None:
    bus, heard = EventBus(), list[Any]()
    bus.subscribe("interceptor", heard.append)
    config = held_to(marking(), event_bus=bus)
    probe = Probe()
    drive(scene.make(config), scene.provider(), [probe], tmp_path)
    seams = [event.seam for event in heard if isinstance(event, InterceptorEvent) and event.decision == "replaced"]
    conversation_calls = len(scene.script) - scene.internal
    assert seams.count("context") == seams.count("provider_request") == conversation_calls
    assert seams.count("tool_result") == len(probe.entered)
    assert seams.count("tool_call") == len(probe.entered)


@every_loop
@every_drive
def test_interceptors_know_the_run_that_they_decide_for(scene: Scene, drive: Any, tmp_path: Path) -> None:
    met = []

    def note(*_: Any) -> None:
        met.append(current_run())

    loop: Loop = scene.make(held_to(Interceptors([note], [note], [note], [note])))
    ran: Ran = drive(loop, scene.provider(), [Probe()], tmp_path)
    assert {who.conversation_id for who in met if who} == {ran.context.conversation_id}
    assert {who.loop for who in met if who} == {loop.name}
    assert len({who.run_id for who in met if who}) == 1
    assert {(who.depth, who.parent) for who in met if who} == {(0, None)}
    assert None not in met
    assert current_run() is None


@every_loop
@pytest.mark.parametrize("drive", [DRIVES["iter_steps"], DRIVES["async_iter_steps"]], ids=["iter", "async_iter"])
@pytest.mark.parametrize("mode", ["detached", "enforced"])
def test_an_approved_call_does_not_meet_the_seam_again_and_the_next_one_does(
    scene: Scene, drive: Any, mode: str, tmp_path: Path
) -> None:
    """Three calls in one batch: each waits for approval, and each meets the gate once, before anything is asked."""
    met: list[Any] = []

    def watch(call: ToolCall) -> None:
        met.append(call.arguments)

    def decide(step: StepResult) -> None:
        if step.pending_approval is None:
            return
        if step.pending_approval.arguments.get("n") == 2:
            step.pending_approval.deny("not this one")
        else:
            step.pending_approval.approve()

    chains = replace(marking(), tool_call=[watch])
    config = LoopConfig(interceptors=chains, permissions=AskAlways(), resumed_approvals=mode)  # type: ignore[arg-type]
    batch = calls({"n": 1}, {"n": 2}, {"n": 3})
    provider = replace(scene, script=[batch if isinstance(step, dict) else step for step in scene.script]).provider()
    probe = Probe()
    ran = drive(scene.make(config), provider, [probe], tmp_path, decide)
    pending = [step.pending_approval for step in ran.steps if step.pending_approval is not None]
    proposed = [call for step in ran.steps if not step.pending_approval for call in step.tool_calls]
    assert len(pending) == len(proposed) >= 3
    assert [approval.tool_call for approval in pending] == proposed
    assert met == [call.arguments for call in proposed]
    assert [args["n"] for args in probe.entered] == [1, 3] * (len(proposed) // 3)
    answers = tool_messages(ran.context.messages)
    marked = ["tool_result seam" in answer for answer in answers if "the probe says" in answer]
    assert marked == [mode == "enforced"] * len(probe.entered)
    assert [answer for answer in answers if "not this one" in answer] == answers[1::3]


@every_loop
@every_drive
def test_undecided_approvals_are_denials(scene: Scene, drive: Any, tmp_path: Path) -> None:
    probe = Probe()
    config = LoopConfig(permissions=AskAlways())
    ran = drive(scene.make(config), scene.provider(), [probe], tmp_path, lambda step: None)
    assert probe.entered == []
    assert all(answer.startswith("Permission denied") for answer in tool_messages(ran.context.messages))


@every_loop
@every_drive
def test_a_callback_answers_in_every_loop(scene: Scene, drive: Any, tmp_path: Path) -> None:
    probe = Probe()
    config = LoopConfig(permissions=AskAlways(), permission_callback=lambda approval: True, interceptors=marking())
    ran = drive(scene.make(config), scene.provider(), [probe], tmp_path)
    assert ran.result is not None
    assert (ran.result.output, ran.result.success) == (scene.output, True)
    assert not [step for step in ran.steps if step.pending_approval is not None]
    answers = tool_messages(ran.context.messages)
    for arguments, answer in zip(probe.entered, answers, strict=True):
        assert seen_by_body(arguments, answer) == {"tool_call", "tool_result"}


@every_loop
@every_drive
def test_a_gate_that_refuses_everything_cannot_go_on_for_ever(scene: Scene, drive: Any, tmp_path: Path) -> None:
    def gate(call: ToolCall) -> InterceptDecision:
        return InterceptDecision.block("never")

    first = [step for step in scene.script if isinstance(step, str)][:1] if scene is SCENES["autonomous"] else []
    provider = replace(scene, script=[*first, *[calls()] * 60]).provider(on_exhausted="repeat")
    config = held_to(Interceptors(tool_call=[gate]), max_blocked_steps=3)
    ran = drive(scene.make(config), provider, [Probe()], tmp_path)
    assert ran.result is not None
    assert not ran.result.success
    assert "every tool call of the last 3 steps was refused" in (ran.result.error or "")
    assert len(tool_messages(ran.context.messages)) == 3


@every_loop
@every_drive
def test_a_cancelled_run_ends_with_a_conversation_that_can_be_sent(scene: Scene, drive: Any, tmp_path: Path) -> None:
    token = CancellationToken()

    class Stop(Probe):
        def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
            token.cancel()
            return super().execute(args, env)

    provider = scene.provider()
    ran = drive(scene.make(held_to(None, cancellation=token)), provider, [Stop()], tmp_path)
    assert ran.result is not None
    assert not ran.result.success
    assert "cancelled" in (ran.result.error or "")
    assert len(provider.requests) < len(scene.script)
    called = [call.id for message in ran.context.messages for call in message.tool_calls]
    answered = [message.call_id for message in ran.context.messages if message.role == "tool"]
    assert called == answered
