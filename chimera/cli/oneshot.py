"""`chimera code -p`: one task, nobody to ask, an exit code that tells how it went."""

from __future__ import annotations

import asyncio
import json
import sys
from abc import ABC, abstractmethod
from typing import Any

from chimera.assembly.scrubbing import scrubbed
from chimera.cli.event_json import answer, event_json, result_json
from chimera.cli.exits import FAILED, OK
from chimera.cli.interrupts import Interrupts
from chimera.cli.options import Output
from chimera.cli.screen import Screen, make_console
from chimera.cli.setup import Session
from chimera.core.loop_events import LoopEvent, LoopEventType, LoopResult
from chimera.text import clean

__all__ = ["run_task"]


def run_task(session: Session, task: str, output: Output) -> int:
    """Run `task` to its end, print what `output` says to standard output, and return the exit code."""
    reporter = _REPORTERS[output](session)
    interrupts = Interrupts(session.agent.cancel)
    try:
        with interrupts.held():
            result = asyncio.run(_run(session, task, reporter, interrupts))
    except asyncio.CancelledError:
        result = None
    if interrupts.exit_code is not None:
        return interrupts.exit_code
    return OK if result is not None and result.success else FAILED


async def _run(session: Session, task: str, reporter: _Reporter, interrupts: Interrupts) -> LoopResult | None:
    result: LoopResult | None = None
    with interrupts.watching():
        turn = session.agent.send(task)
        try:
            async for said in turn:
                event = scrubbed(said)
                session.log.see(event)
                reporter.event(event)
                if event.type is LoopEventType.RESULT:
                    result = event.data
        finally:
            await turn.aclose()
    return result


class _Reporter(ABC):
    def __init__(self, session: Session) -> None:
        self._decisions = session.log.entries

    @abstractmethod
    def event(self, event: LoopEvent) -> None:
        """Print what this kind of output shows of an event."""


class _Text(_Reporter):
    """The answer on standard output, what happens on the way on standard error."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._screen = Screen(make_console(stderr=True), answers=False)
        self._screen.follow_sub_agents(session.bus)

    def event(self, event: LoopEvent) -> None:
        self._screen.show(event)
        text = answer(event.data) if event.type is LoopEventType.RESULT else ""
        if text:
            _write(clean(text) if sys.stdout.isatty() else text)


class _Json(_Reporter):
    def event(self, event: LoopEvent) -> None:
        if event.type is LoopEventType.RESULT:
            _write(_encoded(result_json(event.data, self._decisions)))


class _StreamJson(_Reporter):
    def event(self, event: LoopEvent) -> None:
        _write(_encoded(event_json(event, self._decisions)))


_REPORTERS: dict[Output, type[_Reporter]] = {
    Output.TEXT: _Text,
    Output.JSON: _Json,
    Output.STREAM_JSON: _StreamJson,
}


def _encoded(value: dict[str, Any]) -> str:
    return json.dumps(value, default=str)


def _write(text: str) -> None:
    sys.stdout.write(text.rstrip("\n") + "\n")
    sys.stdout.flush()
