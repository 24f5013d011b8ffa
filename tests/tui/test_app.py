"""The app with a person at the keys: real agents, real tools, a scripted model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chimera.assembly.settings import load_settings
from chimera.core.decisions import InterceptDecision, Interceptors
from chimera.providers.faux import FauxRequest
from chimera.tools.delegate import DelegateTool
from chimera.tui.approval_screen import ApprovalScreen
from chimera.tui.entries import Called, Status
from chimera.tui.timeline_screen import TimelineScreen
from chimera.types import ToolCall, ToolResult
from tests.tui.desk import CHECK, Desk, Wait, texts_of, typed, wait_for

SIZE = (80, 24)


def asked(desk: Desk) -> bool:
    return isinstance(desk.app.screen, ApprovalScreen)


def at_rest(desk: Desk) -> bool:
    return not desk.app.state.running and not asked(desk)


def last_request(desk: Desk) -> str:
    return "\n".join(message.content for message in desk.provider.requests[-1].messages)


async def test_a_turn_from_enter_to_rest(tmp_path: Path) -> None:
    desk = Desk(tmp_path, [{"text": "It is **done**.", "usage": {"input_tokens": 1_280, "output_tokens": 9}}])
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "do it", "enter")
        await wait_for(pilot, lambda: at_rest(desk))
        assert [text for text in texts_of(desk) if text][-2:] == ["> do it", "● It is done."]
        assert str(desk.app.query_one("#status").render()).startswith("scripted-1  context 1% of 128k  $0.0129  ask")
        assert desk.app.prompt.text == ""
    desk.close()


async def test_what_is_typed_during_a_turn_steers_it(tmp_path: Path) -> None:
    wait = Wait()
    desk = Desk(tmp_path, [{"tool_calls": [{"name": "wait"}]}, "Faster it is."], agent_options={"extra_tools": [wait]})
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, wait.begun.is_set)
        await typed(pilot, "be faster", "enter")
        await wait_for(pilot, lambda: desk.app.query_one("#waiting").display)
        assert "be faster" in str(desk.app.query_one("#waiting").render())
        wait.go_on.set()
        await wait_for(pilot, lambda: at_rest(desk))
        assert "» be faster" in texts_of(desk)
        assert not desk.app.query_one("#waiting").display
        assert "be faster" in last_request(desk)
    desk.close()


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
async def test_a_turn_can_be_cancelled(tmp_path: Path, key: str) -> None:
    wait = Wait()
    desk = Desk(tmp_path, [{"tool_calls": [{"name": "wait"}]}, "never"], agent_options={"extra_tools": [wait]})
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, wait.begun.is_set)
        await pilot.press(key)
        await wait_for(pilot, lambda: at_rest(desk))
        assert "~ the turn ended: aborted" in texts_of(desk)
        assert desk.app.is_running
        await typed(pilot, "again", "enter")
        await wait_for(pilot, lambda: at_rest(desk) and "● never" in texts_of(desk))
    desk.close()


async def test_ctrl_c_at_rest_clears_the_line_and_then_leaves(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "x")
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "half a thought", "ctrl+c")
        assert (desk.app.prompt.text, desk.app.is_running) == ("", True)
        await pilot.press("ctrl+c")
    assert desk.app.return_value == 0
    desk.close()


async def test_ctrl_d_leaves_on_an_empty_line_alone(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "x")
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "ab", "home", "ctrl+d")
        assert desk.app.prompt.text == "b"
        await pilot.press("ctrl+d", "ctrl+d")
    assert desk.app.return_value == 0
    desk.close()


async def test_enter_with_nothing_to_say_does_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "x")
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "  ", "enter")
        assert not desk.app.state.running
    assert desk.provider.requests == []
    desk.close()


SCRIPT: list[Any] = [{"tool_calls": [CHECK]}, {"tool_calls": [CHECK]}, "Done."]


async def asked_twice(desk: Desk, pilot: Any, *keys: str) -> bool:
    """Say something, press keys at the question, and tell whether the same call is asked about again."""
    await typed(pilot, "go", "enter")
    await wait_for(pilot, lambda: asked(desk))
    first = desk.app.screen
    for key in keys:
        await pilot.press(key)
    await wait_for(pilot, lambda: at_rest(desk) or (asked(desk) and desk.app.screen is not first))
    return asked(desk)


async def test_yes_holds_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path, SCRIPT)
    async with desk.app.run_test(size=SIZE) as pilot:
        assert await asked_twice(desk, pilot, "enter")
        await pilot.press("y")
        await wait_for(pilot, lambda: at_rest(desk))
    assert not (tmp_path / ".chimera").exists()
    desk.close()


async def test_always_in_this_session_is_not_asked_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path, SCRIPT)
    async with desk.app.run_test(size=SIZE) as pilot:
        assert not await asked_twice(desk, pilot, "s")
        assert "~ allowed for this session: bash(echo hi)" in texts_of(desk)
    assert not (tmp_path / ".chimera").exists()
    desk.close()


async def test_always_in_this_project_is_a_rule_in_its_settings(tmp_path: Path) -> None:
    desk = Desk(tmp_path, SCRIPT)
    async with desk.app.run_test(size=SIZE) as pilot:
        assert not await asked_twice(desk, pilot, "p")
    assert load_settings(tmp_path).permissions.allow == ("bash(echo hi)",)
    desk.close()


async def test_settings_that_cannot_be_written_are_said_and_the_session_remembers(tmp_path: Path) -> None:
    (tmp_path / ".chimera").write_text("no folder")
    desk = Desk(tmp_path, SCRIPT)
    async with desk.app.run_test(size=(160, 24)) as pilot:
        assert not await asked_twice(desk, pilot, "p")
        assert "it is allowed for this session only" in " ".join(texts_of(desk))
    desk.close()


async def test_an_ask_rule_of_the_settings_is_not_undone_for_good(tmp_path: Path) -> None:
    """A rule that asks comes before one that allows: the project's settings would not keep the promise."""
    desk = Desk(tmp_path, SCRIPT, rules={"ask": ["Bash(echo:*)"]})
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, lambda: asked(desk))
        await pilot.press("p")
        assert asked(desk)
        await pilot.press("s")
        await wait_for(pilot, lambda: at_rest(desk))
    desk.close()


async def test_no_with_a_reason_that_the_model_reads(tmp_path: Path) -> None:
    desk = Desk(tmp_path, [{"tool_calls": [CHECK]}, "I see."])
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, lambda: asked(desk))
        await pilot.press("n", *"not now", "enter")
        await wait_for(pilot, lambda: at_rest(desk))
        assert "the user denied it: not now" in last_request(desk)
        assert any("DENIED" in text for text in texts_of(desk))
    desk.close()


async def test_esc_is_no(tmp_path: Path) -> None:
    desk = Desk(tmp_path, [{"tool_calls": [CHECK]}, "I see."])
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, lambda: asked(desk))
        await pilot.press("escape")
        await wait_for(pilot, lambda: at_rest(desk))
        assert "the user denied it" in last_request(desk)
        assert desk.app.state.lane.turns == 1
    desk.close()


async def test_ctrl_c_at_a_question_cancels_the_turn(tmp_path: Path) -> None:
    desk = Desk(tmp_path, [{"tool_calls": [CHECK]}, "never"])
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, lambda: asked(desk))
        await pilot.press("ctrl+c")
        await wait_for(pilot, lambda: at_rest(desk))
        assert "~ the turn ended: aborted" in texts_of(desk)
    assert len(desk.provider.requests) == 1
    desk.close()


async def test_a_question_of_a_turn_that_is_cancelled_goes_away(tmp_path: Path) -> None:
    desk = Desk(tmp_path, [{"tool_calls": [CHECK]}, "never"])
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, lambda: asked(desk))
        desk.app.lanes.cancel()
        await wait_for(pilot, lambda: at_rest(desk))
        assert not desk.app.state.questions
    desk.close()


async def test_leaving_at_a_question_ends_the_turn(tmp_path: Path) -> None:
    desk = Desk(tmp_path, [{"tool_calls": [CHECK]}, "never"])
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, lambda: asked(desk))
        desk.app.leave(0)
    desk.close()
    assert [message.role for message in desk.agent.history][-1] == "tool"


async def test_keys_that_were_meant_for_the_prompt_do_not_approve(tmp_path: Path) -> None:
    wait = Wait()
    script: list[Any] = [{"tool_calls": [{"name": "wait"}]}, {"tool_calls": [CHECK]}, "Done."]
    desk = Desk(tmp_path, script, agent_options={"extra_tools": [wait]})
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, wait.begun.is_set)
        await typed(pilot, "wh")
        wait.go_on.set()
        await wait_for(pilot, lambda: asked(desk))
        await pilot.press("y", "enter")
        assert asked(desk)
        assert "Waiting until you stop typing" in str(desk.app.screen.query_one("#approval-hint").render())
        await pilot.pause(0.8)
        await pilot.press("y")
        await wait_for(pilot, lambda: at_rest(desk))
    desk.close()


def stricter(call: ToolCall) -> InterceptDecision | None:
    if call.name != "bash":
        return None
    return InterceptDecision.replace(replace(call, arguments={"command": f"{call.arguments['command']} --safe"}))


def shown(desk: Desk) -> str:
    return str(desk.app.screen.query_one("#approval-text").render())


async def test_a_rewritten_call_is_shown_as_it_was_and_as_it_will_run(tmp_path: Path) -> None:
    chain = Interceptors(tool_call=[stricter, stricter])
    desk = Desk(tmp_path, [{"tool_calls": [CHECK]}, "Done."], interceptors=chain)
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, lambda: asked(desk))
        assert "- command: echo hi\n+ command: echo hi --safe --safe" in shown(desk)
        await pilot.press("y")
        await wait_for(pilot, lambda: at_rest(desk))
        assert "hi --safe --safe" in texts_of(desk)
    desk.close()


async def test_the_question_of_a_sub_agent_shows_the_original_too(tmp_path: Path) -> None:
    def answer(request: FauxRequest) -> Any:
        if request.messages[-1].role == "tool":
            return "Done."
        if any("sub task" in message.content for message in request.messages):
            return {"tool_calls": [CHECK]}
        return {"tool_calls": [{"name": "delegate", "arguments": {"task": "sub task"}}]}

    desk = Desk(
        tmp_path, [answer] * 4, interceptors=Interceptors(tool_call=[stricter]),
        agent_options={"extra_tools": [DelegateTool()]},
    )  # fmt: skip
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, lambda: asked(desk))
        assert "- command: echo hi\n+ command: echo hi --safe" in shown(desk)
        await pilot.press("y")
        await wait_for(pilot, lambda: at_rest(desk))
        below = [entry for entry in desk.app.state.lane.entries if isinstance(entry, Called) and entry.depth]
        assert [(entry.call.name, entry.status) for entry in below] == [("bash", Status.DONE)]
        assert [item.depth for item in desk.app.state.timeline.decisions] == [1, 1]
    desk.close()


async def test_a_new_file_is_shown_against_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    write = {"name": "write_file", "arguments": {"path": "a.txt", "content": "one\nthree\n"}}
    desk = Desk(tmp_path, [{"tool_calls": [write]}, "Done."])
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, lambda: asked(desk))
        assert shown(desk) == "a.txt\n  one\n- two\n+ three"
        await pilot.press("y")
        await wait_for(pilot, lambda: at_rest(desk))
    desk.close()
    assert (tmp_path / "a.txt").read_text() == "one\nthree\n"


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


async def test_a_loop_that_reads_nothing_meanwhile_gets_it_as_the_next_turn(tmp_path: Path) -> None:
    wait = Wait()
    desk = Desk(
        tmp_path, ["1. wait", {"tool_calls": [{"name": "wait"}]}, "One.", "1. next", "Two.", "Three."],
        mode="yolo", with_bus=False,
        agent_options={"extra_tools": [wait], "loop": "plan-execute"},
    )  # fmt: skip
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, wait.begun.is_set)
        await typed(pilot, "and then this", "enter")
        wait.go_on.set()
        await wait_for(pilot, lambda: desk.app.state.lane.turns == 2 and at_rest(desk))
        assert "> and then this" in texts_of(desk)
    desk.close()


async def test_calls_unfold_by_key_and_by_click(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    reading = {"name": "read_file", "arguments": {"path": "a.txt"}}
    desk = Desk(tmp_path, [{"tool_calls": [reading, reading]}, "Done."])
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, lambda: at_rest(desk))
        calls = [entry for entry in desk.app.state.lane.entries if isinstance(entry, Called)]
        await pilot.press("tab")
        assert desk.app.transcript.has_focus
        await pilot.press("up", "enter")
        assert [call.open for call in calls] == [False, True]
        await pilot.press("up", "up", "enter", "down")
        assert [call.open for call in calls] == [True, True]
        await pilot.press("ctrl+o")
        assert [call.open for call in calls] == [False, False]
        await pilot.press("ctrl+o")
        assert [call.open for call in calls] == [True, True]
        line = texts_of(desk).index("✓ read_file  a.txt") - desk.app.transcript.scroll_offset.y
        await pilot.click("#transcript", offset=(4, line))
        assert [call.open for call in calls] == [False, True]
        await pilot.click("#transcript", offset=(4, 22))
    desk.close()


async def test_it_stays_where_one_scrolled_to(tmp_path: Path) -> None:
    text = "\n\n".join(f"Paragraph {number}" for number in range(60))
    desk = Desk(tmp_path, [text, "And one more."])
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, lambda: at_rest(desk))
        transcript = desk.app.transcript
        assert transcript.scroll_offset.y == transcript.max_scroll_y > 80
        await pilot.press("pageup", "pageup")
        await pilot.pause()
        at = transcript.scroll_offset.y
        assert at < transcript.max_scroll_y
        desk.app.state.lane.say("something new")
        transcript.sync()
        await pilot.pause()
        assert transcript.scroll_offset.y == at
        await pilot.press("pagedown", "pagedown", "pagedown")
        await pilot.pause()
        assert transcript.scroll_offset.y == transcript.max_scroll_y
        await pilot.resize_terminal(50, 20)
        await pilot.pause()
        assert transcript.scroll_offset.y == transcript.max_scroll_y
    desk.close()


async def test_completion_and_history(tmp_path: Path) -> None:
    (tmp_path / "cart.py").write_text("")
    desk = Desk(tmp_path, ["One.", "Two."])
    async with desk.app.run_test(size=SIZE) as pilot:
        await wait_for(pilot, lambda: desk.app._files)
        await pilot.press(*"see @ca")
        assert desk.app.completions.display
        await pilot.press("tab")
        assert desk.app.prompt.text == "see @cart.py "
        await pilot.press("enter")
        await wait_for(pilot, lambda: at_rest(desk))
        await pilot.press(*"/he", "enter")
        assert desk.app.prompt.text == "/help "
        await pilot.press("ctrl+c", *"/c", "down", "down", "up", "tab")
        assert desk.app.prompt.text == "/compact "
        await pilot.press("ctrl+c", *"/c", "escape")
        assert not desk.app.completions.display
        await pilot.press("ctrl+c", "a", "ctrl+j", *"b\\", "enter", "c")
        assert desk.app.prompt.text == "a\nb\nc"
        await pilot.press("up", "up", "up")
        assert desk.app.prompt.text == "see @cart.py"
        await pilot.press("down")
        assert desk.app.prompt.text == "a\nb\nc"
    desk.close()


async def test_what_fails_in_the_lane_is_said_and_one_goes_on(tmp_path: Path) -> None:
    desk = Desk(tmp_path, [{"error": "the wire is down"}, "Up again."])
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, lambda: at_rest(desk))
        assert any("the wire is down" in text for text in texts_of(desk))
        await typed(pilot, "again", "enter")
        await wait_for(pilot, lambda: at_rest(desk) and desk.app.state.lane.turns == 2)
        assert "● Up again." in texts_of(desk)
    desk.close()
