from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from chimera.assembly.driver import AgentDriver
from chimera.core.loop_events import LoopEvent, LoopEventType
from chimera.providers.faux import FauxProvider
from chimera.tui.asking import Asking
from chimera.tui.housed import Housed
from chimera.tui.inbox import Inbox, TurnEnded
from chimera.tui.runner import LaneThread
from tests.tui.desk import Wait


class Deaf:
    """An agent whose turn does not listen to `cancel`, or fails."""

    agent = None

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.begun = asyncio.Event()

    async def send(self, text: str) -> Any:
        yield LoopEvent(LoopEventType.SYSTEM, text)
        if self.failure is not None:
            raise self.failure
        await asyncio.sleep(60)

    def cancel(self) -> None:
        """Hear nothing."""


def lane(agent: Any, tmp_path: Path) -> tuple[LaneThread, Inbox]:
    inbox = Inbox()
    thread = LaneThread("", agent, inbox, Asking(tmp_path, lambda question: False))
    thread.start()
    return thread, inbox


def items(inbox: Inbox, count: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < count:
        found += [item.what for item in inbox.take(100)]
    return found


def test_turns_run_one_after_the_other(tmp_path: Path) -> None:
    agent = AgentDriver(provider=FauxProvider(["One.", "Two."]), project_dir=tmp_path)
    thread, inbox = lane(agent, tmp_path)
    thread.send("first")
    thread.send("second")
    ends = 0
    while ends < 2:
        ends += sum(isinstance(item.what, TurnEnded) for item in inbox.take(100))
    assert [message.content for message in agent.history] == ["first", "One.", "second", "Two."]
    assert thread.close()


def test_what_does_not_listen_is_cut_off_by_a_second_cancel(tmp_path: Path) -> None:
    thread, inbox = lane(Deaf(), tmp_path)
    thread.send("go")
    items(inbox, 1)
    thread.cancel()
    thread.cancel()
    assert items(inbox, 1) == [TurnEnded("interrupted")]
    assert thread.close()


def test_a_failure_ends_the_turn_and_not_the_thread(tmp_path: Path) -> None:
    thread, inbox = lane(Deaf(RuntimeError("broke")), tmp_path)
    for _ in range(2):
        thread.send("go")
        assert items(inbox, 2)[-1] == TurnEnded("RuntimeError: broke")
    assert thread.close()


def test_a_thread_that_was_never_started_closes(tmp_path: Path) -> None:
    assert LaneThread("", Deaf(), Inbox(), Asking(tmp_path, lambda question: False)).close()


async def test_a_housed_agent_tells_what_happens_and_fails_where_it_is_driven() -> None:
    seen: list[LoopEvent] = []
    housed = Housed(Deaf(RuntimeError("broke")), seen.append, lambda: None)
    with pytest.raises(RuntimeError, match="broke"):
        async for _ in housed.send("go"):
            pass
    assert [event.data for event in seen] == ["go"]


async def test_giving_a_housed_turn_up_cancels_it_and_waits_for_its_end(tmp_path: Path) -> None:
    wait, cancels = Wait(), []
    agent = AgentDriver(
        provider=FauxProvider([{"tool_calls": [{"name": "wait"}]}, "never"]), project_dir=tmp_path, extra_tools=[wait]
    )
    turn = Housed(agent, lambda event: None, lambda: cancels.append(1)).send("go")
    async for event in turn:
        if event.type is LoopEventType.TOOL_USE:
            break
    await turn.aclose()
    assert cancels == [1]
    assert not agent.running
    assert [message.role for message in agent.history] == ["user", "assistant", "tool"]
