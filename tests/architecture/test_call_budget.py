"""A guard against slow steps that needs no stopwatch: how many functions a step may call, counted by the profiler hook.

A number that went up says that work came back into the path of every step. Raise a budget only for something that each
step must do, and say in the commit what that is.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from chimera.core import AgentLoop, BaseTool, Context, InterceptDecision, Interceptors, LoopConfig, ReAct
from chimera.core.interception import merge_interceptors
from chimera.core.loop import async_drain_steps
from chimera.plugins.packs import DelegateSpawnerPlugin, PlanGatePlugin, RedactorPlugin
from chimera.providers.base import Response
from chimera.types import Message, ToolCall, ToolResult

SHORT, LONG = 40, 80


class Model:
    """Calls `echo` in each of `steps` answers, which were made beforehand, and then says that it is done."""

    model_name = "scripted"

    def __init__(self, steps: int) -> None:
        calls = [Response("", [ToolCall(f"c{number}", "echo", {"text": "a"})]) for number in range(steps)]
        self._answers = iter([*calls, Response("done")])

    def complete(self, messages: list[Message], tools: Any = None, **kwargs: Any) -> Response:
        return next(self._answers)

    async def async_complete(self, messages: list[Message], tools: Any = None, **kwargs: Any) -> Response:
        return next(self._answers)


class Echo(BaseTool):
    name = "echo"
    parameters = {"type": "object", "properties": {"text": {"type": "string"}}}  # noqa: RUF012

    def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        return ToolResult(args["text"])

    async def async_execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        return ToolResult(args["text"])


def allow(*_: Any) -> InterceptDecision | None:
    return None


def no_policy() -> None:
    return None


def policy() -> Interceptors:
    return Interceptors(context=[allow], tool_call=[allow], tool_result=[allow])


def packs() -> Interceptors | None:
    plugins = (PlanGatePlugin(), RedactorPlugin(), DelegateSpawnerPlugin())
    return merge_interceptors(*(plugin.interceptors() for plugin in plugins))


def sync_run(steps: int, chains: Interceptors | None) -> None:
    config = LoopConfig(interceptors=chains, yolo_mode=True)
    ReAct(steps + 1, config).run(Model(steps), [Echo()], Context("Help.", [Message.user("Go.")]))


def async_run(steps: int, chains: Interceptors | None) -> None:
    loop = ReAct(steps + 1, LoopConfig(interceptors=chains, yolo_mode=True))
    stream = loop.async_iter_steps(Model(steps), [Echo()], Context("Help.", [Message.user("Go.")]))
    asyncio.run(async_drain_steps(stream))


def agent_run(steps: int, chains: Interceptors | None) -> None:
    async def consume() -> None:
        events = AgentLoop().run(
            [Message.user("Go.")], tools=[Echo()], provider=Model(steps), system_prompt="Help.", interceptors=chains
        )
        async for _ in events:
            pass

    asyncio.run(consume())


RUNS: dict[str, Callable[[int, Interceptors | None], None]] = {
    "sync": sync_run,
    "async": async_run,
    "agent": agent_run,
}


def calls_of(run: Callable[[int, Interceptors | None], None], steps: int, chains: Interceptors | None) -> int:
    """Return how many functions, built in or not, a run calls or resumes."""
    count = 0

    def look(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        run(steps, chains)
    finally:
        sys.setprofile(before)
    return count


def calls_per_step(kind: str, make: Callable[[], Interceptors | None], start: int = SHORT, end: int = LONG) -> float:
    run = RUNS[kind]
    run(2, make())  # whatever is done once, an import say
    return (calls_of(run, end, make()) - calls_of(run, start, make())) / (end - start)


@pytest.mark.parametrize(
    ("kind", "make", "budget"),
    [
        ("sync", no_policy, 166),
        ("sync", policy, 198),
        ("sync", packs, 380),
        ("async", no_policy, 220),
        ("async", policy, 252),
        ("agent", no_policy, 266),
        ("agent", policy, 301),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_step_calls_no_more_than_it_may(kind: str, make: Callable[[], Interceptors | None], budget: int) -> None:
    assert calls_per_step(kind, make) <= budget


@pytest.mark.parametrize("make", [policy, packs])
def test_a_long_conversation_makes_no_step_call_more(make: Callable[[], Interceptors | None]) -> None:
    assert calls_per_step("sync", make, 400, 440) <= calls_per_step("sync", make) + 1


def test_the_profiler_sees_what_it_must() -> None:
    """Guards the tests above: a hook that saw nothing would let them pass."""
    assert calls_per_step("sync", policy) > calls_per_step("sync", no_policy) > 10
