"""Seams and permissions: which comes first, who sees which call, and what an approval detaches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from chimera.core.interception import InterceptDecision, Interceptors
from chimera.core.loop_config import LoopConfig
from chimera.events import PermissionEvent, ToolCallEvent, ToolResultEvent
from chimera.permissions.base import PermissionAction, PermissionDecision, PermissionPolicy
from chimera.types import PendingApproval, ToolCall, ToolResult
from tests.core.driving import Note, assert_acceptable, calling, drive, every_mode, held, step_mode

replace, block = InterceptDecision.replace, InterceptDecision.block


class Policy(PermissionPolicy):
    """Answers by tool name; notes what it is asked."""

    def __init__(self, **actions: Any) -> None:
        self.actions = actions
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def evaluate(self, tool_name: str, args: Mapping[str, Any]) -> Any:
        self.asked.append((tool_name, dict(args)))
        action = self.actions.get(tool_name, PermissionAction.ALLOW)
        if isinstance(action, Exception):
            raise action
        return action


ALLOW, DENY, ASK = PermissionAction.ALLOW, PermissionAction.DENY, PermissionAction.ASK


def checked(policy: Any, interceptors: Interceptors | None = None, **options: Any) -> LoopConfig:
    return LoopConfig(permissions=policy, interceptors=interceptors, **options)


def to_other(call: ToolCall) -> InterceptDecision:
    return replace(ToolCall(call.id, "other", {"n": 2}))


@every_mode
def test_the_policy_judges_the_effective_call(mode: str) -> None:
    policy, note, other = Policy(other=DENY), Note(), Note("other")
    ran = drive(mode, [calling("note"), "done"], [note, other], checked(policy, Interceptors(tool_call=[to_other])))
    assert policy.asked == [("other", {"n": 2})]
    assert (note.entered, other.entered) == ([], [])
    assert ran.answers == ["Permission denied: other is not allowed"]


@every_mode
def test_a_replacement_is_no_way_around_a_denial(mode: str) -> None:
    """The control: without the policy the replaced call runs."""
    for config, runs in ((checked(Policy(other=DENY)), 0), (held(), 1)):
        other = Note("other")
        config.interceptors = Interceptors(tool_call=[to_other])
        drive(mode, [calling("note"), "done"], [Note(), other], config)
        assert len(other.entered) == runs


@every_mode
def test_a_block_comes_before_the_policy_the_hooks_and_the_prompt(mode: str) -> None:
    met: list[str] = []

    class Hooks:
        def has(self, kind: str) -> bool:
            met.append(kind)
            return False

    def ask(_approval: PendingApproval) -> bool:
        met.append("asked")
        return True

    policy = Policy(note=ASK)
    chains = Interceptors(tool_call=[lambda _: block("gated")])
    config = checked(policy, chains, hooks=Hooks(), permission_callback=ask)
    ran = drive(mode, [calling("note"), "done"], [Note()], config)
    assert ran.answers == ["Blocked by interceptor: gated"]
    assert policy.asked == []
    assert not {"PreToolUse", "asked"} & set(met)


@every_mode
def test_prompt_policy_events_transcript_and_tool_see_the_same_call(mode: str) -> None:
    prompted: list[PendingApproval] = []

    def ask(approval: PendingApproval) -> bool:
        prompted.append(approval)
        return True

    policy, other = Policy(other=ASK), Note("other")
    config = checked(policy, Interceptors(tool_call=[to_other]), permission_callback=ask)
    ran = drive(mode, [calling("note"), "done"], [Note(), other], config)
    [approval] = prompted
    effective = ToolCall("call_1", "other", {"n": 2})
    told = [e.call for e in ran.bus if isinstance(e, PermissionEvent | ToolCallEvent | ToolResultEvent)]
    assert (approval.tool_call, approval.tool_name, approval.arguments) == (effective, "other", {"n": 2})
    assert policy.asked == [("other", {"n": 2})]
    assert told == [effective] * 4
    assert ran.messages[1].tool_calls == (effective,)
    assert other.entered == [{"n": 2}]
    with pytest.raises(TypeError):
        approval.arguments["n"] = 3


@every_mode
@pytest.mark.parametrize("yolo", [False, True])
def test_nothing_that_an_interceptor_returns_loosens_a_denial(mode: str, yolo: bool) -> None:
    def consent(*_: Any) -> InterceptDecision:
        return InterceptDecision.allow()

    chains = Interceptors([consent], [consent], [consent, lambda c: replace(c)], [consent])
    note = Note()
    ran = drive(mode, [calling("note"), "done"], [note], checked(Policy(note=DENY), chains, yolo_mode=yolo))
    assert note.entered == []
    assert ran.answers == ["Permission denied: note is not allowed"]


@every_mode
def test_yolo_mode_switches_prompts_off_and_never_seams(mode: str) -> None:
    for config, answer in (
        (checked(Policy(note=ASK), yolo_mode=True), "noted"),
        (checked(Policy(note=ASK)), "Permission denied: note needs approval, and nobody is there to be asked"),
        (
            checked(Policy(note=ASK), Interceptors(tool_call=[lambda _: block("x")]), yolo_mode=True),
            "Blocked by interceptor: x",
        ),
    ):
        assert drive(mode, [calling("note"), "done"], [Note()], config).answers == [answer]


@every_mode
@pytest.mark.parametrize("effect", ["write", "command"])
def test_the_defaults_ask_before_writes_and_commands(mode: str, effect: str) -> None:
    note, look = Note(effect=effect), Note("look", effect="read")
    ran = drive(mode, [calling("note", "look"), "done"], [note, look], LoopConfig())
    assert (len(note.entered), len(look.entered)) == (0, 1)
    assert "nobody is there to be asked" in ran.answers[0]
    control = Note(effect=effect)
    drive(mode, [calling("note"), "done"], [control], held())
    assert len(control.entered) == 1


@every_mode
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (ValueError("s3cret"), "failed: ValueError"),
        (True, "answered with bool"),
        ("allow", "answered with str"),
        (None, "answered with NoneType"),
        (PermissionAction, "answered with"),
    ],
)
def test_a_policy_that_fails_or_answers_with_junk_denies(mode: str, answer: Any, text: str) -> None:
    note = Note()
    ran = drive(mode, [calling("note"), "done"], [note], checked(Policy(note=answer)))
    assert note.entered == []
    assert ran.answers[0].startswith("Permission denied: the permission policy Policy ")
    assert text in ran.answers[0]
    assert "s3cret" not in ran.answers[0]


@every_mode
def test_duck_typed_and_asynchronous_policies(mode: str) -> None:
    class Duck:
        def evaluate(self, tool_name: str, args: Any) -> Any:
            return PermissionDecision(DENY, "ducks say no", "rule 7")

    class Late(PermissionPolicy):
        async def evaluate(self, tool_name: str, args: Any) -> PermissionAction:  # type: ignore[override]
            return ALLOW

    class LateDuck:
        async def evaluate(self, tool_name: str, args: Any) -> PermissionAction:
            return ALLOW

    ran = drive(mode, [calling("note"), "done"], [Note()], checked(Duck()))
    assert ran.answers == ["Permission denied: ducks say no"]
    assert [event.rule for event in ran.bus if isinstance(event, PermissionEvent)] == ["rule 7"]
    for policy in (Late(), LateDuck()):
        ran = drive(mode, [calling("note"), "done"], [Note()], checked(policy))
        assert "answered with coroutine" in ran.answers[0]


class Resumed:
    """A batch of two calls that need approval, with chains that note what they meet."""

    def __init__(self) -> None:
        self.met: list[tuple[str, str]] = []
        self.policy = Policy(first=ASK, second=ASK)
        self.tools = [Note("first"), Note("second"), Note("free")]
        self.chains = Interceptors(tool_call=[self._on_call], tool_result=[self._on_result])

    def _on_call(self, call: ToolCall) -> InterceptDecision | None:
        self.met.append(("tool_call", call.name))
        return block("gated") if call.name == "gated" else None

    def _on_result(self, call: ToolCall, result: ToolResult) -> InterceptDecision:
        self.met.append(("tool_result", call.name))
        return replace(ToolResult(f"scrubbed {result.output}"))

    def run(self, mode: str, *names: Any, **options: Any) -> Any:
        decide = options.pop("decide", lambda approval: approval.approve())
        config = checked(self.policy, self.chains, **options)
        return drive(mode, [calling(*names), "done"], self.tools, config, decide=decide)


@step_mode
def test_a_call_that_was_approved_while_iterating_runs_detached(mode: str) -> None:
    scene = Resumed()
    ran = scene.run(mode, "first")
    assert ran.answers == ["noted"]
    assert scene.met == [("tool_call", "first")]
    assert len(scene.policy.asked) == 1


@step_mode
def test_the_next_calls_of_the_same_batch_are_fully_vetted(mode: str) -> None:
    scene = Resumed()
    ran = scene.run(mode, "first", "free", "second", "gated")
    assert ran.answers == ["noted", "scrubbed noted", "noted", "Blocked by interceptor: gated"]
    calls = [name for seam, name in scene.met if seam == "tool_call"]
    assert calls == ["first", "free", "second", "gated"]
    assert [name for seam, name in scene.met if seam == "tool_result"] == ["free"]
    assert [name for name, _ in scene.policy.asked] == ["first", "free", "second"]


@step_mode
def test_enforced_approvals_put_the_result_through_the_seam(mode: str) -> None:
    scene = Resumed()
    ran = scene.run(mode, "first", "second", resumed_approvals="enforced")
    assert ran.answers == ["scrubbed noted", "scrubbed noted"]
    assert [name for seam, name in scene.met if seam == "tool_call"] == ["first", "second"]


@every_mode
def test_a_call_that_a_callback_approved_meets_every_seam(mode: str) -> None:
    scene = Resumed()
    assert scene.run(mode, "first", permission_callback=lambda _: True).answers == ["scrubbed noted"]


@step_mode
def test_an_approval_holds_for_its_own_call_only(mode: str) -> None:
    scene, decided = Resumed(), []

    def decide(approval: PendingApproval) -> None:
        decided.append(approval.tool_name)
        if len(decided) == 1:
            approval.approve()
        else:
            approval.deny("not twice")

    ran = scene.run(mode, ("first", {"n": 1}), ("first", {"n": 2}), decide=decide)
    assert decided == ["first", "first"]
    assert ran.answers == ["noted", "Permission denied: the user denied it: not twice"]
    assert scene.tools[0].entered == [{"n": 1}]


@step_mode
def test_who_does_not_decide_has_not_approved(mode: str) -> None:
    scene = Resumed()
    ran = scene.run(mode, "first", decide=lambda _: None)
    assert ran.answers == ["Permission denied: first needs approval, and nobody is there to be asked"]


@step_mode
def test_what_a_person_does_to_the_approval_changes_no_call(mode: str) -> None:
    scene = Resumed()

    def decide(approval: PendingApproval) -> None:
        approval.tool_call = ToolCall("x", "second", {})
        approval.tool_name, approval.arguments = "second", {"n": 666}
        approval.approve()

    scene.run(mode, ("first", {"n": 1}), decide=decide)
    assert [tool.entered for tool in scene.tools] == [[{"n": 1}], [], []]


@step_mode
def test_a_pending_step_shows_the_effective_batch(mode: str) -> None:
    shown: list[PendingApproval] = []
    policy = Policy(other=ASK)
    config = checked(policy, Interceptors(tool_call=[to_other]))
    ran = drive(mode, [calling("note"), "done"], [Note(), Note("other")], config, decide=shown.append)
    assert [approval.tool_call for approval in shown] == [ToolCall("call_1", "other", {"n": 2})]
    assert_acceptable(ran.messages)
