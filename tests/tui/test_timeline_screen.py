"""The decision timeline on the screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chimera.core.decisions import InterceptDecision, Interceptors
from chimera.tui.timeline_screen import TimelineScreen
from chimera.types import ToolCall, ToolResult
from tests.tui.desk import CHECK, Desk, Wait, asked, at_rest, texts_of, typed, wait_for

SIZE = (80, 24)


def refuse(call: ToolCall) -> InterceptDecision | None:
    return InterceptDecision.block("no shells") if call.name == "bash" else None


def withhold(call: ToolCall, result: ToolResult) -> InterceptDecision | None:
    return InterceptDecision.block("a secret") if call.name == "list_files" else None


async def test_the_timeline_fills_while_it_is_open(tmp_path: Path) -> None:
    listing = {"name": "list_files", "arguments": {}}
    wait = Wait()
    script: list[Any] = [
        {"tool_calls": [CHECK, listing]},
        {"tool_calls": [{"name": "wait"}]},
        {"tool_calls": [CHECK]},
        "Done.",
    ]
    chains = Interceptors(tool_call=[refuse], tool_result=[withhold])
    desk = Desk(tmp_path, script, interceptors=chains, agent_options={"extra_tools": [wait]})
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, wait.begun.is_set)
        await pilot.press("ctrl+t")
        await wait_for(pilot, lambda: len(desk.app.screen.query_one("DataTable").rows) == 2)  # type: ignore[attr-defined]
        wait.go_on.set()
        await wait_for(pilot, lambda: len(desk.app.screen.query_one("DataTable").rows) == 3)  # type: ignore[attr-defined]
        await pilot.press("s")
        assert "1 of 3" not in title(desk)
        await pilot.press("s")
        assert title(desk).startswith("1 of 3 decisions   [s] seam: tool_result")
        assert "blocked by withhold on tool_result list_files\na secret" in str(
            desk.app.screen.query_one("#timeline-text").render()
        )
        await pilot.press("x", "enter", "enter")
        assert title(desk).startswith("3 decisions   [s] seam: all   [v] verdict: all")
        await pilot.press("ctrl+t")
        await wait_for(pilot, lambda: at_rest(desk) and not isinstance(desk.app.screen, TimelineScreen))
        assert texts_of(desk).count("⊘ bash BLOCKED  echo hi") == 2
    desk.close()


def title(desk: Desk) -> str:
    return str(desk.app.screen.query_one("#timeline-title").render())


async def test_an_empty_timeline_says_so(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "x")
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "/decisions", "enter")
        assert "Nothing was decided yet" in str(desk.app.screen.query_one("#timeline-empty").render())
        await pilot.press("escape")
        assert not isinstance(desk.app.screen, TimelineScreen)
    desk.close()


async def test_without_a_bus_decisions_and_tokens_come_with_the_events(tmp_path: Path) -> None:
    step = {"tool_calls": [CHECK], "usage": {"input_tokens": 100, "output_tokens": 5}}
    chains = Interceptors(tool_call=[refuse])
    desk = Desk(tmp_path, [step, "Done."], interceptors=chains, with_bus=False)
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, lambda: at_rest(desk))
        assert [(item.verdict, item.interceptor) for item in desk.app.state.timeline.decisions] == [
            ("blocked", "refuse")
        ]
        assert desk.app.state.lane.used.tokens_in == 100
    desk.close()


async def test_answers_in_a_loop_without_a_bus_are_told_as_well(tmp_path: Path) -> None:
    desk = Desk(
        tmp_path, [{"tool_calls": [CHECK, {"name": "bash", "arguments": {"command": "id"}}]}, "Done."], with_bus=False
    )
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, lambda: asked(desk))
        first = desk.app.screen
        await pilot.press("y")
        await wait_for(pilot, lambda: asked(desk) and desk.app.screen is not first)
        await pilot.press("n", *"no", "enter")
        await wait_for(pilot, lambda: at_rest(desk))
        assert [(item.verdict, item.interceptor, item.tool) for item in desk.app.state.timeline.decisions] == [
            ("approved", "user", "bash"),
            ("denied", "user", "bash"),
        ]
    desk.close()
