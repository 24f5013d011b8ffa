"""AgentDriver: a conversation, turn by turn, and what may be said to a turn while it runs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from chimera.assembly import AgentDriver, render_event
from chimera.core.loop_events import LoopEvent, LoopEventType, LoopResult
from chimera.core.tool import BaseTool
from chimera.errors import ConfigError, MisuseError
from chimera.events import CompactionEvent, InterceptorEvent
from chimera.providers.faux import FauxProvider
from chimera.types import Message, ToolCall, ToolResult


class Hook(BaseTool):
    """Calls back from inside a turn."""

    name = "hook"

    def __init__(self, fn: Any) -> None:
        self.fn = fn

    async def async_execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        self.fn()
        return ToolResult("called")


CALL: Any = {"tool_calls": [{"name": "hook", "arguments": {}}]}


def make(script: Any, fn: Any = None, **kwargs: Any) -> AgentDriver:
    return AgentDriver(provider=FauxProvider(script, usd_per_token=0.5), tools_override=[Hook(fn)], **kwargs)


async def events_of(driver: AgentDriver, text: str = "go") -> list[LoopEvent]:
    return [event async for event in driver.send(text)]


def contents(driver: AgentDriver) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in driver.history]


def test_turns_continue_one_conversation_and_add_up() -> None:
    driver = make([{"text": "one", "usage": {"input_tokens": 1, "output_tokens": 1}}, "two"])
    first: LoopResult = asyncio.run(driver.send("a"))
    asyncio.run(driver.send("b"))
    assert contents(driver) == [("user", "a"), ("assistant", "one"), ("user", "b"), ("assistant", "two")]
    assert (first.cost_usd, driver.total_cost, driver.turn_count) == (1.0, 1.0, 2)
    assert [len(request.messages) for request in driver.agent.provider.requests] == [2, 4]


def test_the_last_event_is_the_one_result() -> None:
    events = asyncio.run(events_of(make([CALL, "done"], lambda: None)))
    assert [event.type for event in events if event.type is LoopEventType.RESULT] == [events[-1].type]
    assert events[-1].data.reason == "completed"


def test_interactive_drivers_stream_and_others_do_not() -> None:
    def kinds(interactive: bool) -> set[LoopEventType]:
        return {event.type for event in asyncio.run(events_of(make("hello", interactive=interactive)))}

    assert LoopEventType.ASSISTANT_CHUNK in kinds(True)
    assert LoopEventType.ASSISTANT_CHUNK not in kinds(False)


def test_steering_is_read_before_the_next_answer_and_a_follow_up_at_the_end() -> None:
    driver = make([CALL, "steered", "followed"])

    def speak() -> None:
        driver.steer("left")
        driver.queue_follow_up("and then")

    driver.agent._tools = [Hook(speak)]
    asyncio.run(driver.send("go"))
    spoken = [pair for pair in contents(driver) if pair[0] == "user"]
    assert spoken == [("user", "go"), ("user", "left"), ("user", "and then")]
    assert contents(driver)[-1] == ("assistant", "followed")


def test_cancel_ends_the_turn_and_leaves_a_whole_conversation() -> None:
    driver = make([CALL, "never", "again"])
    driver.agent._tools = [Hook(driver.cancel)]
    result = asyncio.run(driver.send("go"))
    assert result.reason == "aborted"
    calls = [call.id for message in driver.history for call in message.tool_calls]
    answered = [message.call_id for message in driver.history if message.role == "tool"]
    assert calls == answered
    assert asyncio.run(driver.send("more")).reason == "completed"


def test_a_cancelled_task_leaves_a_whole_conversation_too() -> None:
    class Forever(BaseTool):
        name = "hook"

        async def async_execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
            entered.set()
            await asyncio.sleep(60)
            return ToolResult("never")

    entered = asyncio.Event()
    driver = AgentDriver(provider=FauxProvider([CALL, "done"]), tools_override=[Forever()])

    async def cancel() -> None:
        task = asyncio.ensure_future(events_of(driver))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert [message.role for message in driver.history] == ["user", "assistant", "tool"]
    assert not driver.running


def test_an_abandoned_turn_leaves_a_whole_conversation_and_a_driver_at_rest() -> None:
    driver = make([CALL, "done"], lambda: None)

    async def abandon() -> None:
        turn = driver.send("go")
        async for event in turn:
            if event.type is LoopEventType.TOOL_USE:
                break
        await turn.aclose()

    asyncio.run(abandon())
    assert [message.role for message in driver.history] == ["user", "assistant", "tool"]
    asyncio.run(driver.send("again"))


def test_a_provider_that_fails_loses_nothing() -> None:
    driver = make(["fine", {"error": "the service is down"}, "back"])
    asyncio.run(driver.send("a"))
    result = asyncio.run(driver.send("b"))
    assert result.reason.startswith("error: ")
    assert "the service is down" in result.reason
    assert contents(driver)[:2] == [("user", "a"), ("assistant", "fine")]
    assert asyncio.run(driver.send("c")).reason == "completed"


def test_what_needs_rest_is_refused_while_a_turn_runs() -> None:
    problems: list[str] = []
    driver = make([CALL, "done"])

    def interfere() -> None:
        for act in (driver.clear, lambda: driver.load_history([])):
            with pytest.raises(MisuseError) as refused:
                act()
            problems.append(str(refused.value))

    driver.agent._tools = [Hook(interfere)]
    asyncio.run(driver.send("go"))
    assert len(problems) == 2
    assert all("while a turn runs" in problem for problem in problems)


def test_a_second_turn_at_once_is_refused_and_the_first_goes_on() -> None:
    driver = make(["slow"])
    driver.agent.provider.delay = 0.05

    async def both() -> Any:
        return await asyncio.gather(events_of(driver), events_of(driver), return_exceptions=True)

    first, second = asyncio.run(both())
    assert first[-1].data.reason == "completed"
    assert isinstance(second, MisuseError)


def test_clear_and_load_history() -> None:
    driver = make(["one", "two", "three"])
    asyncio.run(driver.send("a"))
    driver.clear()
    assert driver.history == []
    driver.load_history([Message.user("old"), Message.assistant("answer")])
    asyncio.run(driver.send("new"))
    assert [content for _, content in contents(driver)] == ["old", "answer", "new", "two"]


def test_history_is_a_list_of_ones_own() -> None:
    driver = make("one")
    asyncio.run(driver.send("a"))
    driver.history.clear()
    assert len(driver.history) == 2


def test_misconfiguration_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="coding_agent, minimal, explore"):
        AgentDriver(preset="wizard", provider=FauxProvider())
    with pytest.raises(MisuseError, match="does not exist"):
        AgentDriver(project_dir=tmp_path / "nowhere", provider=FauxProvider())
    with pytest.raises(MisuseError, match="Interceptors"):
        AgentDriver(provider=FauxProvider(), interceptors=[lambda call: None])


CALL_A = ToolCall("1", "bash", {"command": "ls"})


@pytest.mark.parametrize(
    ("kind", "data", "text"),
    [
        (LoopEventType.STREAM_START, "m", None),
        (LoopEventType.THINKING_CHUNK, "hm", None),
        (LoopEventType.ASSISTANT_CHUNK, "he", "he"),
        (LoopEventType.ASSISTANT, Message.assistant("hello"), "hello"),
        (LoopEventType.ASSISTANT, Message.assistant(""), None),
        (LoopEventType.TOOL_USE, CALL_A, '> bash {"command": "ls"}'),
        (LoopEventType.TOOL_RESULT, (CALL_A, ToolResult("a\nb")), "< bash: a b"),
        (LoopEventType.TOOL_RESULT, (CALL_A, ToolResult("")), "< bash: done"),
        (LoopEventType.TOOL_RESULT, (CALL_A, ToolResult("", "no")), "! bash: no"),
        (LoopEventType.ERROR, "down", "! down"),
        (LoopEventType.SYSTEM, Message.user("left"), "~ left"),
        (LoopEventType.RESULT, LoopResult("completed"), None),
        (LoopEventType.RESULT, LoopResult("max_turns"), "! ended: max_turns"),
        (
            LoopEventType.COMPACT_BOUNDARY,
            CompactionEvent(before=9, after=3),
            "~ conversation shortened from 9 to 3 messages",
        ),
        (
            LoopEventType.INTERCEPTOR,
            InterceptorEvent(seam="tool_result", decision="replaced", tool_name="bash", interceptor="scrub"),
            "~ tool_result bash replaced by scrub",
        ),
        (
            LoopEventType.INTERCEPTOR,
            InterceptorEvent(seam="tool_call", decision="blocked", reason="no", interceptor="gate"),
            None,
        ),
    ],
)
def test_rendering(kind: LoopEventType, data: Any, text: str | None) -> None:
    assert render_event(LoopEvent(kind, data)) == text


def test_rendering_keeps_lines_short() -> None:
    call = ToolCall("1", "write_file", {"content": "x" * 1000})
    line = render_event(LoopEvent(LoopEventType.TOOL_USE, call))
    assert line is not None
    assert len(line) < 250
    assert json.dumps("x" * 50)[1:-1] in line
