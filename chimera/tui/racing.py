"""Several lanes at one task: the race behind the screen, and what a person does with its outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from threading import Thread
from typing import Any

from chimera.assembly.lanes import Lane, LaneSpec, Race, make_room
from chimera.assembly.scrubbing import scrubbed, scrubbed_text
from chimera.core.loop_events import LoopEventType
from chimera.errors import ChimeraError, ConfigError
from chimera.events import EventBus
from chimera.tui.approvals import Question
from chimera.tui.entries import Tone
from chimera.tui.housed import Housed
from chimera.tui.inbox import RaceBegun, TurnEnded
from chimera.tui.lane_state import LaneState
from chimera.tui.lanes import Lanes
from chimera.tui.state import AppState
from chimera.types import PendingApproval

__all__ = ["Course", "RacingLanes"]

MakeAgent = Callable[[Lane, EventBus, Callable[[PendingApproval], None]], Any]


class Course:
    """What a race is run with: lanes, the command that judges them, and what makes an agent for a lane."""

    def __init__(self, specs: Sequence[LaneSpec], make_agent: MakeAgent, check: str | None = None) -> None:
        self.specs, self.make_agent, self.check = tuple(specs), make_agent, check


class RacingLanes(Lanes):
    """One race after another: each task starts one, and the copies of the last one stay until the next begins."""

    def __init__(self, state: AppState, show: Callable[[Question], bool], course: Course) -> None:
        super().__init__(state, show)
        self._course = course
        self._race: Race | None = None
        self._runner: Thread | None = None

    @property
    def race(self) -> Race:
        """The race that runs, or ran last. Raises `ConfigError` before the first one."""
        if self._race is None:
            raise ConfigError("there was no race yet: say what to do")
        return self._race

    @property
    def agent(self) -> Any:
        raise ConfigError("this is for one agent, and here several race")

    def attach(self, opened: Any, name: str = "") -> None:
        """Take what the lanes will be made of, an `Opened`."""
        self.opened = opened
        self.asking.root = opened.project
        self.describe(opened, "race")
        self.state.add_lane(LaneState(name, ", ".join(map(str, self._course.specs))))
        self.greet()

    def close(self) -> bool:
        self.asking.give_up()
        race, thread = self._race, self._runner
        if race is not None:
            race.cancel()
        if thread is not None:
            thread.join(10.0)
        if race is not None:
            race.close()
        self._forget()
        return thread is None or not thread.is_alive()

    def say(self, text: str) -> None:
        """Start a race; while one runs, speak to the lane that is looked at."""
        lane = self.state.lane
        if not self.state.running and (self._runner is None or not self._runner.is_alive()):
            self._begin(text)
        elif not lane.running:
            lane.say("this lane has ended; Ctrl-N goes to the next one", Tone.WARNING)
        elif self.race.lanes[lane.name].agent.steer(text):
            lane.steer(text)
        else:
            lane.say("this loop reads nothing before it ends", Tone.WARNING)

    def after_turns(self) -> None:
        """Nothing waits: a race runs once."""

    def cancel(self, *, everywhere: bool = False) -> None:
        """Cancel the lane that is looked at, or all of them."""
        if everywhere:
            self.race.cancel()
            self.asking.give_up()
        else:
            self._cancel_lane(self.state.current)

    def stop(self, name: str) -> None:
        self._cancel_lane(name)

    def name_of(self, wanted: str) -> str:
        """Return the lane with this number or name, the one that is looked at for nothing. Raises `ConfigError`."""
        names = list(self.race.lanes)
        if not wanted:
            return self.state.current
        if wanted.isascii() and wanted.isdigit() and 0 < int(wanted) <= len(names):
            return names[int(wanted) - 1]
        if wanted in names:
            return wanted
        raise ConfigError(f"there is no lane {wanted!r}; there are 1 to {len(names)}")

    def _cancel_lane(self, name: str) -> None:
        if self._race is not None and name in self._race.lanes:
            self._race.cancel(name)
            self.asking.give_up(name)

    def _begin(self, task: str) -> None:
        if self._race is not None:
            self._race.close()
        self._forget()
        course = self._course
        self._race = Race(task, course.specs, self.asking.root, make_agent=self._made, check=course.check)
        self.state.lane.say("copying the project for each lane")
        self._runner = Thread(target=self._run, args=(self._race, task), name="chimera-race", daemon=True)
        self._runner.start()

    def _made(self, lane: Lane) -> Housed:
        bus, name, root = EventBus(), lane.name, lane.root
        agent = self._course.make_agent(lane, bus, lambda approval: self.asking.ask(approval, name, root))
        if agent.agent.event_bus is not None:
            self.listen(bus, name)
        return Housed(agent, self.asking.rewrites.see, lambda: self.asking.give_up(name))

    def _run(self, race: Race, task: str) -> None:
        inbox = self.state.inbox
        try:
            race.open()
            lanes = [self._state_of(lane) for lane in race.lanes.values()]
            inbox.put("", RaceBegun(lanes, task, lambda: race.scoreboard))
            asyncio.run(self._watch(race))
        except Exception as problem:  # the person learns of it, and can start another one
            text = str(problem) if isinstance(problem, ChimeraError) else f"{type(problem).__name__}: {problem}"
            for name in race.lanes or [self.state.current]:
                inbox.put(name if name in self.state.lanes else self.state.current, TurnEnded(scrubbed_text(text)))

    async def _watch(self, race: Race) -> None:
        make_room(len(race.lanes))
        async for name, event in race.events():
            self.state.inbox.put(name, scrubbed(event))
            if event.type is LoopEventType.RESULT:
                self.state.inbox.put(name, TurnEnded())

    def _state_of(self, lane: Lane) -> LaneState:
        agent = lane.agent.inner.agent
        return LaneState(lane.name, agent.model, getattr(agent.provider, "context_window", 0) or 0)
