"""think does nothing, at once."""

from __future__ import annotations

from chimera.tools import ThinkTool


async def test_it_notes_the_thought_and_does_nothing() -> None:
    tool = ThinkTool()
    assert tool.execute({"thought": "hm"}) == await tool.async_execute({"thought": "hm"})
    assert tool.execute({"thought": "hm"}).output == "Noted."
