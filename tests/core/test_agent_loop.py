"""AgentLoop: the events, in their order, and exactly one result on every path."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from chimera.core.agent_loop import AgentLoop, stream_events
from chimera.core.cancellation import CancellationToken
from chimera.core.context import Context
from chimera.core.decisions import InterceptDecision, Interceptors
from chimera.core.loop import ReAct, new_run
from chimera.core.loop_config import LoopConfig
from chimera.core.loop_events import LoopEvent, LoopEventType, LoopResult
from chimera.core.steering import MessageQueue
from chimera.errors import MisuseError, ProviderBusyError
from chimera.permissions.base import PermissionAction, PermissionPolicy
from chimera.providers.faux import FauxProvider
from chimera.types import Message, PendingApproval, ToolCall, ToolResult
from tests.core.driving import Note, Summarise, assert_acceptable, calling, held

block = InterceptDecision.block
both = pytest.mark.parametrize("stream", [False, True])


async def events(script: Any, tools: Any = None, **options: Any) -> list[LoopEvent]:
    provider = script if hasattr(script, "complete") else FauxProvider(script)
    arguments: dict[str, Any] = {"system_prompt": "be good", **options}
    run = AgentLoop().run([Message.user("go")], tools=tools or [Note()], provider=provider, **arguments)
    return [event async for event in run]


def kinds(found: list[LoopEvent]) -> list[str]:
    return [event.type.value for event in found]


class AskAll(PermissionPolicy):
    def evaluate(self, tool_name: str, args: Any) -> PermissionAction:
        return PermissionAction.ASK


def gate(_value: Any) -> InterceptDecision:
    return block("no")


def aborted() -> CancellationToken:
    token = CancellationToken()
    token.cancel()
    return token


PATHS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "completed": (["done"], {}, "completed"),
    "with tools": ([calling("note"), "done"], {}, "completed"),
    "max turns": ([calling("note")] * 5, {"max_turns": 2}, "max_turns"),
    "no turns": (["never"], {"max_turns": 0}, "max_turns"),
    "context blocked": (["never"], {"interceptors": Interceptors([gate])}, "interceptor_blocked: no"),
    "envelope blocked": (["never"], {"interceptors": Interceptors([], [gate])}, "interceptor_blocked: no"),
    "aborted": (["never"], {"abort_signal": aborted()}, "aborted"),
    "provider raised": ([{"error": ProviderBusyError("busy")}], {}, "error: ProviderBusyError: busy"),
    "provider raised late": ([calling("note"), {"error": OSError("gone")}], {}, "error: OSError: gone"),
    "gated for ever": (
        [calling("note")] * 5,
        {"interceptors": Interceptors(tool_call=[gate]), "config": LoopConfig(yolo_mode=True, max_blocked_steps=2)},
        "blocked_steps_limit: every tool call of the last 2 steps was refused; "
        "the last time: Blocked by interceptor: no",
    ),
}


@both
@pytest.mark.parametrize(("script", "options", "reason"), PATHS.values(), ids=PATHS)
async def test_exactly_one_result_ends_every_path(stream: bool, script: Any, options: Any, reason: str) -> None:
    found = await events(list(script), stream=stream, **options)
    assert kinds(found).count("result") == 1
    assert found[-1].type is LoopEventType.RESULT
    result: LoopResult = found[-1].data
    assert (result.reason, result.success) == (reason, reason == "completed")
    assert (result.error is None) is result.success
    assert_acceptable(result.messages)
    assert kinds(found).count("error") == reason.startswith("error")


async def test_the_order_of_events_of_a_turn() -> None:
    found = await events([calling("note", text="let me see"), {"text": "done", "thinking": "hm"}])
    assert kinds(found) == [
        "stream_start",
        "assistant",
        "tool_use",
        "tool_result",
        "stream_start",
        "assistant",
        "result",
    ]
    assert [event.turn for event in found] == [1, 1, 1, 1, 2, 2, 2]
    start, said, use, answer, *_ = (event.data for event in found)
    assert start == "faux"
    assert said == Message.assistant("let me see", [ToolCall("call_1", "note", {})])
    assert use == ToolCall("call_1", "note", {})
    assert answer == (ToolCall("call_1", "note", {}), ToolResult("noted"))


async def test_streamed_text_and_thinking_come_in_pieces_before_the_message() -> None:
    provider = FauxProvider({"text": "one two three", "thinking": "hm, well"}, chunk_size=5)
    found = await events(provider, stream=True)
    chunks = [(event.type.value, event.data) for event in found[1:-2]]
    assert chunks == [
        ("thinking_chunk", "hm, w"),
        ("thinking_chunk", "ell"),
        ("assistant_chunk", "one t"),
        ("assistant_chunk", "wo th"),
        ("assistant_chunk", "ree"),
    ]
    assert kinds(found)[-2:] == ["assistant", "result"]
    assert provider.requests[0].streamed


@both
async def test_refused_calls_are_answered_and_never_announced(stream: bool) -> None:
    chains = Interceptors(tool_call=[lambda call: block("no") if call.name == "gated" else None])
    script = [calling("gated", "note", "unknown"), "done"]
    found = await events(script, [Note(), Note("gated")], interceptors=chains, stream=stream)
    assert [event.data.name for event in found if event.type is LoopEventType.TOOL_USE] == ["note"]
    answered = [event.data[0].name for event in found if event.type is LoopEventType.TOOL_RESULT]
    assert sorted(answered) == ["gated", "note", "unknown"]


@both
async def test_the_given_conversation_is_not_touched_and_the_result_holds_the_whole_one(stream: bool) -> None:
    given = [Message.user("go")]
    run = AgentLoop().run(
        given, tools=[Note()], provider=FauxProvider([calling("note"), "done"]), system_prompt="s", stream=stream
    )
    result = [event async for event in run][-1].data
    assert given == [Message.user("go")]
    assert [message.role for message in result.messages] == ["user", "assistant", "tool", "assistant"]
    assert (result.output, result.turn_count) == ("done", 2)


async def test_a_context_is_gone_on_with_in_place() -> None:
    context = Context("old prompt", [Message.user("before")])
    run = AgentLoop().run(
        [Message.user("now")], tools=None, provider=FauxProvider("done"), system_prompt="new prompt", context=context
    )
    assert [event async for event in run][-1].data.messages == context.messages
    assert [message.content for message in context.messages] == ["before", "now", "done"]
    assert context.system == "new prompt"


async def test_an_argument_that_is_given_wins_over_the_configuration() -> None:
    configured = LoopConfig(AskAll(), Interceptors([gate]), max_blocked_steps=3)
    found = await events(["done"], interceptors=Interceptors(context=[lambda _: None]), config=configured)
    assert found[-1].data.reason == "completed"
    found = await events(["done"], config=configured)
    assert found[-1].data.reason == "interceptor_blocked: no"
    assert configured.interceptors == Interceptors([gate])


@both
async def test_without_permissions_nothing_is_asked_and_with_them_the_callback_is(stream: bool) -> None:
    asked: list[PendingApproval] = []

    async def ask(approval: PendingApproval) -> bool:
        asked.append(approval)
        await asyncio.sleep(0)
        return len(asked) == 1

    note = Note(effect="command")
    await events([calling("note"), "done"], [note], stream=stream)
    assert (len(note.entered), asked) == (1, [])
    options = {"permissions": AskAll(), "permission_callback": ask, "stream": stream}
    found = await events([calling("note", "note"), "done"], [note], **options)
    assert (len(note.entered), len(asked)) == (2, 2)
    answers = [message.content for message in found[-1].data.messages if message.role == "tool"]
    assert answers == ["noted", "Permission denied: the user denied it"]


@both
async def test_what_waits_in_the_stream_is_shown_before_a_question_is_put(stream: bool) -> None:
    """Whoever answers sees what led to the question."""
    seen: list[str] = []

    async def watch() -> None:
        run = AgentLoop().run(
            [Message.user("go")],
            tools=[Note()],
            provider=FauxProvider([calling("note", text="I need to"), "done"]),
            system_prompt=None,
            permissions=AskAll(),
            permission_callback=lambda _: seen.append("question") or True,  # type: ignore[func-returns-value]
            stream=stream,
        )
        async for event in run:
            seen.append(event.type.value)

    await watch()
    assert seen.index("assistant") < seen.index("question") < seen.index("tool_use")


@both
async def test_steering_while_the_model_answers(stream: bool) -> None:
    queue = MessageQueue()
    run = AgentLoop().run(
        [Message.user("go")],
        tools=[Note()],
        provider=FauxProvider([calling("note"), "done", "later"]),
        system_prompt=None,
        message_queue=queue,
        stream=stream,
    )
    said: list[str] = []
    async for event in run:
        if event.type is LoopEventType.TOOL_RESULT:
            queue.steer("careful")
            queue.follow_up("and then")
        if event.type is LoopEventType.SYSTEM:
            said.append(event.data.content)
    assert said == ["careful", "and then"]


@both
async def test_compaction_is_announced(stream: bool) -> None:
    found = await events([calling("note"), "in short", "done"], compaction=Summarise(2), stream=stream)
    [boundary] = [event.data for event in found if event.type is LoopEventType.COMPACT_BOUNDARY]
    assert (boundary.before, boundary.after) == (3, 1)
    assert found[-1].data.messages[0] == Message.user("summary: in short")


@both
async def test_one_loop_object_serves_many_runs_at_once(stream: bool) -> None:
    loop = AgentLoop()

    async def one(number: int) -> list[str]:
        run = loop.run(
            [Message.user(str(number))],
            tools=[Note(says=f"note {number}", safe=True)],
            provider=FauxProvider([calling("note", "note"), f"done {number}"]),
            system_prompt=None,
            stream=stream,
        )
        result = [event async for event in run][-1].data
        return [message.content for message in result.messages]

    runs = await asyncio.gather(*(one(number) for number in range(10)))
    for number, texts in enumerate(runs):
        assert texts == [str(number), "", f"note {number}", f"note {number}", f"done {number}"]


async def test_misuse_comes_out_at_once() -> None:
    for options, text in (
        ({"interceptors": [gate]}, "interceptors must be Interceptors"),
        ({"permissions": "yes"}, "permissions must be a PermissionPolicy"),
        ({"tools": [Note]}, "the class of one"),
        ({"tools": [Note(), Note()]}, "two tools are named 'note'"),
        ({"tools": [print]}, "is no tool"),
    ):
        with pytest.raises(MisuseError, match=text):
            await events(["never"], **options)


async def test_nothing_happens_before_somebody_looks() -> None:
    provider = FauxProvider("done")
    run = AgentLoop().run([], tools=None, provider=provider, system_prompt=None)
    await asyncio.sleep(0)
    assert provider.requests == []
    await run.aclose()


async def test_text_that_came_before_the_stream_broke_is_not_the_answer() -> None:
    provider = FauxProvider({"text": "half an answer", "error": ProviderBusyError("cut")})
    found = await events(provider, stream=True, config=held())
    assert "assistant_chunk" in kinds(found)
    assert "assistant" not in kinds(found)
    assert (found[-1].data.reason, found[-1].data.messages) == (
        "error: ProviderBusyError: cut",
        [Message.user("go")],
    )


async def test_any_loop_can_be_streamed_and_cancelled_from_outside() -> None:
    for token, reason in ((None, "completed"), (aborted(), "aborted")):
        loop, context = ReAct(config=held()), Context(None, [Message.user("go")])
        run = new_run(loop, FauxProvider("done"), [], context, listening=True)
        stream = stream_events(run, partial(loop.program, context), context, token)
        result = [event async for event in stream][-1].data
        assert result.reason == reason


async def test_what_holds_is_settled_when_somebody_begins_to_listen() -> None:
    config = LoopConfig(yolo_mode=True)
    provider = FauxProvider([calling("note"), "done"])
    run = AgentLoop().run([Message.user("go")], tools=[Note()], provider=provider, system_prompt=None, config=config)
    config.interceptors = Interceptors(tool_call=[gate])
    found = [event async for event in run]
    assert [event.data[1].error for event in found if event.type == "tool_result"] == ["Blocked by interceptor: no"]
