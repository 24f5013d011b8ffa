"""The delegate tool: whoever can do a task may stand behind it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from chimera.core import Context, LoopConfig, ReAct
from chimera.core.loop import async_drain_steps
from chimera.errors import MisuseError
from chimera.providers.faux import FauxProvider
from chimera.tools.delegate import DelegateTool, SubAgent
from chimera.types import Message, ToolResult

SCRIPT: list[Any] = [{"tool_calls": [{"name": "delegate", "arguments": {"task": "look"}}]}, "done"]


def answer(sub_agent: Any, *, asynchronous: bool) -> str:
    context = Context(messages=[Message.user("go")])
    loop, tool = ReAct(config=LoopConfig(yolo_mode=True)), DelegateTool(sub_agent)
    if asynchronous:
        asyncio.run(async_drain_steps(loop.async_iter_steps(FauxProvider(SCRIPT), [tool], context)))
    else:
        loop.run(FauxProvider(SCRIPT), [tool], context)
    return context.messages[2].content


class Plain:
    def run(self, task: str, env: Any = None) -> Any:
        return SimpleNamespace(success=True, output=f"{task} ok", error=None)


class Awaitable:
    async def run(self, task: str, env: Any = None) -> Any:
        return SimpleNamespace(success=True, output=f"{task} ok", error=None)


class Failing:
    def run(self, task: str, env: Any = None) -> Any:
        return SimpleNamespace(success=False, output="half of it", error="no light")


class Raising:
    def run(self, task: str, env: Any = None) -> Any:
        raise RuntimeError("lost")


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("sub_agent", "text"),
    [
        (Plain(), "look ok"),
        (Awaitable(), "look ok"),
        (Failing(), "half of it\nno light"),
        (Raising(), "RuntimeError: lost"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_can_run_a_task_may_be_the_sub_agent(sub_agent: Any, text: str, asynchronous: bool) -> None:
    assert answer(sub_agent, asynchronous=asynchronous) == text


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_the_default_sub_agent_has_a_fresh_conversation_and_the_same_tools(asynchronous: bool) -> None:
    provider = FauxProvider([SCRIPT[0], "report", "done"])
    context = Context("outer prompt", [Message.user("outer words")])
    loop = ReAct(config=LoopConfig(yolo_mode=True))
    if asynchronous:
        asyncio.run(async_drain_steps(loop.async_iter_steps(provider, [DelegateTool()], context)))
    else:
        loop.run(provider, [DelegateTool()], context)
    inner = provider.requests[1]
    assert [message.content for message in inner.messages][1:] == ["look"]
    assert "outer" not in str(inner.messages)
    assert inner.tools == provider.requests[0].tools
    assert context.messages[2].content == "report"


def test_a_sub_agent_that_runs_out_of_steps_says_so() -> None:
    script: list[Any] = [SCRIPT[0], *[{"tool_calls": [{"name": "nothing", "arguments": {}}]}] * 3, "done"]
    context = Context(messages=[Message.user("go")])
    ReAct(config=LoopConfig(yolo_mode=True)).run(FauxProvider(script), [DelegateTool(SubAgent(max_steps=3))], context)
    assert "within 3 steps" in context.messages[2].content


def test_a_sub_agent_outside_a_run_is_a_misuse() -> None:
    with pytest.raises(MisuseError, match="inside another run"):
        SubAgent().run("x")
    assert isinstance(DelegateTool(Plain()).execute({"task": "x"}), ToolResult)
