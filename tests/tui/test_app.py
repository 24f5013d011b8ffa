"""The app with a person at the keys: real agents, real tools, a scripted model."""

from __future__ import annotations

from pathlib import Path

import pytest

from chimera.core.decisions import InterceptDecision, Interceptors
from chimera.types import ToolCall
from tests.tui.desk import CHECK, Desk, Wait, at_rest, last_request, texts_of, typed, wait_for

SIZE = (80, 24)


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


async def test_enter_sends_what_was_typed_and_not_what_is_offered(tmp_path: Path) -> None:
    """The first command that begins with /c clears the conversation."""
    desk = Desk(tmp_path, ["One."])
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "hello", "enter")
        await wait_for(pilot, lambda: at_rest(desk))
        await pilot.press(*"/c", "enter", *"/co", *"st", "enter")
        await wait_for(pilot, lambda: not desk.app.prompt.text)
        assert "> hello" in texts_of(desk)
    desk.close()


async def test_completion_and_history(tmp_path: Path) -> None:
    (tmp_path / "cart.py").write_text("")
    desk = Desk(tmp_path, ["One.", "Two."])
    async with desk.app.run_test(size=SIZE) as pilot:
        await wait_for(pilot, lambda: desk.app._files)
        await pilot.press(*"see @ca")
        await wait_for(pilot, lambda: desk.app.completions.display)
        await pilot.press("tab")
        assert desk.app.prompt.text == "see @cart.py "
        await pilot.press("enter")
        await wait_for(pilot, lambda: at_rest(desk))
        await pilot.press(*"/he", "tab")
        assert desk.app.prompt.text == "/help "
        await pilot.press("ctrl+c", *"/c", "down", "enter")
        assert desk.app.prompt.text == "/compact "
        await pilot.press("ctrl+c", *"/c")
        await wait_for(pilot, lambda: desk.app.completions.display)
        await pilot.press("down", "down", "up", "tab")
        assert desk.app.prompt.text == "/compact "
        await pilot.press("ctrl+c", *"/c")
        await wait_for(pilot, lambda: desk.app.completions.display)
        await pilot.press("escape")
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


SECRET = "sk-ant-api03-" + "Zk3Qp9Lx7Vb2Nm5T" * 4


def quoting(call: ToolCall) -> InterceptDecision | None:
    return InterceptDecision.block(f"it holds {SECRET}") if call.name == "bash" else None


async def test_reasons_and_errors_are_shown_without_what_they_quote(tmp_path: Path) -> None:
    chains = Interceptors(tool_call=[quoting])
    desk = Desk(tmp_path, [{"tool_calls": [CHECK]}, {"error": f"the wire said {SECRET}"}], interceptors=chains)
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, lambda: at_rest(desk))
        shown = " ".join(texts_of(desk))
        assert "it holds" in shown
        assert "the wire said" in shown
        assert "Zk3Qp9Lx7Vb2Nm5T" not in shown + str(desk.app.state.timeline.decisions)
    desk.close()
