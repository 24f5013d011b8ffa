"""Who sets a rule answers its questions: a sub-agent cannot approve what its parent wants asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chimera.core import Context, InterceptDecision, Interceptors, LoopConfig, ReAct
from chimera.core.tool import BaseTool
from chimera.permissions.base import PermissionAction, PermissionPolicy
from chimera.providers.faux import FauxProvider
from chimera.types import Message, ToolCall, ToolResult

GO = [Message.user("go")]


class AskFor(PermissionPolicy):
    def __init__(self, *names: str) -> None:
        self.names = names

    def evaluate(self, tool_name: str, args: Any) -> PermissionAction:
        return PermissionAction.ASK if tool_name in self.names else PermissionAction.ALLOW


class Danger(BaseTool):
    name = "danger"
    effect = "write"

    def __init__(self) -> None:
        self.ran = 0

    def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        self.ran += 1
        return ToolResult("secret")


class Spawn(BaseTool):
    name = "spawn"
    effect = "read"

    def __init__(self, start: Callable[[Danger], object]) -> None:
        self.start, self.danger = start, Danger()

    def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        self.start(self.danger)
        return ToolResult("spawned")


def calls(name: str) -> FauxProvider:
    return FauxProvider([{"tool_calls": [{"name": name, "arguments": {}}]}, "done"])


def approves_everything(danger: Danger) -> None:
    config = LoopConfig(permission_callback=lambda approval: True)
    ReAct(config=config).run(calls("danger"), [danger], Context(messages=GO))


def approves_while_iterating(danger: Danger) -> None:
    for config in (None, LoopConfig(), LoopConfig(permissions=AskFor("danger"))):
        for step in ReAct(config=config).iter_steps(calls("danger"), [danger], Context(messages=GO)):
            if step.pending_approval:
                step.pending_approval.approve()


def asks_nobody(danger: Danger) -> None:
    ReAct(config=LoopConfig(yolo_mode=True)).run(calls("danger"), [danger], Context(messages=GO))


WAYS = [approves_everything, approves_while_iterating, asks_nobody]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "parent",
    [
        LoopConfig(permissions=AskFor("danger"), permission_callback=lambda approval: False),
        LoopConfig(permissions=AskFor("danger")),
        LoopConfig(),
    ],
    ids=["callback says no", "nobody to ask", "safe default"],
)
def test_what_the_parent_wants_asked_is_not_answered_below(way: Callable[[Danger], object], parent: LoopConfig) -> None:
    spawn = Spawn(way)
    ReAct(config=parent).run(calls("spawn"), [spawn], Context(messages=GO))
    assert spawn.danger.ran == 0


@pytest.mark.parametrize("way", WAYS)
def test_the_control_an_unchecked_parent_lets_them(way: Callable[[Danger], object]) -> None:
    spawn = Spawn(way)
    ReAct().run(calls("spawn"), [spawn], Context(messages=GO))
    assert spawn.danger.ran > 0


def test_both_are_asked_where_both_have_a_rule_the_parent_first() -> None:
    asked: list[str] = []

    def answer(who: str) -> Callable[[Any], bool]:
        def approve(approval: Any) -> bool:
            asked.append(who)
            return True

        return approve

    def both(danger: Danger) -> None:
        config = LoopConfig(permissions=AskFor("danger"), permission_callback=answer("child"))
        ReAct(config=config).run(calls("danger"), [danger], Context(messages=GO))

    spawn = Spawn(both)
    config = LoopConfig(permissions=AskFor("danger"), permission_callback=answer("parent"))
    ReAct(config=config).run(calls("spawn"), [spawn], Context(messages=GO))
    assert (asked, spawn.danger.ran) == (["parent", "child"], 1)


def test_a_call_approved_below_still_meets_the_result_seam_of_the_parent() -> None:
    seen: list[str] = []

    def look(call: ToolCall, result: ToolResult) -> None:
        seen.append(result.output)

    def approve(danger: Danger) -> None:
        loop = ReAct(config=LoopConfig(permissions=AskFor("danger")))
        for step in loop.iter_steps(calls("danger"), [danger], Context(messages=GO)):
            if step.pending_approval:
                step.pending_approval.approve()

    parent = LoopConfig(interceptors=Interceptors(tool_result=[look]), yolo_mode=True)
    ReAct(config=parent).run(calls("spawn"), [Spawn(approve)], Context(messages=GO))
    assert seen == ["secret", "spawned"]


@pytest.mark.parametrize("seam", ["context", "provider_request", "tool_call", "tool_result"])
def test_an_agent_inside_an_interceptor_of_a_sub_agent_is_held_to_the_parent(seam: str) -> None:
    def start(danger: Danger) -> None:
        def runs_an_agent(*_values: Any) -> None:
            ReAct().run(calls("danger"), [danger], Context(messages=GO))

        chains = Interceptors()
        getattr(chains, seam).append(runs_an_agent)
        harmless = Spawn(lambda _danger: None)
        config = LoopConfig(interceptors=chains, yolo_mode=True)
        ReAct(config=config).run(calls("spawn"), [harmless], Context(messages=GO))

    def gate(call: ToolCall) -> InterceptDecision | None:
        return InterceptDecision.block("no") if call.name == "danger" else None

    def ran(chains: Interceptors | None) -> int:
        spawn = Spawn(start)
        ReAct(config=LoopConfig(interceptors=chains, yolo_mode=True)).run(calls("spawn"), [spawn], Context(messages=GO))
        return spawn.danger.ran

    assert ran(Interceptors(tool_call=[gate])) == 0
    assert ran(None) > 0


def test_an_inherited_interceptor_that_runs_an_agent_does_not_meet_itself() -> None:
    runs: list[str] = []

    def consults(call: ToolCall) -> None:
        runs.append(call.name)
        ReAct().run(calls("danger"), [Danger()], Context(messages=GO))

    parent = LoopConfig(interceptors=Interceptors(tool_call=[consults]), yolo_mode=True)
    spawn = Spawn(lambda danger: ReAct().run(calls("danger"), [danger], Context(messages=GO)))
    ReAct(config=parent).run(calls("spawn"), [spawn], Context(messages=GO))
    assert (runs, spawn.danger.ran) == (["spawn", "danger"], 1)
