"""Looking around in the transcript."""

from __future__ import annotations

from pathlib import Path

from chimera.tui.entries import Called
from tests.tui.desk import Desk, at_rest, texts_of, typed, wait_for

SIZE = (80, 24)


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
