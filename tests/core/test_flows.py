"""The flows stepped by hand: which effects they yield, in which order, and what they make of the answers."""

from __future__ import annotations

from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest

from chimera.core.decisions import InterceptDecision, Interceptors, ProviderRequest
from chimera.core.effects import Consult, Emit, VettedCall, WireCall
from chimera.core.flows import Answered, provider_call_flow, tool_call_flow
from chimera.core.loop_config import LoopConfig
from chimera.core.loop_events import LoopEventType
from chimera.core.run import Run
from chimera.errors import ProviderCallBlocked, RunCancelled
from chimera.events import Event, EventBus
from chimera.permissions.base import PermissionAction, PermissionDecision, PermissionPolicy
from chimera.providers.base import Response
from chimera.providers.faux import FauxProvider
from chimera.types import Message, PendingApproval, StepResult, ToolCall, ToolResult
from tests.core.driving import Note, call, held

ALLOW, DENY, ASK = PermissionAction.ALLOW, PermissionAction.DENY, PermissionAction.ASK
MESSAGES = [Message.user("hi")]


class Says(PermissionPolicy):
    def __init__(self, action: PermissionAction, reason: str = "") -> None:
        self.decision = PermissionDecision(action, reason, "rule 1")

    def evaluate(self, tool_name: str, args: Any) -> PermissionAction:
        return self.decision.action

    def decide(self, tool_name: str, args: Any) -> PermissionDecision:
        return self.decision


class Hooks:
    """Has every kind of hook; what each does is given as a value to return or an exception to raise."""

    def __init__(self, pre: Any = None, post: Any = "") -> None:
        self.pre = SimpleNamespace(decision=pre, reason="by the book") if isinstance(pre, str) else pre
        self.post = post

    def has(self, kind: str) -> bool:
        return (kind == "PreToolUse" and self.pre is not None) or kind == "PostToolUse"

    def pre_tool_use(self, *_: Any) -> Any:
        return self.pre

    def post_tool_use(self, *_: Any) -> Any:
        return self.post


def new_run(config: LoopConfig | None = None, *tools: Any, listening: bool = False) -> tuple[Run, list[Event]]:
    heard: list[Event] = []
    config = config or held()
    config.event_bus = EventBus()
    config.secrets_redaction = False
    config.event_bus.subscribe("*", heard.append)
    return Run(config, FauxProvider(), tools or [Note()], conversation_id="c", listening=listening), heard


def finish(flow: Generator[Any, Any, Any], answer: Any = None) -> Any:
    """Send the answer and return what the flow returns; it must not ask for anything more."""
    with pytest.raises(StopIteration) as stop:
        flow.send(answer)
    return stop.value.value


class TestProviderCall:
    def test_one_wire_call_and_its_answer(self) -> None:
        run, heard = new_run()
        flow = provider_call_flow(run, MESSAGES, None, {"temperature": 0.5})
        wire = next(flow)
        assert wire == WireCall(run.provider, ProviderRequest("faux", MESSAGES, None, {"temperature": 0.5}))
        response = Response("hello")
        assert finish(flow, response) is response
        assert [event.type for event in heard] == ["model_request"]

    def test_what_a_seam_replaced_is_what_the_wire_gets(self) -> None:
        def rewrite(request: ProviderRequest) -> InterceptDecision:
            return InterceptDecision.replace(ProviderRequest("other", [Message.user("x")], None, {}, {"a": "b"}))

        run, _ = new_run(held(Interceptors(provider_request=[rewrite])))
        run.provider = FauxProvider(headers={"own": "1"})
        wire = next(provider_call_flow(run, MESSAGES, None, {}))
        assert isinstance(wire, WireCall)
        assert (wire.request.messages, wire.headers, wire.model) == ([Message.user("x")], {"a": "b"}, "other")

    @pytest.mark.parametrize("seam", ["context", "provider_request"])
    def test_a_block_yields_nothing_at_all(self, seam: str) -> None:
        chain: list[Any] = [lambda _: InterceptDecision.block("no")]
        run, heard = new_run(held(Interceptors(**{seam: chain})))
        with pytest.raises(ProviderCallBlocked) as caught:
            next(provider_call_flow(run, MESSAGES, None, {}))
        assert caught.value.seam == seam
        assert [event.type for event in heard] == ["interceptor"]

    def test_decisions_come_before_the_start_of_the_stream(self) -> None:
        chain: list[Any] = [lambda messages: InterceptDecision.replace(messages)]
        run, _ = new_run(held(Interceptors(context=chain)), listening=True)
        flow = provider_call_flow(run, MESSAGES, None, {})
        emitted = next(flow)
        assert isinstance(emitted, Emit)
        assert [event.type for event in emitted.items] == [LoopEventType.INTERCEPTOR, LoopEventType.STREAM_START]
        assert isinstance(next(flow), WireCall)

    def test_a_failure_comes_out(self) -> None:
        run, _ = new_run()
        flow = provider_call_flow(run, MESSAGES, None, {})
        next(flow)
        with pytest.raises(OSError, match="gone"):
            flow.throw(OSError("gone"))


class TestToolCall:
    def test_the_plain_way(self) -> None:
        run, heard = new_run()
        flow = tool_call_flow(run, call("note", {"n": 1}).sealed())
        assert next(flow) == call("note", {"n": 1})
        vetted = next(flow)
        assert isinstance(vetted, VettedCall)
        assert (vetted.call, vetted.arguments, vetted.tool) == (call("note", {"n": 1}), {"n": 1}, run.tools["note"])
        answered = finish(flow, ToolResult("ok"))
        assert answered == Answered(call("note", {"n": 1}), ToolResult("ok"), "ran")
        assert [event.type for event in heard] == ["permission", "tool_call", "tool_result"]

    def test_the_tools_arguments_are_its_own(self) -> None:
        run, _ = new_run()
        flow = tool_call_flow(run, call("note", {"n": [1]}).sealed())
        next(flow)
        vetted = next(flow)
        assert isinstance(vetted, VettedCall)
        vetted.arguments["n"].append(2)
        assert vetted.call.arguments == {"n": [1]}

    def test_everything_in_between_comes_in_its_order(self) -> None:
        config = LoopConfig(Says(ASK, "careful"), hooks=Hooks("ask", "well done"), permission_callback=lambda _: True)
        run, heard = new_run(config)
        flow = tool_call_flow(run, call().sealed())
        assert isinstance(next(flow), ToolCall)
        before = next(flow)
        assert isinstance(before, Consult)
        asking = flow.send(before.fn())
        assert isinstance(asking, Consult)
        vetted = flow.send(True)
        assert isinstance(vetted, VettedCall)
        after = flow.send(ToolResult("ok"))
        assert isinstance(after, Consult)
        assert finish(flow, after.fn()).result == ToolResult("ok\nwell done")
        assert [(event.type, getattr(event, "action", "")) for event in heard] == [
            ("permission", "ask"),
            ("permission", "allow"),
            ("tool_call", ""),
            ("tool_result", ""),
        ]

    @pytest.mark.parametrize(
        ("name", "problem", "text", "outcome"),
        [
            ("nobody", None, "Unknown tool: nobody", "unknown"),
            ("note", "unreadable", "unreadable", "invalid"),
            ("strict", None, "Invalid arguments for strict: the arguments must contain ['path'] properties", "invalid"),
            ("broken", None, "the parameters of the tool 'broken' are no usable JSON Schema", "invalid"),
        ],
    )
    def test_calls_that_cannot_run_are_answered_at_once(self, name: str, problem: Any, text: str, outcome: str) -> None:
        strict, broken = Note("strict"), Note("broken")
        strict.parameters = {"type": "object", "required": ["path"]}
        broken.parameters = {"type": 7}
        run, _ = new_run(held(), Note(), strict, broken)
        flow = tool_call_flow(run, call(name).sealed(), problem)
        next(flow)
        answered = finish(flow)
        assert (answered.outcome, answered.result.output) == (outcome, "")
        assert answered.result.error.startswith(text)

    def test_nobody_is_asked_about_a_call_that_cannot_run(self) -> None:
        run, heard = new_run(LoopConfig(Says(ASK)))
        flow = tool_call_flow(run, call("nobody").sealed())
        next(flow)
        assert finish(flow).outcome == "unknown"
        assert [event.type for event in heard] == ["tool_result"]

    def test_a_denial_says_no_more_about_tools_than_it_must(self) -> None:
        run, _ = new_run(LoopConfig(Says(DENY, "not here")))
        flow = tool_call_flow(run, call("nobody").sealed())
        next(flow)
        assert finish(flow).result.error == "Permission denied: not here"


def approval_in(effect: Any) -> PendingApproval:
    assert isinstance(effect, Emit)
    [step] = effect.items
    assert isinstance(step, StepResult)
    assert step.pending_approval is not None
    return step.pending_approval


class TestAsking:
    def ask(self, callback: Any = None, **options: Any) -> tuple[Any, Any, list[Event]]:
        run, heard = new_run(LoopConfig(Says(ASK, "careful"), permission_callback=callback, **options))
        flow = tool_call_flow(run, call().sealed())
        next(flow)
        return flow, next(flow), heard

    def test_without_a_callback_whoever_iterates_is_asked(self) -> None:
        flow, effect, _ = self.ask()
        approval_in(effect).approve()
        assert isinstance(flow.send(None), VettedCall)

    def test_the_reason_of_the_denial_reaches_the_model(self) -> None:
        flow, effect, heard = self.ask()
        approval_in(effect).deny("use the other one")
        assert finish(flow).result.error == "Permission denied: the user denied it: use the other one"
        assert [(e.action, e.source) for e in heard[:2]] == [("ask", "policy"), ("deny", "user")]  # type: ignore[attr-defined]

    @pytest.mark.parametrize(
        ("answer", "deed", "runs", "text"),
        [
            (True, "", True, ""),
            (False, "", False, "the user denied it"),
            (None, "", False, "careful, and the one who was asked did not decide"),
            (1, "", False, "careful, and the one who was asked did not decide"),
            ("yes", "", False, "careful, and the one who was asked did not decide"),
            (None, "approve", True, ""),
            ("junk", "approve", True, ""),
            (True, "approve", True, ""),
            (False, "approve", False, "careful, and the answer contradicts itself"),
            (True, "deny", False, "the user denied it"),
            (OSError("s3cret"), "", False, "careful, and asking failed: OSError"),
            (OSError("s3cret"), "approve", False, "careful, and asking failed: OSError"),
            (StopIteration(), "", False, "careful, and asking failed: StopIteration"),
        ],
    )
    def test_only_a_plain_yes_is_an_approval(self, answer: Any, deed: str, runs: bool, text: str) -> None:
        asked: list[PendingApproval] = []
        flow, effect, heard = self.ask(asked.append)
        assert isinstance(effect, Consult)
        effect.fn()
        if deed:
            getattr(asked[0], deed)()
        step = flow.throw if isinstance(answer, Exception) else flow.send
        if runs:
            assert isinstance(step(answer), VettedCall)
            return
        with pytest.raises(StopIteration) as stop:
            step(answer)
        assert stop.value.value.result.error == f"Permission denied: {text}"
        assert heard[1].source == ("user" if "user" in text else "nobody")  # type: ignore[attr-defined]

    def test_a_cancelled_question_ends_the_run_and_not_just_the_call(self) -> None:
        run, _ = new_run(LoopConfig(Says(ASK), permission_callback=lambda _: True))
        flow = tool_call_flow(run, call().sealed())
        next(flow)
        next(flow)
        run.cancellation.cancel()
        with pytest.raises(RunCancelled):
            flow.throw(RunCancelled())


class TestHooks:
    def hooked(self, hooks: Hooks, policy: PermissionPolicy | None = None, **options: Any) -> tuple[Any, Any]:
        config = LoopConfig(policy, hooks=hooks, **{"yolo_mode": policy is None, **options})
        run, _ = new_run(config)
        flow = tool_call_flow(run, call().sealed())
        next(flow)
        effect = next(flow)
        assert isinstance(effect, Consult)
        return flow, effect

    def test_a_denial_of_a_hook_is_final(self) -> None:
        flow, effect = self.hooked(Hooks("deny"), Says(ALLOW))
        assert finish(flow, effect.fn()).result.error == "Blocked by hook: by the book"

    def test_consent_of_a_hook_loosens_nothing(self) -> None:
        flow, effect = self.hooked(Hooks("allow"), Says(DENY, "no"))
        assert finish(flow, effect.fn()).result.error == "Permission denied: no"

    def test_a_hook_may_want_a_person_asked_although_the_policy_allows(self) -> None:
        flow, effect = self.hooked(Hooks("ask"), Says(ALLOW))
        assert approval_in(flow.send(effect.fn())).reason == "by the book"

    def test_without_prompts_what_a_hook_wants_asked_runs(self) -> None:
        flow, effect = self.hooked(Hooks("ask"))
        assert isinstance(flow.send(effect.fn()), VettedCall)

    @pytest.mark.parametrize("junk", [None, "yes", SimpleNamespace(decision="maybe", reason="x"), 3])
    def test_junk_of_a_hook_is_no_consent(self, junk: Any) -> None:
        flow, _ = self.hooked(Hooks("allow"))
        assert finish(flow, junk).outcome == "denied"

    def test_a_hook_that_crashes_keeps_the_gate_shut(self) -> None:
        flow, _ = self.hooked(Hooks("allow"))
        with pytest.raises(StopIteration) as stop:
            flow.throw(OSError("s3cret"))
        assert stop.value.value.result.error == "Blocked by hook: the hook failed: OSError"

    def test_a_hook_after_the_tool_that_crashes_is_skipped(self) -> None:
        flow, effect = self.hooked(Hooks("allow"))
        assert isinstance(flow.send(effect.fn()), VettedCall)
        assert isinstance(flow.send(ToolResult("done it")), Consult)
        with pytest.raises(StopIteration) as stop:
            flow.throw(OSError("gone"))
        assert stop.value.value == Answered(call(), ToolResult("done it"), "ran")

    @pytest.mark.parametrize("late", [False, True])
    def test_a_cancellation_is_no_failure_of_a_hook(self, late: bool) -> None:
        flow, effect = self.hooked(Hooks("allow"))
        if late:
            flow.send(effect.fn())
            flow.send(ToolResult("done it"))
        with pytest.raises(RunCancelled):
            flow.throw(RunCancelled())

    def test_hooks_after_an_approval_by_hand_stay_out_of_it(self) -> None:
        run, _ = new_run(LoopConfig(Says(ASK), hooks=Hooks(None, "never")))
        flow = tool_call_flow(run, ToolCall("c1", "note", {}).sealed())
        next(flow)
        approval_in(next(flow)).approve()
        assert isinstance(flow.send(None), VettedCall)
        assert finish(flow, ToolResult("ok")).result == ToolResult("ok")
