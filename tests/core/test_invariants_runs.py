"""Runs as a whole: unreadable calls, ids, gates that never open, and the identity that policies keep their books by."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from chimera.core.agent_loop import AgentLoop
from chimera.core.context import Context
from chimera.core.interception import SEAMS, InterceptDecision, Interceptors, RunIdentity, current_run
from chimera.core.loop import ReAct, async_drain_steps
from chimera.core.loop_config import LoopConfig
from chimera.core.middleware import LoopMiddleware
from chimera.core.tool import BaseTool
from chimera.permissions.base import PermissionAction, PermissionPolicy
from chimera.providers.base import Response
from chimera.providers.faux import FauxProvider
from chimera.types import Message, ToolCall, ToolResult
from tests.core.driving import Note, Scripted, assert_acceptable, calling, drive, every_mode, held

block = InterceptDecision.block


def gate_all(_call: ToolCall) -> InterceptDecision:
    return block("never")


class TestUnreadableCalls:
    RAW = ('{"path": "a"', "[1, 2]", "null", '"text"', "3", "{'path': 1}", "[" * 100_000, '{"n": NaN}', "rm -rf /")

    @every_mode
    @pytest.mark.parametrize("raw", RAW)
    def test_they_never_run_and_the_model_reads_why(self, mode: str, raw: str) -> None:
        note, seen = Note(), []
        chains = Interceptors(tool_call=[lambda call: seen.append(call)])
        response = Response("", [ToolCall("c1", "note", raw)])  # type: ignore[arg-type]
        ran = drive(mode, Scripted(response, "done"), [note], held(chains))
        assert (note.entered, seen, ran.output) == ([], [], "done")
        [answer] = ran.answers
        assert answer.startswith("The arguments are not a JSON object (")
        assert ran.messages[1].tool_calls[0].arguments == {"unreadable_arguments": raw}

    @every_mode
    def test_the_others_of_the_batch_run(self, mode: str) -> None:
        note = Note()
        calls = [ToolCall("a", "note", "{"), ToolCall("b", "note", '{"n": 1}'), ToolCall("c", "note", "")]  # type: ignore[arg-type]
        ran = drive(mode, Scripted(Response("", calls), "done"), [note], held())
        assert note.entered == [{"n": 1}, {}]
        assert [m.call_id for m in ran.messages if m.role == "tool"] == ["a", "b", "c"]

    @every_mode
    @pytest.mark.parametrize("deep", [99, 101, 5000])
    def test_arguments_nest_only_so_deep(self, mode: str, deep: int) -> None:
        note = Note()
        raw = '{"a": ' * deep + "1" + "}" * deep
        response = Response("", [ToolCall("c1", "note", raw)])  # type: ignore[arg-type]
        ran = drive(mode, Scripted(response, "done"), [note], held(Interceptors(tool_call=[lambda _: None])))
        assert (len(note.entered), ran.output) == (deep < 100, "done")

    @every_mode
    def test_middleware_that_passes_them_on_does_not_make_them_run(self, mode: str) -> None:
        class Louder(LoopMiddleware):
            def after_model(self, context: Context, response: Response) -> Response:
                return replace(response, content=response.content.upper())

        note = Note()
        response = Response("hm", [ToolCall("c1", "note", "{")])  # type: ignore[arg-type]
        ran = drive(mode, Scripted(response, "done"), [note], held(middleware=[Louder()]))
        assert (note.entered, ran.messages[1].content) == ([], "HM")


@every_mode
@pytest.mark.parametrize("ids", [["x", "x", "x"], ["", "", ""], [None, "x", "x"], ["call_1", None, "call_1"]])
def test_ids_are_unique_before_anybody_sees_them(mode: str, ids: list[Any]) -> None:
    seen: dict[str, list[str]] = {"tool_call": [], "tool_result": []}
    chains = Interceptors(
        tool_call=[lambda call: seen["tool_call"].append(call.id)],
        tool_result=[lambda call, _: seen["tool_result"].append(call.id)],
    )
    response = Response("", [ToolCall(each, "note", {"n": n}) for n, each in enumerate(ids)])
    ran = drive(mode, Scripted(response, "done"), [Note()], held(chains))
    recorded = [call.id for call in ran.messages[1].tool_calls]
    assert len(set(recorded)) == 3
    assert all(recorded)
    assert seen == {"tool_call": recorded, "tool_result": recorded}
    assert_acceptable(ran.messages)
    kept = [each for n, each in enumerate(ids) if each and each not in ids[:n]]
    assert [each for each in recorded if each in kept] == kept


class DenyAll(PermissionPolicy):
    def evaluate(self, tool_name: str, args: Any) -> PermissionAction:
        return PermissionAction.DENY


class TestGatesThatNeverOpen:
    @every_mode
    @pytest.mark.parametrize("limit", [1, 3, 10])
    def test_the_run_ends_and_says_why(self, mode: str, limit: int) -> None:
        options = {} if limit == 10 else {"max_blocked_steps": limit}
        config = held(Interceptors(tool_call=[gate_all]), **options)
        ran = drive(mode, [calling("note", "note")] * 50, [Note()], config, max_steps=40)
        assert len(ran.requests) == limit
        text = f"every tool call of the last {limit} steps was refused; the last time: Blocked by interceptor: never"
        assert ran.reason == (f"blocked_steps_limit: {text}" if mode.startswith("agent") else text)
        assert not ran.success
        assert_acceptable(ran.messages)

    @every_mode
    def test_denials_count_like_blocks(self, mode: str) -> None:
        ran = drive(mode, [calling("note")] * 50, [Note()], LoopConfig(DenyAll()), max_steps=40)
        assert len(ran.requests) == 10

    @every_mode
    @pytest.mark.parametrize("relief", [calling("free", "note"), calling("free"), calling("unknown", "note")])
    def test_a_step_in_which_something_was_not_refused_starts_the_count_anew(self, mode: str, relief: Any) -> None:
        chains = Interceptors(tool_call=[lambda call: block("no") if call.name == "note" else None])
        script = [*[calling("note")] * 2, relief, *[calling("note")] * 2, "done"]
        ran = drive(mode, script, [Note(), Note("free")], held(chains, max_blocked_steps=3))
        assert (ran.output, ran.success) == ("done", True)

    @every_mode
    def test_zero_means_no_limit(self, mode: str) -> None:
        config = held(Interceptors(tool_call=[gate_all]), max_blocked_steps=0)
        ran = drive(mode, [calling("note")] * 50, [Note()], config, max_steps=30)
        assert len(ran.requests) == 30


class TestIdentity:
    @every_mode
    def test_every_interceptor_of_a_run_learns_for_whom_it_decides(self, mode: str) -> None:
        seen: list[RunIdentity | None] = []
        chain: list[Any] = [lambda *_: seen.append(current_run())]
        context = Context("s", [Message.user("go")])
        chains = Interceptors(**dict.fromkeys(SEAMS, chain))
        drive(mode, [calling("note"), "done"], [Note()], held(chains), context=context)
        assert len(seen) == 6
        [who] = set(seen)
        assert who is not None
        assert (who.conversation_id, who.depth, who.parent, who.lane) == (context.conversation_id, 0, None, "")
        assert who.loop == ("agent" if mode.startswith("agent") else "react")
        assert who.run_id
        assert current_run() is None

    @every_mode
    def test_runs_of_one_conversation_share_its_id_and_nothing_else(self, mode: str) -> None:
        seen: list[Any] = []
        config = held(Interceptors(context=[lambda _: seen.append(current_run())]))
        context = Context()
        for _ in range(2):
            drive(mode, ["one"], [], config, context=context)
        drive(mode, ["other"], [], config)
        first, second, other = seen
        assert first.conversation_id == second.conversation_id != other.conversation_id
        assert len({who.run_id for who in seen}) == 3

    @every_mode
    def test_a_run_inside_a_tool_is_a_child(self, mode: str) -> None:
        seen: list[Any] = []

        class Spawn(BaseTool):
            name = "spawn"

            def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
                script = FauxProvider([calling("spawn") if env.identity.depth < 2 else "leaf", "done"])
                return ToolResult(ReAct().run(script, [self], Context()).output)

        config = held(Interceptors(context=[lambda _: seen.append(current_run())]))
        drive(mode, [calling("spawn"), "done"], [Spawn()], config)
        by_depth = {who.depth: who for who in seen}
        assert sorted(by_depth) == [0, 1, 2, 3]
        for depth in (1, 2, 3):
            assert by_depth[depth].parent == by_depth[depth - 1].run_id
            assert by_depth[depth].conversation_id != by_depth[0].conversation_id

    async def test_the_lane_is_the_runs_and_its_childrens(self) -> None:
        seen: list[Any] = []

        class Spawn(BaseTool):
            name = "spawn"

            async def async_execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
                await async_drain_steps(ReAct().async_iter_steps(FauxProvider("child"), [], Context()))
                return ToolResult("ok")

        events = AgentLoop().run(
            [],
            tools=[Spawn()],
            provider=FauxProvider([calling("spawn"), "done"]),
            system_prompt=None,
            interceptors=Interceptors(context=[lambda _: seen.append(current_run())]),
            lane="blue",
        )
        async for _ in events:
            pass
        assert [(who.lane, who.depth) for who in seen] == [("blue", 0), ("blue", 1), ("blue", 0)]

    async def test_runs_side_by_side_never_see_each_others_identity(self) -> None:
        async def one_run() -> None:
            context, seen = Context(), []

            def note(*_: Any) -> None:
                who = current_run()
                assert who is not None
                seen.append(who.conversation_id)

            chain: list[Any] = [note]
            loop = ReAct(config=held(Interceptors(**dict.fromkeys(SEAMS, chain))))
            provider = FauxProvider([calling("note", "note"), "done"])
            async for _ in loop.async_iter_steps(provider, [Note(safe=True)], context):
                await asyncio.sleep(0)
            assert set(seen) == {context.conversation_id}
            assert len(seen) == 8

        await asyncio.gather(*(one_run() for _ in range(20)))


@every_mode
def test_the_work_of_a_turn_does_not_grow_with_the_square_of_the_conversation(mode: str) -> None:
    """Messages are handed out as they are: a policy can tell by identity what it has already looked at."""
    looked_at: dict[int, Message] = {}
    new: list[int] = []

    def remember(messages: list[Message]) -> None:
        fresh = [message for message in messages if id(message) not in looked_at]
        looked_at.update((id(message), message) for message in fresh)
        new.append(len(fresh))

    script = [*[calling("note")] * 15, "done"]
    drive(mode, script, [Note()], held(Interceptors(context=[remember])))
    assert new == [2] * 16
