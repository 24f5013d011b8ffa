"""Questions to the person: what is shown, what each answer does, and what the model is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from chimera.assembly.settings import load_settings
from chimera.core.decisions import InterceptDecision, Interceptors
from chimera.providers.faux import FauxRequest
from chimera.tools.delegate import DelegateTool
from chimera.tui.entries import Called, Status
from chimera.types import ToolCall
from tests.tui.desk import CHECK, Desk, Wait, asked, at_rest, last_request, texts_of, typed, wait_for

SIZE = (80, 24)


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
        assert await asked_twice(desk, pilot, "y")
        await pilot.press("down", "enter")
        await wait_for(pilot, lambda: at_rest(desk))
    assert not (tmp_path / ".chimera").exists()
    desk.close()


async def test_enter_chooses_nothing_that_nobody_has_marked(tmp_path: Path) -> None:
    """It may be the end of a sentence that was meant for the prompt."""
    desk = Desk(tmp_path, SCRIPT)
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, lambda: asked(desk))
        await pilot.press("enter", "enter", "space")
        assert asked(desk)
        await pilot.press("escape")
        await wait_for(pilot, lambda: at_rest(desk) or asked(desk))
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


async def test_a_long_call_can_be_read_to_its_end(tmp_path: Path) -> None:
    command = "\n".join(f"echo {number}" for number in range(60))
    desk = Desk(tmp_path, [{"tool_calls": [{"name": "bash", "arguments": {"command": command}}]}, "Done."])
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, lambda: asked(desk))
        scroll = desk.app.screen.query_one("#approval-call")
        assert scroll.scroll_offset.y == 0
        for _ in range(20):
            await pilot.press("pagedown")
        await wait_for(pilot, lambda: scroll.scroll_offset.y == scroll.max_scroll_y > 20)
        await pilot.press("pageup")
        await wait_for(pilot, lambda: scroll.scroll_offset.y < scroll.max_scroll_y)
        assert "No rule would mean just this call" in str(desk.app.screen.query_one("#approval-rules").render())
        await pilot.press("s", "p")
        assert asked(desk)
        await pilot.press("4")
        await pilot.press("escape")
        await wait_for(pilot, lambda: at_rest(desk))
        assert "the user denied it" in last_request(desk)
    desk.close()
