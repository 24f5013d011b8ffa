from __future__ import annotations

from typing import Any, Literal

import pytest

from chimera.core.loop_config import LoopConfig
from chimera.core.loops.plan_act import PlanActLoop
from chimera.core.tool import BaseTool
from chimera.errors import MisuseError
from chimera.providers.faux import FauxProvider
from chimera.types import AgentResult, ToolResult
from tests.core.loops.marks import tool_messages
from tests.core.loops.scenes import DRIVES, Probe, calls

every_drive = pytest.mark.parametrize("drive", DRIVES.values(), ids=DRIVES)


class Named(Probe):
    def __init__(self, name: str, effect: Literal["read", "write", "command"] | None) -> None:
        super().__init__(name)
        self.effect = effect  # type: ignore[assignment]


class Caller(BaseTool):
    """Only looks, it says; its body calls the tool that it is told to call."""

    name = "caller"
    effect = "read"

    def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        result: ToolResult = env.run_tool("write", {})
        return result


def offered(request: Any) -> list[str]:
    return [schema["function"]["name"] for schema in request.tools or ()]


@every_drive
def test_only_read_only_tools_exist_while_planning(drive: Any) -> None:
    tools = [Named("look", "read"), Named("write", "write"), Named("shell", "command"), Named("silent", None)]
    tries = [calls(name=tool.name) for tool in tools]
    provider = FauxProvider([*tries, "the plan", *tries, "done"])
    ran = drive(PlanActLoop(), provider, tools)
    assert ran.result == AgentResult("done", 10, 8, 0.0, True)
    assert [offered(request) for request in provider.requests[:5]] == [["look"]] * 5
    assert [offered(request) for request in provider.requests[5:]] == [[tool.name for tool in tools]] * 5
    assert [len(tool.entered) for tool in tools] == [2, 1, 1, 1]
    answers = tool_messages(ran.context.messages)
    assert answers[1:4] == ["Unknown tool: write", "Unknown tool: shell", "Unknown tool: silent"]
    assert all(answer.startswith("the probe says") for answer in answers[4:])


@every_drive
def test_a_tool_cannot_call_around_the_planning_phase(drive: Any) -> None:
    write = Named("write", "write")
    provider = FauxProvider([calls(name="caller"), "the plan", calls(name="caller"), "done"])
    ran = drive(PlanActLoop(), provider, [Caller(), write])
    assert tool_messages(ran.context.messages) == ["Unknown tool: write", "the probe says 1"]
    assert len(write.entered) == 1


@every_drive
def test_the_caller_may_say_what_is_read_only(drive: Any) -> None:
    tools = [Named("look", "read"), Named("write", "write")]
    provider = FauxProvider(["the plan", "done"])
    drive(PlanActLoop(read_only_tools=["write", "absent"]), provider, tools)
    assert [offered(request) for request in provider.requests] == [["write"], ["look", "write"]]


@every_drive
def test_a_seam_cannot_bring_a_tool_back_while_planning(drive: Any) -> None:
    """The phase is no matter of what the model is shown: a call that is rewritten into another one stays unknown."""
    from chimera.core.interception import InterceptDecision, Interceptors
    from chimera.types import ToolCall

    def rename(call: ToolCall) -> InterceptDecision:
        return InterceptDecision.replace(ToolCall(call.id, "write", {}))

    write = Named("write", "write")
    config = LoopConfig(interceptors=Interceptors(tool_call=[rename]), yolo_mode=True)
    ran = drive(PlanActLoop(config=config), FauxProvider([calls(name="look"), "plan", "done"]), [write, Probe("look")])
    assert write.entered == []
    assert tool_messages(ran.context.messages) == ["Unknown tool: write"]


@every_drive
def test_without_read_only_tools_planning_offers_none(drive: Any) -> None:
    provider = FauxProvider(["the plan", "done"])
    drive(PlanActLoop(), provider, [Named("write", "write")])
    assert [offered(request) for request in provider.requests] == [[], ["write"]]


@every_drive
def test_acting_comes_after_a_plan_that_was_not_finished(drive: Any) -> None:
    provider = FauxProvider([calls(), calls(), "done"])
    ran = drive(PlanActLoop(plan_steps=2), provider, [Probe()])
    assert ran.result == AgentResult("done", 3, 2, 0.0, True)
    assert provider.requests[2].messages[-1].content.startswith("Planning is over")


@every_drive
def test_each_phase_has_its_limit(drive: Any) -> None:
    provider = FauxProvider([calls()], on_exhausted="repeat")
    ran = drive(PlanActLoop(plan_steps=2, act_steps=3), provider, [Probe()])
    assert ran.result is not None
    assert (ran.result.steps, ran.result.success) == (5, False)
    assert ran.result.error == "the run did not finish within 3 steps"


def test_a_provider_that_fails_while_planning_gives_the_tools_back() -> None:
    provider = FauxProvider([{"error": "down"}, "the plan", "done"])
    loop, tools = PlanActLoop(), [Named("write", "write")]
    assert DRIVES["run"](loop, provider, tools).raised == "ProviderError: down"
    assert DRIVES["run"](loop, provider, tools).result == AgentResult("done", 2, 0, 0.0, True)


@pytest.mark.parametrize(
    "options",
    [{"plan_steps": 0}, {"act_steps": 0}, {"read_only_tools": "read_file"}],
    ids=lambda options: next(iter(options)),
)
def test_options_that_cannot_be_meant_are_refused(options: Any) -> None:
    with pytest.raises(MisuseError):
        PlanActLoop(**options)
