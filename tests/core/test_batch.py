"""All calls of one step: whatever happens in between, each recorded call gets exactly one tool message."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from chimera.core.batch import message_text, run_batch, run_single
from chimera.core.context import Context
from chimera.core.decisions import InterceptDecision, Interceptors
from chimera.core.effects import Consult, Emit, RunVetted
from chimera.core.loop_config import LoopConfig
from chimera.core.normalize import normalize
from chimera.core.run import Run
from chimera.errors import RunCancelled
from chimera.events import EventBus
from chimera.permissions.base import PermissionAction, PermissionPolicy
from chimera.providers.base import Response
from chimera.types import Message, StepResult, ToolCall, ToolResult
from tests.core.driving import Note, assert_acceptable, call, tool_texts

UNDER_WAY = "The run was cancelled while this call was under way; it may have taken effect."
NOT_STARTED = "The run was cancelled before this call was started."
ANSWER = normalize(
    Response(
        "working", [ToolCall(name, name, {}) for name in ("safe", "also_safe", "gated", "asked", "alone", "nobody")]
    )
)


class AskSome(PermissionPolicy):
    def evaluate(self, tool_name: str, args: Any) -> PermissionAction:
        return PermissionAction.ASK if tool_name == "asked" else PermissionAction.ALLOW


class Hooks:
    def has(self, kind: str) -> bool:
        return kind in ("PreToolUse", "PostToolUse")

    def pre_tool_use(self, *_: Any) -> Any: ...

    def post_tool_use(self, *_: Any) -> Any: ...


def gate(tool_call: ToolCall) -> InterceptDecision | None:
    return InterceptDecision.block("no") if tool_call.name == "gated" else None


class Scene:
    def __init__(self, *, listening: bool = True) -> None:
        tools = [Note("safe", safe=True), Note("also_safe", safe=True), Note("gated"), Note("asked"), Note("alone")]
        self.told: list[tuple[str, str]] = []
        bus = EventBus()
        bus.subscribe("tool_result", lambda event: self.told.append((event.call.id, event.outcome)))  # type: ignore[attr-defined]
        config = LoopConfig(
            AskSome(), Interceptors(tool_call=[gate]), hooks=Hooks(), event_bus=bus, secrets_redaction=False
        )
        self.run = Run(config, None, tools, conversation_id="c", listening=listening)
        self.context = Context(None, [Message.user("go")])
        self.flow = run_batch(self.run, self.context, ANSWER)

    def perform(self, effect: Any) -> Any:
        if isinstance(effect, RunVetted):
            return [ToolResult(f"{vetted.call.name} ran") for vetted in effect.calls]
        if isinstance(effect, Emit):
            while effect.items:
                item = effect.items.popleft()
                if isinstance(item, StepResult) and item.pending_approval is not None:
                    item.pending_approval.approve()
        if isinstance(effect, Consult) and effect.fn.func.__name__ == "pre_tool_use":  # type: ignore[attr-defined]
            return type("Verdict", (), {"decision": "allow", "reason": ""})
        return None

    def advance(self, steps: int) -> list[Any]:
        """Perform that many effects and return them; the last one is left unanswered."""
        effects = [next(self.flow)]
        while len(effects) < steps:
            effects.append(self.flow.send(self.perform(effects[-1])))
        return effects

    def go_on(self, effect: Any) -> None:
        """Perform this effect and all that follow."""
        while True:
            effect = self.flow.send(self.perform(effect))


def length(*, listening: bool) -> int:
    scene, count, answer = Scene(listening=listening), 0, None
    while True:
        try:
            effect = scene.flow.send(answer)
        except StopIteration:
            return count
        count, answer = count + 1, scene.perform(effect)


def cuts() -> list[Any]:
    return [
        pytest.param(listening, step, id=f"{'listening' if listening else 'quiet'}-{step}")
        for listening in (False, True)
        for step in range(1, length(listening=listening) + 1)
    ]


every_cut = pytest.mark.parametrize(("listening", "step"), cuts())


def test_there_are_many_places_to_cut() -> None:
    """Guards the tests below: they would pass for want of anything to cut."""
    assert length(listening=False) == 12
    assert length(listening=True) == 19


@every_cut
@pytest.mark.parametrize("failure", [KeyboardInterrupt, RunCancelled, asyncio.CancelledError, SystemExit, OSError])
def test_a_failure_at_any_point_leaves_an_acceptable_conversation(
    listening: bool, step: int, failure: type[BaseException]
) -> None:
    scene = Scene(listening=listening)
    effect = scene.advance(step)[-1]
    if failure is OSError and isinstance(effect, Consult):  # a hook that fails is an answer, and the batch goes on
        with contextlib.suppress(StopIteration):
            scene.flow.throw(failure())
        scene.flow.close()
    else:
        with pytest.raises(failure):
            scene.flow.throw(failure())
    check(scene)


@every_cut
def test_closing_at_any_point_leaves_an_acceptable_conversation(listening: bool, step: int) -> None:
    scene = Scene(listening=listening)
    scene.advance(step)
    scene.flow.close()
    check(scene)


def check(scene: Scene) -> None:
    messages = scene.context.messages
    assert_acceptable(messages)
    assert len(tool_texts(messages)) == 6
    assert [name for name, _ in scene.told] == list(dict.fromkeys(name for name, _ in scene.told)), "told once each"
    assert len(scene.told) == 6
    for message in messages[2:]:
        outcome = dict(scene.told)[message.call_id or ""]
        assert (message.content in (UNDER_WAY, NOT_STARTED)) is (outcome == "cancelled")


def test_answers_that_are_in_are_kept_and_the_others_say_how_far_they_got() -> None:
    gated, unknown = "Blocked by interceptor: no", "Unknown tool: nobody"
    effects = Scene(listening=False).advance(12)
    first, second, _ = (n for n, effect in enumerate(effects, 1) if isinstance(effect, RunVetted))
    for step, expected in (
        (first - 1, [NOT_STARTED, NOT_STARTED, gated, NOT_STARTED, NOT_STARTED, NOT_STARTED]),
        (first, [UNDER_WAY, UNDER_WAY, gated, NOT_STARTED, NOT_STARTED, unknown]),
        (second, ["safe ran", "also_safe ran", gated, UNDER_WAY, NOT_STARTED, unknown]),
    ):
        scene = Scene(listening=False)
        scene.advance(step)
        scene.flow.close()
        assert tool_texts(scene.context.messages) == expected


def test_a_cancelled_run_starts_no_further_group() -> None:
    scene = Scene(listening=False)
    effect = scene.advance(7)[-1]
    assert isinstance(effect, RunVetted)
    scene.run.cancellation.cancel()
    with pytest.raises(RunCancelled):
        scene.go_on(effect)
    assert tool_texts(scene.context.messages)[:2] == ["safe ran", "also_safe ran"]
    assert tool_texts(scene.context.messages)[3:5] == [NOT_STARTED] * 2


def test_an_interrupt_while_chains_run_leaves_no_trace() -> None:
    def pressed(_call: ToolCall) -> None:
        raise KeyboardInterrupt

    run = Run(LoopConfig(interceptors=Interceptors(tool_call=[pressed])), None, [Note()], conversation_id="c")
    context = Context(None, [Message.user("go")])
    with pytest.raises(KeyboardInterrupt):
        next(run_batch(run, context, ANSWER))
    assert context.messages == [Message.user("go")]


def test_an_interrupt_at_the_door_of_the_conversation() -> None:
    """The message may be in or not when the interrupt comes; the tool messages follow it, or they do not."""

    class Late(Context):
        after = False

        def add(self, message: Message) -> None:
            if self.after or message.role != "assistant":
                super().add(message)
            if message.role == "assistant":
                raise KeyboardInterrupt

    for after in (False, True):
        context = Late(None, [Message.user("go")])
        context.after = after
        run = Run(None, None, [Note()], conversation_id="c")
        with pytest.raises(KeyboardInterrupt):
            next(run_batch(run, context, ANSWER))
        assert_acceptable(context.messages)
        assert len(context.messages) == (8 if after else 1)


def test_an_answer_without_calls_is_recorded_and_nothing_else() -> None:
    run = Run(None, None, [Note()], conversation_id="c")
    context = Context()
    with pytest.raises(StopIteration) as stop:
        next(run_batch(run, context, Response("just text")))
    assert stop.value.value == (Message.assistant("just text"), [], [])
    assert context.messages == [Message.assistant("just text")]


def test_safe_neighbours_make_one_group() -> None:
    tools = [Note("a", safe=True), Note("b"), Note("c", safe=True), Note("d", safe=True)]
    run = Run(None, None, tools, conversation_id="c")
    calls = [ToolCall(str(n), name, {}) for n, name in enumerate("aacbbcdca")]
    flow, groups, answer = run_batch(run, Context(), normalize(Response("", calls))), [], None
    while True:
        try:
            effect = flow.send(answer)
        except StopIteration:
            break
        assert isinstance(effect, RunVetted)
        groups.append("".join(vetted.call.name for vetted in effect.calls))
        answer = [ToolResult("ok")] * len(effect.calls)
    assert groups == ["aac", "b", "b", "cdca"]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (ToolResult("out"), "out"),
        (ToolResult("", "why"), "why"),
        (ToolResult("half", "why"), "half\nwhy"),
        (ToolResult("out", ""), "out\n"),
        (ToolResult(""), ""),
    ],
)
def test_what_the_model_reads(result: ToolResult, text: str) -> None:
    assert message_text(result) == text


class TestSingle:
    def test_one_call_outside_the_conversation(self) -> None:
        run = Run(None, None, [Note()], conversation_id="c")
        flow = run_single(run, call().sealed())
        effect = next(flow)
        assert isinstance(effect, RunVetted)
        with pytest.raises(StopIteration) as stop:
            flow.send([ToolResult("ok")])
        assert stop.value.value == ToolResult("ok")

    def test_it_does_not_start_once_the_run_is_cancelled(self) -> None:
        run = Run(None, None, [Note()], conversation_id="c")
        run.cancellation.cancel()
        with pytest.raises(StopIteration) as stop:
            next(run_single(run, call().sealed()))
        assert stop.value.value == ToolResult("", NOT_STARTED)

    def test_what_keeps_it_from_running_is_its_result(self) -> None:
        run = Run(None, None, [], conversation_id="c")
        with pytest.raises(StopIteration) as stop:
            next(run_single(run, call().sealed()))
        assert stop.value.value == ToolResult("", "Unknown tool: note")
