"""Two phases: look around and plan with tools that change nothing, then act with all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chimera.core.context import Context
from chimera.core.effects import Within
from chimera.core.engine import Program
from chimera.core.loop import Loop, ReAct
from chimera.core.loop_config import LoopConfig
from chimera.core.loops._parts import at_least
from chimera.errors import MisuseError
from chimera.types import Message

__all__ = ["PlanActLoop"]

_PLAN = (
    "First plan this task. You have tools to look around; those that change something come after the plan. Answer with "
    "the plan: what has to be changed, where, and how you will check it."
)
_ACT = "Planning is over, and all tools are there now. Carry out the plan, and end with the answer to the task."


class PlanActLoop(Loop):
    """Plan on an inner ReAct of `plan_steps` turns with read-only tools alone, then act on one of `act_steps` turns.

    Read-only are the tools that `read_only_tools` names; by default those that say of themselves that their `effect`
    is `read`, and no others. In the planning phase every other tool is unknown, also to a tool that calls tools. The
    acting phase comes even when the plan was not finished.
    """

    name = "plan-act"

    def __init__(
        self,
        plan_steps: int = 10,
        act_steps: int = 25,
        read_only_tools: Iterable[str] | None = None,
        config: LoopConfig | None = None,
    ) -> None:
        if isinstance(read_only_tools, str):
            raise MisuseError("read_only_tools is a collection of names, not one text")
        at_least(1, plan_steps=plan_steps, act_steps=act_steps)
        super().__init__(plan_steps + act_steps, config)
        self.plan_steps, self.act_steps = plan_steps, act_steps
        self.read_only_tools = None if read_only_tools is None else frozenset(read_only_tools)

    def program(self, context: Context) -> Program:
        context.add(Message.user(_PLAN))
        yield Within(ReAct(self.plan_steps, self.config).program(context), self._is_read_only)
        context.add(Message.user(_ACT))
        return (yield from ReAct(self.act_steps, self.config).program(context))

    def _is_read_only(self, tool: Any) -> bool:
        if self.read_only_tools is None:
            return getattr(tool, "effect", None) == "read"
        return tool.name in self.read_only_tools
