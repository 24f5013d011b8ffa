"""How what a user says enters the conversation, and what hooks have to say at the end of a run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from chimera.core.agent_loop import AgentLoop
from chimera.core.context import Context
from chimera.core.loop import ReAct
from chimera.core.loop_events import LoopResult
from chimera.core.steering import MessageQueue
from chimera.core.tool import BaseTool
from chimera.providers.faux import FauxProvider
from chimera.types import Message, ToolResult
from tests.core.driving import Note, calling, held


class Hooks:
    """Says what it is told to say, and notes what it is asked."""

    def __init__(self, *kinds: str, refuses: str = "", adds: str = "", stop: Any = "") -> None:
        self.kinds, self.refuses, self.adds, self.says = kinds, refuses, adds, stop
        self.asked: list[tuple[str, Any]] = []

    def has(self, kind: str) -> bool:
        return kind in self.kinds

    def session_start(self, identity: Any) -> str:
        self.asked.append(("start", identity.depth))
        return "it is Monday"

    def user_prompt_submit(self, prompt: str, identity: Any) -> Any:
        self.asked.append(("prompt", prompt))
        verdict = "deny" if self.refuses and self.refuses in prompt else "allow"
        return SimpleNamespace(decision=verdict, reason="not that", context=self.adds)

    def stop(self, identity: Any) -> str:
        self.asked.append(("stop", identity.depth))
        return str(self.says)


async def run(hooks: Any, script: Any, *prompts: str, **options: Any) -> tuple[LoopResult, FauxProvider]:
    provider = FauxProvider(script)
    arguments: dict[str, Any] = {"tools": [Note()], "system_prompt": None, "config": held(hooks=hooks), **options}
    events = AgentLoop().run((), provider=provider, prompts=[Message.user(text) for text in prompts], **arguments)
    return [event async for event in events][-1].data, provider


def texts(result: LoopResult) -> list[str]:
    return [message.content for message in result.messages]


async def test_without_hooks_prompts_enter_as_they_are() -> None:
    result, _ = await run(None, "done", "one", "two")
    assert texts(result) == ["one", "two", "done"]


async def test_hooks_greet_an_empty_conversation_once_and_add_to_prompts() -> None:
    hooks = Hooks("SessionStart", "UserPromptSubmit", adds="be brief")
    result, _ = await run(hooks, "done", "one", "two")
    assert texts(result) == ["it is Monday", "be brief", "one", "be brief", "two", "done"]
    assert hooks.asked == [("start", 0), ("prompt", "one"), ("prompt", "two")]
    context = Context(None, [Message.user("earlier")])
    again = Hooks("SessionStart")
    result, _ = await run(again, "done", "one", context=context)
    assert (texts(result), again.asked) == (["earlier", "one", "done"], [])


@pytest.mark.parametrize("runners", [1, 2])
async def test_a_refused_prompt_ends_the_run_and_enters_nothing(runners: int) -> None:
    hooks = [Hooks("UserPromptSubmit"), Hooks("UserPromptSubmit", refuses="secret")][-runners:]
    result, provider = await run(hooks, "never", "fine", "a secret", "more")
    assert result.reason == "prompt_blocked: Blocked by hook: not that"
    assert texts(result) == ["fine"]
    assert provider.requests == []


async def test_steered_and_waiting_messages_pass_the_hooks_too() -> None:
    queue = MessageQueue()
    queue.steer("steered")
    queue.follow_up("a secret")
    hooks = Hooks("UserPromptSubmit", refuses="secret")
    result, _ = await run(hooks, ["one", "never"], "go", config=held(hooks=hooks, message_queue=queue))
    assert texts(result) == ["go", "steered", "one"]
    assert result.reason.startswith("prompt_blocked")


async def test_an_objection_makes_the_run_go_on_once() -> None:
    hooks = Hooks("Stop", stop="you forgot the tests")
    result, _ = await run(hooks, ["done", "really done", "never"], "go")
    assert texts(result) == ["go", "done", "you forgot the tests", "really done"]
    assert hooks.asked == [("stop", 0)]
    assert result.output == "really done"


async def test_nobody_objects_to_a_run_that_failed() -> None:
    hooks = Hooks("Stop", stop="go on")
    result, _ = await run(hooks, [calling("note")] * 5, "go", max_turns=2)
    assert (result.reason, hooks.asked) == ("max_turns", [])


async def test_a_silent_hook_lets_the_run_end() -> None:
    result, _ = await run(Hooks("Stop"), "done", "go")
    assert (result.reason, texts(result)) == ("completed", ["go", "done"])


async def test_a_hook_for_prompts_that_crashes_lets_nothing_through() -> None:
    class Broken(Hooks):
        def user_prompt_submit(self, prompt: str, identity: Any) -> Any:
            raise OSError("no such program")

    result, provider = await run(Broken("UserPromptSubmit"), "never", "go")
    assert result.reason == "error: OSError: no such program"
    assert (texts(result), provider.requests) == ([], [])


async def test_a_sub_agent_is_no_user() -> None:
    """Its task was written by the agent: hooks for prompts, starts and ends are about the person in front."""
    hooks = Hooks("SessionStart", "UserPromptSubmit", "Stop")

    class Spawn(BaseTool):
        name = "spawn"

        async def async_execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
            result, _ = await run(None, "child", "sub-task")
            return ToolResult(result.output)

        def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
            return ToolResult(ReAct().run(FauxProvider("child"), [], Context()).output)

    await run(hooks, [calling("spawn"), "done"], "go", tools=[Spawn()])
    assert hooks.asked == [("start", 0), ("prompt", "go"), ("stop", 0)]
