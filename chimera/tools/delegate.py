"""delegate: hand a task to a sub-agent."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from chimera.core.context import Context
from chimera.core.loop import ReAct, async_drain_steps
from chimera.core.tool import BaseTool
from chimera.errors import MisuseError, ToolError
from chimera.threads import in_thread, run_coroutine
from chimera.types import AgentResult, Message, ToolResult

__all__ = ["DelegateTool", "SubAgent"]

_PROMPT = (
    "You are a sub-agent. Another agent gave you one task. Do it with the tools you have, then answer with a short "
    "report of what you did and found: your answer is all that the other agent will read."
)


class SubAgent:
    """A fresh conversation over the provider and the tools of the run that asks for it, under that run's rules.

    `max_steps` bounds the model's turns of one task; `system_prompt` replaces the default one.
    """

    def __init__(self, max_steps: int = 30, system_prompt: str = _PROMPT) -> None:
        self.max_steps = max_steps
        self.system_prompt = system_prompt

    def run(self, task: str, env: Any = None) -> AgentResult:
        """Do `task` in this thread. `env` is the environment of the asking run; without one there is nothing to use,
        and `MisuseError` is raised."""
        loop, context = self._start(task, env)
        return loop.run(env.provider, env.tools, context, env)

    async def async_run(self, task: str, env: Any = None) -> AgentResult:
        """`run` on the event loop."""
        loop, context = self._start(task, env)
        return await async_drain_steps(loop.async_iter_steps(env.provider, env.tools, context, env))

    def _start(self, task: str, env: Any) -> tuple[ReAct, Context]:
        if env is None:
            raise MisuseError("a sub-agent runs inside another run: call it through the delegate tool")
        return ReAct(self.max_steps), Context(self.system_prompt, [Message.user(task)])


class DelegateTool(BaseTool):
    """Runs a sub-agent and answers with its report.

    `sub_agent` is anything with `run(task, env=None)` that returns, or resolves to, an object with `success`, `output`
    and `error`; by default a `SubAgent`. Whatever runs inside the tool is held to the rules of the run around it.
    `max_depth` bounds how deep agents may nest: 1 lets the first agent delegate and its sub-agents not.
    """

    name = "delegate"
    description = (
        "Give a self-contained task to a sub-agent with a fresh conversation and the same tools. It sees nothing of "
        "this conversation: say in the task all that it needs. Returns its report."
    )
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {"task": {"type": "string", "minLength": 1, "description": "What to do, in full."}},
        "required": ["task"],
        "additionalProperties": False,
    }

    def __init__(self, sub_agent: Any = None, *, max_depth: int = 3) -> None:
        self.sub_agent = SubAgent() if sub_agent is None else sub_agent
        self.max_depth = max_depth

    def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        self._check_depth(env)
        report = self.sub_agent.run(args["task"], env=env)
        return _as_result(run_coroutine(_resolved(report)) if inspect.isawaitable(report) else report)

    async def async_execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        self._check_depth(env)
        start = getattr(self.sub_agent, "async_run", None)
        report = start(args["task"], env=env) if start else await in_thread(self.sub_agent.run, args["task"], env=env)
        return _as_result(await report if inspect.isawaitable(report) else report)

    def _check_depth(self, env: Any) -> None:
        identity = getattr(env, "identity", None)
        if identity is not None and identity.depth >= self.max_depth:
            raise ToolError(
                f"agents may nest {self.max_depth} deep and this one is at the bottom: do the task yourself"
            )


async def _resolved(report: Any) -> Any:
    return await report


def _as_result(report: Any) -> ToolResult:
    output = str(report.output or "")
    if report.success:
        return ToolResult(output)
    return ToolResult(output, str(report.error or "the sub-agent failed and did not say why"))
