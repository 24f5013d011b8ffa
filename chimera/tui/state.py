"""Everything that the screen shows, as plain values. Knows no Textual; widgets render it and decide nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from chimera.core.loop_events import LoopEvent, LoopEventType
from chimera.events import Event, EventMiddleware
from chimera.tui.approvals import Question
from chimera.tui.history import History
from chimera.tui.inbox import Inbox, Item, RaceBegun, TurnEnded
from chimera.tui.lane_state import LaneState
from chimera.tui.timeline import Timeline, decision_of

__all__ = ["About", "AppState"]

_TAKE = 2_000


@dataclass(frozen=True, slots=True)
class About:
    """What does not change while the app runs."""

    project: str = ""
    mode: str = ""
    preset: str = ""
    plugins: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(slots=True)
class AppState:
    """The lanes and what stands around them. `clock` is steady, in seconds."""

    about: About = field(default_factory=About)
    clock: Callable[[], float] = lambda: 0.0
    lanes: dict[str, LaneState] = field(default_factory=dict)
    current: str = ""
    timeline: Timeline = field(default_factory=Timeline)
    questions: deque[Question] = field(default_factory=deque)
    history: History = field(default_factory=History)
    inbox: Inbox = field(default_factory=Inbox)
    scores: Callable[[], Sequence[Any]] = tuple
    _scrub: EventMiddleware | None = None

    @property
    def lane(self) -> LaneState:
        """The lane that is looked at."""
        return self.lanes[self.current]

    @property
    def running(self) -> bool:
        return any(lane.running for lane in self.lanes.values())

    def add_lane(self, lane: LaneState) -> None:
        self.lanes[lane.name] = lane
        self.current = self.current or lane.name

    def take(self) -> list[Item]:
        """Bring the state up to what has come since, and return that."""
        items = self.inbox.take(_TAKE)
        for item in items:
            self._take(item)
        return items

    def ask(self, question: Question) -> None:
        """Put a question into the queue."""
        self.questions.append(question)
        lane = self.lanes.get(question.lane)
        if lane is not None:
            lane.asking += 1

    def answered(self, question: Question) -> None:
        """Take a question out of the queue."""
        if question in self.questions:
            self.questions.remove(question)
            lane = self.lanes.get(question.lane)
            if lane is not None:
                lane.asking = max(0, lane.asking - 1)

    def step(self, places: int) -> None:
        """Look at another lane."""
        names = list(self.lanes)
        self.current = names[(names.index(self.current) + places) % len(names)]

    def _take(self, item: Item) -> None:
        if isinstance(item.what, RaceBegun):
            self._begin_race(item.what)
            return
        lane, now = self.lanes[item.lane], self.clock()
        match item.what:
            case TurnEnded(failure):
                lane.end(failure, now)
            case LoopEvent() as event:
                lane.apply(event, now)
                if event.type is LoopEventType.INTERCEPTOR:
                    self._record(self._scrubbed(event.data), lane.name)
            case Event() as heard:
                lane.hear(heard, now)
                self._record(heard, lane.name)

    def _begin_race(self, race: RaceBegun) -> None:
        self.lanes, self.current, self.scores = {}, "", race.scores
        for lane in race.lanes:
            self.add_lane(lane)
            lane.begin(race.task, self.clock())

    def _record(self, event: Event | None, lane: str) -> None:
        decision = decision_of(event, lane) if event is not None else None
        if decision is not None:
            self.timeline.add(decision)

    def _scrubbed(self, event: Event) -> Event | None:
        if self._scrub is None:
            from chimera.secrets import RedactionMiddleware

            self._scrub = RedactionMiddleware()
        return self._scrub(event)
