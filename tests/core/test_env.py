"""Tools that run other tools: nested calls meet what every call meets, however deep and from wherever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chimera.core.cancellation import CancellationToken
from chimera.core.env import MAX_NESTING, root_of
from chimera.core.interception import InterceptDecision, Interceptors, current_run
from chimera.core.loop_config import LoopConfig
from chimera.core.tool import BaseTool
from chimera.core.truncation import Truncation
from chimera.permissions.base import PermissionAction, PermissionPolicy
from chimera.types import PendingApproval, ToolCall, ToolResult
from tests.core.driving import Boom, Note, calling, drive, every_mode, held

replace, block = InterceptDecision.replace, InterceptDecision.block


class Batch(BaseTool):
    """Runs the calls that it is given, through its environment, in the way that `kind` says."""

    name = "batch"

    def __init__(self, kind: str = "sync") -> None:
        self.kind = kind
        self.results: list[ToolResult] = []
        if kind.startswith("async"):
            self.async_execute = self._awaiting  # type: ignore[method-assign]

    def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        for name, arguments in args["calls"]:
            self.results.append(env.run_tool(name, arguments))
        return ToolResult("; ".join(result.output or str(result.error) for result in self.results))

    async def _awaiting(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        if self.kind == "async in a thread":
            return await asyncio.to_thread(self.execute, args, env)
        await asyncio.sleep(0)
        return self.execute(args, env)


KINDS = ("sync", "async", "async in a thread")
every_kind = pytest.mark.parametrize("kind", KINDS)


def batch(*calls: tuple[str, dict[str, Any]] | str) -> Any:
    pairs = [[call, {}] if isinstance(call, str) else list(call) for call in calls]
    return [calling(("batch", {"calls": pairs})), "done"]


class Policy(PermissionPolicy):
    def __init__(self, **actions: PermissionAction) -> None:
        self.actions = actions
        self.asked: list[str] = []

    def evaluate(self, tool_name: str, args: Mapping[str, Any]) -> PermissionAction:
        self.asked.append(tool_name)
        return self.actions.get(tool_name, PermissionAction.ALLOW)


@every_mode
@every_kind
def test_nested_calls_meet_every_seam(mode: str, kind: str) -> None:
    met: list[tuple[str, str, Any]] = []

    def on_call(call: ToolCall) -> InterceptDecision | None:
        met.append(("tool_call", call.name, current_run()))
        if call.name == "gated":
            return block("not nested either")
        return replace(ToolCall("x", call.name, {"n": 2})) if call.name == "note" else None

    def on_result(call: ToolCall, result: ToolResult) -> InterceptDecision | None:
        met.append(("tool_result", call.name, current_run()))
        return replace(ToolResult("scrubbed")) if call.name == "note" else None

    note, gated = Note(says="s3cret"), Note("gated")
    tools = [Batch(kind), note, gated, Boom("boom", "bang")]
    chains = Interceptors(tool_call=[on_call], tool_result=[on_result])
    ran = drive(mode, batch(("note", {"n": 1}), "gated", "boom", "nobody"), tools, held(chains))
    blocked = "Blocked by interceptor: not nested either"
    assert ran.answers == [f"scrubbed; {blocked}; ValueError: bang; Unknown tool: nobody"]
    assert (note.entered, gated.entered) == ([{"n": 2}], [])
    assert [(seam, name) for seam, name, _ in met] == [
        ("tool_call", "batch"),
        ("tool_call", "note"),
        ("tool_result", "note"),
        ("tool_call", "gated"),
        ("tool_call", "boom"),
        ("tool_result", "boom"),
        ("tool_call", "nobody"),
        ("tool_result", "batch"),
    ]
    assert len({who for _, _, who in met}) == 1
    assert len(ran.messages) == 4, "nested calls do not enter the conversation"
    control = drive(mode, batch("gated"), [Batch(kind), gated], held())
    assert (control.answers, len(gated.entered)) == (["noted"], 1)


@every_mode
@every_kind
def test_nested_calls_meet_permissions_hooks_truncation_and_events(mode: str, kind: str) -> None:
    class Hooks:
        met: tuple[str, ...] = ()

        def has(self, kind: str) -> bool:
            return kind == "PreToolUse"

        def pre_tool_use(self, call: ToolCall, _identity: Any) -> Any:
            Hooks.met += (call.name,)
            return SimpleNamespace(decision="deny" if call.name == "hooked" else "allow", reason="by hook")

    policy = Policy(denied=PermissionAction.DENY, asked=PermissionAction.ASK)
    config = LoopConfig(policy, hooks=Hooks(), truncation=Truncation(200))
    tools = [Batch(kind), Note(says="x" * 900), Note("denied"), Note("asked"), Note("hooked")]
    ran = drive(mode, batch("note", "denied", "asked", "hooked"), tools, config)
    results = tools[0].results  # type: ignore[attr-defined]
    assert [len(results[0].output), *(result.error for result in results[1:])] == [
        200,
        "Permission denied: denied is not allowed",
        "Permission denied: asked needs approval, and nobody is there to be asked",
        "Blocked by hook: by hook",
    ]
    assert policy.asked == ["batch", "note", "denied", "asked"]
    assert Hooks.met == ("batch", "note", "denied", "asked", "hooked")
    outcomes = [(e.call.name, e.outcome) for e in ran.bus if e.type == "tool_result"]  # type: ignore[attr-defined]
    assert outcomes == [
        ("note", "ran"),
        ("denied", "denied"),
        ("asked", "denied"),
        ("hooked", "denied"),
        ("batch", "ran"),
    ]


@every_mode
@every_kind
@pytest.mark.parametrize("awaits", [False, True])
def test_the_callback_answers_for_nested_calls_too(mode: str, kind: str, awaits: bool) -> None:
    """Also when it is a coroutine function that waits for something on the event loop of the run."""
    asked: list[str] = []
    home: list[Any] = []

    def ask(approval: PendingApproval) -> bool:
        asked.append(approval.tool_name)
        return approval.tool_name != "second"

    async def ask_later(approval: PendingApproval) -> bool:
        home.append(asyncio.get_running_loop())
        await asyncio.sleep(0.001)
        return ask(approval)

    policy = Policy(batch=PermissionAction.ASK, first=PermissionAction.ASK, second=PermissionAction.ASK)
    config = LoopConfig(policy, permission_callback=ask_later if awaits else ask)
    ran = drive(mode, batch("first", "second"), [Batch(kind), Note("first"), Note("second")], config)
    assert ran.answers == ["noted; Permission denied: the user denied it"]
    assert asked == ["batch", "first", "second"]
    if awaits and mode not in ("run", "iter_steps") and kind != "async":
        assert len(set(home)) == 1, "it is awaited on the loop that it belongs to"


@every_mode
@every_kind
def test_nested_decisions_are_told_in_the_stream_after_what_caused_them(mode: str, kind: str) -> None:
    chains = Interceptors(tool_call=[lambda call: block("no") if call.name == "gated" else None])
    ran = drive(mode, batch("gated"), [Batch(kind), Note("gated")], held(chains))
    assert [event.tool_name for event in ran.decisions] == ["gated"]
    if ran.events:
        told = [event.type.value for event in ran.events]
        assert told[2:6] == ["tool_use", "interceptor", "tool_result", "tool_result"]


@every_mode
def test_nesting_goes_deep_and_has_an_end(mode: str) -> None:
    met: list[str] = []
    bottom: list[ToolResult] = []

    class Down(BaseTool):
        name = "down"

        def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
            result = env.run_tool("down", {"n": args.get("n", 0) + 1})
            if result.error:
                bottom.append(result)
                return ToolResult(f"turned round at {args.get('n', 0)}")
            return ToolResult(result.output)

    chains = Interceptors(tool_call=[lambda call: met.append(call.name)])
    ran = drive(mode, [calling("down"), "done"], [Down()], held(chains))
    assert len(met) == MAX_NESTING + 1
    assert ran.answers == [f"turned round at {MAX_NESTING}"]
    assert [result.error for result in bottom] == [f"tools may call each other {MAX_NESTING} deep, and no deeper"]


@every_mode
@pytest.mark.parametrize(
    "arguments", [{"a": object()}, {1: "a"}, {"a": {2: 3}}, {"a": float("inf")}, {"a": [{"b": {1, 2}}]}]
)
def test_nested_arguments_are_json_too(mode: str, arguments: dict[Any, Any]) -> None:
    class Odd(BaseTool):
        name = "odd"

        def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
            return env.run_tool("note", arguments)  # type: ignore[no-any-return]

    note = Note()
    ran = drive(mode, [calling("odd"), "done"], [Odd(), note], held())
    assert note.entered == []
    assert ran.answers[0].startswith("The arguments for note are not a JSON object: ")


@every_mode
def test_what_a_tool_passes_on_stays_its_own(mode: str) -> None:
    mine = {"n": [1]}

    class Passes(BaseTool):
        name = "passes"

        def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
            env.run_tool("vandal", mine)
            return ToolResult(str(mine))

    class Vandal(BaseTool):
        name = "vandal"

        def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
            args["n"].append(2)
            return ToolResult("")

    assert drive(mode, [calling("passes"), "done"], [Passes(), Vandal()], held()).answers == ["{'n': [1]}"]


def test_a_thread_that_outlived_its_run_can_start_nothing_any_more() -> None:
    token, outlived, results = CancellationToken(), threading.Event(), []
    note = Note()

    class Lingers(BaseTool):
        name = "lingers"

        def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
            token.cancel()
            results.append(env.run_tool("note", {}))
            outlived.set()
            return ToolResult("")

    drive("async_iter_steps", [calling("lingers"), "never"], [Lingers(), note], held(cancellation=token))
    assert outlived.wait(5)
    assert note.entered == []
    assert results == [ToolResult("", "The run was cancelled before this call was started.")]


@every_mode
def test_what_a_tool_may_know(mode: str, tmp_path: Path) -> None:
    seen: list[Any] = []

    class Looks(BaseTool):
        name = "looks"

        def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
            seen.append((env.root, env.cancelled, env.identity.depth, [tool.name for tool in env.tools]))
            seen.append(env.provider)
            env.on_cancel(lambda: seen.append("never"))()
            return ToolResult("")

    for env, root in ((tmp_path, tmp_path), (str(tmp_path), tmp_path), (SimpleNamespace(root="x"), Path("x"))):
        seen.clear()
        drive(mode, [calling("looks"), "done"], [Looks(), Note()], held(), env=env)
        assert seen[0] == (root, False, 0, ["looks", "note"])
        assert seen[1].model_name == "faux"
    assert root_of(None) is root_of(object()) is None
