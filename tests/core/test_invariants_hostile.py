"""Interceptors that edit, raise, return junk, take their time or run agents of their own: none of it gets anywhere."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from typing import Any

import pytest

from chimera.core.context import Context
from chimera.core.interception import (
    SEAMS,
    InterceptDecision,
    Interceptors,
    current_run,
    intercept_tool_call,
)
from chimera.core.loop import ReAct
from chimera.core.loop_config import LoopConfig
from chimera.core.tool import BaseTool
from chimera.providers.faux import FauxProvider
from chimera.types import Message, ToolCall, ToolResult
from tests.core.driving import Note, Ran, assert_acceptable, calling, drive, edits, every_mode, held

allow, replace, block = InterceptDecision.allow, InterceptDecision.replace, InterceptDecision.block
every_seam = pytest.mark.parametrize("seam", SEAMS)
ARGUMENTS: dict[str, Any] = {"n": 1, "list": [1, {"deep": "x"}]}
SCRIPT: list[Any] = [calling(("note", ARGUMENTS), ("note", ARGUMENTS), text="hm"), calling(("note", ARGUMENTS)), "done"]


def run(mode: str, chains: Interceptors | None, note: BaseTool | None = None, **options: Any) -> Ran:
    tool = note or Note(says=ToolResult("out", None, {"k": [1]}), safe=True)
    return drive(mode, FauxProvider(SCRIPT, headers={"A": "b"}), [tool], held(chains, **options))


def one(seam: str, *chain: Any) -> Interceptors:
    return Interceptors(**{seam: list(chain)})


def same(ran: Ran, control: Ran) -> bool:
    return (ran.messages, ran.requests, ran.steps, ran.output) == (
        control.messages,
        control.requests,
        control.steps,
        control.output,
    )


@every_mode
@every_seam
def test_edits_in_place_change_nothing(mode: str, seam: str) -> None:
    """Not this call, not the durable conversation, not what the next interceptor sees."""
    seen: list[str] = []
    before: list[str] = []

    def look(into: list[str]) -> Callable[..., None]:
        return lambda *values: into.append(repr(values))

    def vandal(*values: Any) -> InterceptDecision:
        edits(*values)
        return allow()

    ran = run(mode, one(seam, look(before), vandal, look(seen)))
    assert same(ran, run(mode, None))
    assert seen == before
    assert ran.decisions == []


@every_mode
@every_seam
def test_edits_after_the_fact_change_nothing_either(mode: str, seam: str) -> None:
    """What was handed out, and what was given back in a replacement, stays the interceptor's own to spoil."""
    kept: list[Any] = []

    def hoard(*values: Any) -> InterceptDecision:
        edits(*kept)
        kept.extend(values)
        given = values[-1]
        kept.append(given)
        return replace(given)

    assert same(run(mode, one(seam, hoard)), run(mode, None))


async def _coroutine() -> InterceptDecision:
    return allow()


async def _async_generator() -> Any:
    yield allow()


def _generator() -> Any:
    yield allow()


class _Liar(InterceptDecision):
    """Says something else each time it is asked."""

    @property
    def kind(self) -> Any:
        raise RuntimeError


JUNK: dict[str, Callable[[], Any]] = {
    "True": lambda: True,
    "False": lambda: False,
    "0": lambda: 0,
    "1": lambda: 1,
    "empty text": lambda: "",
    "text": lambda: "allow",
    "list": list,
    "dict": lambda: {"kind": "allow"},
    "class": lambda: InterceptDecision,
    "method": lambda: InterceptDecision.allow,
    "object": object,
    "coroutine": _coroutine,
    "async generator": _async_generator,
    "generator": _generator,
    "unknown kind": lambda: InterceptDecision("maybe"),  # type: ignore[arg-type]
    "no kind": lambda: InterceptDecision(None),  # type: ignore[arg-type]
    "unhashable kind": lambda: InterceptDecision(["allow"]),  # type: ignore[arg-type]
    "liar": lambda: object.__new__(_Liar),
    "the argument": lambda: ToolCall("c", "note", {}),
    "replace junk": lambda: replace(object()),
    "raise": lambda: _crash(),
    "recursion": lambda: _recurse(),
    "stop iteration": lambda: next(iter(())),
    "hostile text": lambda: _raise_unprintable(),
}


def _crash() -> Any:
    raise ValueError("broken")


def _recurse() -> Any:
    return _recurse()


def _raise_unprintable() -> Any:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    raise Unprintable


@every_mode
@pytest.mark.parametrize("seam", [seam for seam in SEAMS if seam != "tool_call"])
@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK)
def test_junk_on_a_shaping_seam_is_skipped_and_reported(mode: str, seam: str, junk: Any) -> None:
    ran = run(mode, one(seam, lambda *_: junk()))
    assert same(ran, run(mode, None))
    assert {(event.seam, event.decision) for event in ran.decisions} == {(seam, "error")}
    gc.collect()


@every_mode
@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK)
def test_junk_is_no_consent(mode: str, junk: Any) -> None:
    note = Note(safe=True)
    ran = run(mode, one("tool_call", lambda _: junk()), note)
    assert note.entered == []
    assert all(text.startswith("Blocked by interceptor: interceptor error: ") for text in ran.answers)
    assert len(ran.answers) == 3
    assert {event.decision for event in ran.decisions} == {"error"}
    gc.collect()


@every_mode
@every_seam
def test_an_asynchronous_interceptor_that_slipped_in_later_is_junk(mode: str, seam: str) -> None:
    async def late(*_: Any) -> InterceptDecision:
        return block("never awaited")

    chains = Interceptors()
    getattr(chains, seam).append(late)
    note = Note(safe=True)
    ran = run(mode, chains, note)
    assert {event.decision for event in ran.decisions} == {"error"}
    assert len(note.entered) == (0 if seam == "tool_call" else 3)
    gc.collect()


@every_mode
@every_seam
@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_interrupts_pass_through_and_leave_a_conversation_that_can_go_on(
    mode: str, seam: str, interrupt: type[BaseException]
) -> None:
    def pressed(*_: Any) -> None:
        raise interrupt

    context = Context("s", [Message.user("go")])
    with pytest.raises(interrupt):
        drive(mode, list(SCRIPT), [Note()], held(one(seam, pressed)), context=context)
    assert_acceptable(context.messages)


@every_mode
@every_seam
def test_slow_interceptors_only_take_time(mode: str, seam: str) -> None:
    def slow(*_: Any) -> None:
        time.sleep(0.003)

    assert same(run(mode, one(seam, slow, slow)), run(mode, None))


@every_mode
@every_seam
def test_an_interceptor_may_run_chains_of_its_own(mode: str, seam: str) -> None:
    who: list[Any] = []

    def inner(_call: ToolCall) -> InterceptDecision:
        who.append(current_run())
        return block("inner")

    def outer(*_: Any) -> None:
        before = current_run()
        assert intercept_tool_call([inner], ToolCall("x", "y", {}))[1] == "inner"
        assert before is not None
        assert current_run() is before
        assert who[-1] is before, "a chain that is run by hand decides for the conversation around it"

    ran = run(mode, one(seam, outer))
    assert same(ran, run(mode, None))
    assert ran.decisions == []


@every_mode
@every_seam
def test_an_interceptor_may_run_an_agent_of_its_own(mode: str, seam: str) -> None:
    """The judge is an agent: it is held to its own rules and not to the chain in which it stands."""
    judge_note, seen = Note(), []

    def judge(*_: Any) -> None:
        mine = current_run()
        gate = Interceptors(tool_call=[lambda call: seen.append(current_run())])
        context = Context(None, [Message.user("judge!")])
        result = ReAct(config=held(gate)).run(FauxProvider([calling("note"), "fine"]), [judge_note], context)
        assert (result.output, result.success) == ("fine", True)
        assert current_run() is mine

    ran = run(mode, one(seam, judge))
    assert same(ran, run(mode, None))
    assert len(judge_note.entered) == len(seen) > 0
    assert all(who is not None and who.depth == 0 for who in seen)
    assert current_run() is None


@every_mode
def test_a_sub_agent_of_an_agent_inside_an_interceptor_is_held_to_that_agents_rules(mode: str) -> None:
    reached = Note("reached")

    class Spawn(BaseTool):
        name = "spawn"

        def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
            assert current_run() is None, "a tool body is no interceptor, wherever its run was started"
            script = FauxProvider([calling("reached"), "child done"])
            return ToolResult(ReAct().run(script, [reached], Context(None, [Message.user("x")])).output)

    answers: list[str] = []

    def judge(_call: ToolCall) -> None:
        gate = Interceptors(tool_call=[lambda call: block("not below") if call.name == "reached" else None])
        context = Context(None, [Message.user("judge!")])
        ReAct(config=held(gate)).run(FauxProvider([calling("spawn"), "fine"]), [Spawn()], context)
        answers.extend(message.content for message in context.messages if message.role == "tool")

    run(mode, one("tool_call", judge))
    assert reached.entered == []
    assert set(answers) == {"child done"}


class _Unreadable(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("not for you")


def _endless() -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    metadata["self"] = metadata
    return metadata


def _deep() -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for _ in range(3000):
        metadata = {"deeper": metadata}
    return metadata


@every_mode
@pytest.mark.parametrize("make", [lambda: _Unreadable(a=1), _endless, _deep, lambda: {"a": object()}, lambda: None])
def test_nothing_that_a_tool_returns_keeps_its_result_from_being_judged(mode: str, make: Any) -> None:
    """The seam fails open: what cannot even be handed out must not count as a failure of the interceptor."""

    def scrub(_call: ToolCall, result: ToolResult) -> InterceptDecision:
        return replace(ToolResult(result.output.replace("s3cret", "[x]")))

    note = Note(says=ToolResult("s3cret", None, make()))
    ran = drive(mode, [calling("note"), "done"], [note], held(one("tool_result", scrub)))
    assert ran.answers == ["[x]"]
    assert {event.decision for event in ran.decisions} == {"replaced"}


@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK)
async def test_many_hostile_runs_at_once_stay_apart(junk: Any) -> None:
    """Ten runs side by side, every other one behind a broken gate: the broken ones block, the others do not notice."""

    async def one_run(number: int) -> tuple[int, int]:
        note = Note(safe=True)
        chain: list[Any] = [lambda _: junk()] if number % 2 else []
        loop = ReAct(config=LoopConfig(interceptors=Interceptors(tool_call=chain), yolo_mode=True))
        context = Context(None, [Message.user("go")])
        async for _ in loop.async_iter_steps(FauxProvider(SCRIPT), [note], context):
            await asyncio.sleep(0)
        assert_acceptable(context.messages)
        return number, len(note.entered)

    results = await asyncio.gather(*(one_run(number) for number in range(10)))
    assert results == [(number, 0 if number % 2 else 3) for number in range(10)]
    gc.collect()
