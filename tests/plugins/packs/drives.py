"""The real loops, each way they can be driven, with real tools in a real folder and a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chimera.core import AgentLoop, Context, Interceptors, LoopConfig, ReAct
from chimera.core.loop import async_drain_steps
from chimera.core.loop_events import LoopEventType
from chimera.core.loops.plan_execute import PlanAndExecute
from chimera.core.loops.reflexion import Reflexion
from chimera.core.loops.tree_of_thought import TreeOfThought
from chimera.core.tool import BaseTool
from chimera.plugins import BasePlugin, PluginManager
from chimera.providers.faux import FauxProvider
from chimera.testing import create_assembled_harness
from chimera.tools import default_tools
from chimera.types import Message, ToolResult

__all__ = ["DRIVES", "STRATEGIES", "Drive", "Echo", "Talk", "bundle_of", "calls"]


class Echo(BaseTool):
    """Says what it is told to say, and fails with what it is told to fail with."""

    name = "echo"
    parameters = {"type": "object", "properties": {"say": {"type": "string"}, "fail": {"type": "string"}}}  # noqa: RUF012

    def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        return ToolResult(args.get("say", ""), args.get("fail"), {"raw": args.get("say", "")})


@dataclass
class Talk:
    """A conversation: the folder it works on, the model, the policy, and what has been said so far."""

    root: Path
    script: Any
    pack: BasePlugin | None = None
    tools: Sequence[BaseTool] = ()
    system: str | None = "You are a test."

    def __post_init__(self) -> None:
        self.provider = FauxProvider(self.script, headers={"Authorization": "Bearer own-key-1234", "X-Trace": "t"})
        self.context = Context(self.system)
        self.held = [*default_tools(self.root), *self.tools]

    @property
    def bundle(self) -> Interceptors | None:
        return bundle_of(self.pack)

    @property
    def answers(self) -> list[str]:
        """What the calls were answered, as the durable conversation has it."""
        return [message.content for message in self.context.messages if message.role == "tool"]

    def config(self) -> LoopConfig:
        return LoopConfig(interceptors=self.bundle, yolo_mode=True)


Drive = Callable[[Talk, str], None]


def bundle_of(pack: Any) -> Interceptors | None:
    bundle: Interceptors | None = None if pack is None else pack.interceptors()
    return bundle


def calls(*given: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a step of a script that makes these calls."""
    return {"tool_calls": [{"name": name, "arguments": arguments} for name, arguments in given]}


def react(talk: Talk, prompt: str) -> None:
    talk.context.add(Message.user(prompt))
    ReAct(config=talk.config()).run(talk.provider, talk.held, talk.context, talk)


def react_async(talk: Talk, prompt: str) -> None:
    talk.context.add(Message.user(prompt))
    loop = ReAct(config=talk.config())
    asyncio.run(async_drain_steps(loop.async_iter_steps(talk.provider, talk.held, talk.context, talk)))


def _agent_loop(stream: bool) -> Drive:
    async def run(talk: Talk, prompt: str) -> None:
        events = AgentLoop().run(
            (),
            tools=talk.held,
            provider=talk.provider,
            system_prompt=talk.system,
            interceptors=talk.bundle,
            stream=stream,
            env=talk,
            context=talk.context,
            prompts=[Message.user(prompt)],
        )
        ends = [event async for event in events if event.type is LoopEventType.RESULT]
        assert len(ends) == 1

    return lambda talk, prompt: asyncio.run(run(talk, prompt))


def _assembled(stream: bool) -> Drive:
    """The whole stack, with the pack as a loaded plugin."""

    def run(talk: Talk, prompt: str) -> None:
        manager = PluginManager()
        if talk.pack is not None:
            manager.load_plugin(talk.pack)
        kwargs = {"system_prompt": talk.system}
        harness = create_assembled_harness(
            provider=talk.provider, workspace=talk.root, tools=talk.held, agent_kwargs=kwargs, stream=stream
        )
        harness.driver.load_history(talk.context.messages)
        done = asyncio.run(_awaited(harness.run(prompt)))
        talk.context.messages[:] = done.messages
        if talk.pack is not None:
            manager.unload(talk.pack.name)

    return run


async def _awaited(run: Any) -> Any:
    return await run


def _strategy(make: Callable[[LoopConfig], Any]) -> Drive:
    def run(talk: Talk, prompt: str) -> None:
        talk.context.add(Message.user(prompt))
        make(talk.config()).run(talk.provider, talk.held, talk.context, talk)

    return run


DRIVES: dict[str, Drive] = {
    "react": react,
    "react-async": react_async,
    "agent-loop": _agent_loop(stream=False),
    "agent-loop-streamed": _agent_loop(stream=True),
    "assembled": _assembled(stream=False),
    "assembled-streamed": _assembled(stream=True),
}
STRATEGIES: dict[str, Drive] = {
    "plan-execute": _strategy(lambda config: PlanAndExecute(6, config)),
    "reflexion": _strategy(lambda config: Reflexion(6, config)),
    "tot": _strategy(lambda config: TreeOfThought(6, config=config)),
}
