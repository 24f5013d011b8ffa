"""Sub-agents are held to their parent's rules, however they are started. Each claim has its control."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from chimera.assembly import AgentDriver, CodingAgent
from chimera.core import Context, InterceptDecision, Interceptors, LoopConfig, ReAct
from chimera.core.interception import current_run, intercepted_complete
from chimera.core.loop import async_drain_steps
from chimera.core.tool import BaseTool
from chimera.errors import ProviderCallBlocked
from chimera.permissions import AllowAll, DenyList
from chimera.providers.faux import FauxProvider
from chimera.testing import HarnessRun, create_assembled_harness
from chimera.tools.delegate import DelegateTool
from chimera.types import Message, ToolCall, ToolResult


def chains(seam: str, fn: Any) -> Interceptors:
    bundle = Interceptors()
    getattr(bundle, seam).append(fn)
    return bundle


MARK: list[Any] = [{"tool_calls": [{"name": "mark", "arguments": {}}]}, "marked"]


class Mark(BaseTool):
    """Leaves a trace when its body runs."""

    name = "mark"

    def __init__(self) -> None:
        self.ran = 0

    def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        self.ran += 1
        return ToolResult("marked")


class Launcher(BaseTool):
    """Starts a run of its own in some way."""

    name = "launch"

    def __init__(self, start: Callable[[Mark], Any]) -> None:
        self.mark = Mark()
        self.start = start

    def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        self.start(self.mark)
        return ToolResult("launched")


class AsyncLauncher(Launcher):
    async def async_execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        await self.start(self.mark)
        return ToolResult("launched")


def bare_react(mark: Mark) -> None:
    ReAct().run(FauxProvider(MARK), [mark], Context(messages=[Message.user("go")]))


def configured_react(mark: Mark) -> None:
    config = LoopConfig(permissions=AllowAll(), yolo_mode=True, interceptors=Interceptors())
    ReAct(config=config).run(FauxProvider(MARK), [mark], Context(messages=[Message.user("go")]))


def assembled(mark: Mark) -> None:
    agent = CodingAgent(provider=FauxProvider(MARK), tools_override=[mark])
    asyncio.run(agent.run("go"))


async def async_react(mark: Mark) -> None:
    await async_drain_steps(
        ReAct().async_iter_steps(FauxProvider(MARK), [mark], Context(messages=[Message.user("go")]))
    )


async def async_assembled(mark: Mark) -> None:
    await CodingAgent(provider=FauxProvider(MARK), tools_override=[mark]).run("go")


async def in_a_task(mark: Mark) -> None:
    await asyncio.gather(async_react(mark), async_assembled(mark))


LAUNCHERS = [
    Launcher(bare_react),
    Launcher(configured_react),
    Launcher(assembled),
    AsyncLauncher(async_react),
    AsyncLauncher(async_assembled),
    AsyncLauncher(in_a_task),
]


def gate(call: ToolCall) -> InterceptDecision | None:
    return InterceptDecision.block("gated") if call.name == "mark" else None


def launch(tool: Launcher, **kwargs: Any) -> HarnessRun:
    tool.mark.ran = 0
    script: list[Any] = [{"tool_calls": [{"name": "launch", "arguments": {}}]}, "done"]
    with create_assembled_harness(script, tools=[tool], agent_kwargs=kwargs) as harness:
        return harness.run("go")


@pytest.mark.parametrize("tool", LAUNCHERS, ids=lambda tool: tool.start.__name__)
def test_a_run_started_inside_a_tool_meets_the_chains_of_the_run_around_it(tool: Launcher) -> None:
    run = launch(tool, interceptors=Interceptors(tool_call=[gate]))
    assert tool.mark.ran == 0
    assert {decision.depth for decision in run.decisions} == {1}
    launch(tool)
    assert tool.mark.ran > 0  # the control: without the gate the body runs


@pytest.mark.parametrize("tool", LAUNCHERS, ids=lambda tool: tool.start.__name__)
def test_a_run_started_inside_a_tool_is_held_to_the_permissions_of_the_run_around_it(tool: Launcher) -> None:
    launch(tool, permissions=DenyList(["mark"]))
    assert tool.mark.ran == 0
    launch(tool, permissions=DenyList(["other"]))
    assert tool.mark.ran > 0


@pytest.mark.parametrize("seam", ["context", "provider_request"])
def test_calls_of_a_sub_agent_pass_the_pre_provider_seams(seam: str) -> None:
    depths: list[int] = []

    def look(_value: Any) -> None:
        run = current_run()
        assert run is not None
        depths.append(run.depth)

    script: list[Any] = [
        {"tool_calls": [{"name": "delegate", "arguments": {"task": "one"}}]},
        {"tool_calls": [{"name": "delegate", "arguments": {"task": "two"}}]},
        "at depth two",
        "at depth one",
        "done",
    ]
    with create_assembled_harness(
        script, tools=[DelegateTool()], agent_kwargs={"interceptors": chains(seam, look)}
    ) as harness:
        run = harness.run("go")
    assert run.output == "done"
    assert depths == [0, 1, 2, 1, 0]


def test_results_inside_a_sub_agent_pass_the_result_seam() -> None:
    def scrub(call: ToolCall, result: ToolResult) -> InterceptDecision:
        return InterceptDecision.replace(ToolResult(result.output.replace("marked", "scrubbed")))

    script: list[Any] = [{"tool_calls": [{"name": "delegate", "arguments": {"task": "mark"}}]}, *MARK, "done"]

    def sent(chains: Interceptors | None) -> str:
        with create_assembled_harness(
            script, tools=[DelegateTool(), Mark()], agent_kwargs={"interceptors": chains}
        ) as harness:
            harness.run("go")
            answers: list[str] = [m.content for m in harness.provider.requests[2].messages if m.role == "tool"]
            return answers[0]

    assert sent(Interceptors(tool_result=[scrub])) == "scrubbed"
    assert sent(None) == "marked"


def test_a_chain_that_parent_and_child_share_runs_once() -> None:
    seen: list[str] = []

    def count(call: ToolCall) -> None:
        seen.append(call.name)

    chains = Interceptors(tool_call=[count])
    tool = Launcher(
        lambda mark: ReAct(config=LoopConfig(interceptors=chains, yolo_mode=True)).run(
            FauxProvider(MARK), [mark], Context(messages=[Message.user("go")])
        )
    )
    launch(tool, interceptors=chains)
    assert seen == ["launch", "mark"]


def test_the_spawn_itself_can_be_blocked() -> None:
    chains = Interceptors(tool_call=[lambda call: InterceptDecision.block("no sub-agents")])
    with create_assembled_harness(
        [{"tool_calls": [{"name": "delegate", "arguments": {"task": "x"}}]}, "done"],
        tools=[DelegateTool()],
        agent_kwargs={"interceptors": chains},
    ) as harness:
        run = harness.run("go")
        assert run.tool_results[0].error == "Blocked by interceptor: no sub-agents"
        assert len(harness.provider.requests) == 2


def test_one_provider_call_from_inside_a_tool_meets_the_seams_too() -> None:
    caught: list[str] = []

    def direct(_mark: Mark) -> None:
        try:
            intercepted_complete(FauxProvider("hello"), [Message.user("leak")])
        except ProviderCallBlocked as block:
            caught.append(str(block))

    def no_leaks(messages: list[Message]) -> InterceptDecision | None:
        return InterceptDecision.block("leak") if any("leak" in m.content for m in messages) else None

    launch(Launcher(direct), interceptors=Interceptors(context=[no_leaks]))
    assert caught == ["Blocked by interceptor: leak"]


def test_the_callback_answers_for_sub_agents_and_sees_the_effective_call() -> None:
    asked: list[dict[str, Any]] = []

    def refuse(approval: Any) -> bool:
        asked.append(dict(approval.arguments))
        return bool(approval.tool_name == "delegate")

    script: list[Any] = [
        {"tool_calls": [{"name": "delegate", "arguments": {"task": "write"}}]},
        {"tool_calls": [{"name": "write_file", "arguments": {"path": "a", "content": "b"}}]},
        "could not",
        "done",
    ]
    from chimera.tools import default_tools  # the default set, plus delegation

    with create_assembled_harness(script) as harness:
        tools = [*default_tools(harness.workspace), DelegateTool()]
        driver = AgentDriver(
            provider=harness.provider, project_dir=harness.workspace, tools_override=tools, permission_callback=refuse
        )
        asyncio.run(driver.send("go"))
        assert {"path": "a", "content": "b"} in asked
        assert not (harness.workspace / "a").exists()


def test_a_sub_agent_is_cancelled_with_its_parent() -> None:
    started = threading.Event()

    class Slow(BaseTool):
        name = "slow"

        def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
            woken = threading.Event()
            env.on_cancel(woken.set)
            started.set()
            return ToolResult("woken" if woken.wait(10) else "slept")

    script: list[Any] = [
        {"tool_calls": [{"name": "delegate", "arguments": {"task": "x"}}]},
        {"tool_calls": [{"name": "slow", "arguments": {}}]},
        "never",
    ]
    driver = AgentDriver(provider=FauxProvider(script), tools_override=[DelegateTool(), Slow()])

    async def cancel_when_started() -> str:
        turn = asyncio.ensure_future(_result(driver))
        await asyncio.to_thread(started.wait, 10)
        driver.cancel()
        return await turn

    assert asyncio.run(cancel_when_started()) == "aborted"
    assert len(driver.agent.provider.requests) == 2


async def _result(driver: AgentDriver) -> str:
    return (await driver.send("go")).reason


def test_agents_nest_only_as_deep_as_allowed() -> None:
    script: list[Any] = [{"tool_calls": [{"name": "delegate", "arguments": {"task": "again"}}]}] * 2 + [
        "stop",
        "stop",
        "done",
    ]
    with create_assembled_harness(script, tools=[DelegateTool(max_depth=1)]) as harness:
        run = harness.run("go")
        assert run.output == "stop"
        inner = [m for request in harness.provider.requests for m in request.messages if "nest" in m.content]
        assert inner
        assert "do the task yourself" in inner[0].content
