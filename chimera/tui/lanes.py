"""The lanes behind the screen: starting them, speaking to them, and answering them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from chimera.assembly.settings import Settings
from chimera.errors import ConfigError
from chimera.events import (
    Event,
    EventBus,
    InterceptorEvent,
    ModelResponseEvent,
    PermissionEvent,
    ToolCallEvent,
    ToolResultEvent,
)
from chimera.tui.approvals import Answer, Question, Verdict
from chimera.tui.asking import Asking
from chimera.tui.compacting import OnDemand
from chimera.tui.entries import Tone
from chimera.tui.lane_state import LaneState
from chimera.tui.project_rules import allow_in_project
from chimera.tui.runner import LaneThread
from chimera.tui.state import About, AppState
from chimera.tui.timeline import Decision

__all__ = ["Lanes", "Opened", "OpenedAgent"]

_HEARD = (InterceptorEvent, PermissionEvent, ModelResponseEvent, ToolCallEvent, ToolResultEvent)
_BELOW = (ToolCallEvent, ToolResultEvent)


class Opened(Protocol):
    """What an agent is assembled from. `manager` is a `PluginManager`; `options` names the `plugins` that were asked
    for besides those of the settings."""

    @property
    def options(self) -> Any: ...

    @property
    def manager(self) -> Any: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def mode(self) -> str: ...
    @property
    def project(self) -> Path: ...


class OpenedAgent(Opened, Protocol):
    """An assembled agent. `agent` is an `AgentDriver`, which publishes on `bus`."""

    @property
    def agent(self) -> Any: ...
    @property
    def bus(self) -> EventBus: ...


class Lanes:
    """Owns the threads of the lanes. All methods are called in the thread of the screen."""

    def __init__(self, state: AppState, show: Callable[[Question], bool]) -> None:
        self.state = state
        self.asking = Asking(Path(), show)
        self.opened: Opened | None = None
        self._threads: dict[str, LaneThread] = {}
        self._undo: list[Callable[[], None]] = []
        self._later: dict[str, list[str]] = {}
        self._heard: set[str] = set()
        """The lanes whose bus tells what permissions decide; a strategy loop publishes on none."""

    @property
    def thread(self) -> LaneThread:
        """That of the lane which is looked at."""
        return self._threads[self.state.current]

    @property
    def agent(self) -> Any:
        return self.thread.agent

    def attach(self, opened: Any, name: str = "") -> None:
        """Make a lane of an assembled agent, an `OpenedAgent`; `start` starts its thread."""
        self.opened = opened
        agent = opened.agent.agent
        self.asking.root, self.asking.policy = opened.project, agent.permissions
        if agent.compaction is not None:
            agent.compaction = OnDemand(agent.compaction)
        self.describe(opened, agent.preset.name)
        self.state.add_lane(LaneState(name, agent.model, getattr(agent.provider, "context_window", 0) or 0))
        if agent.event_bus is not None:
            self.listen(opened.bus, name)
        self._threads[name] = LaneThread(name, opened.agent, self.state.inbox, self.asking)
        self.show_history()

    def describe(self, opened: Opened, kind: str) -> None:
        """Tell the state what does not change."""
        files = tuple(map(str, opened.settings.files))
        plugins = tuple(opened.manager.plugins)
        self.state.about = About(str(opened.project), str(opened.mode), kind, plugins, files)

    def start(self) -> None:
        for thread in self._threads.values():
            thread.start()

    def close(self) -> bool:
        """Cancel what runs and end the threads; False when one does not end."""
        self.asking.give_up()
        ended = [thread.close() for thread in self._threads.values()]
        self._forget()
        return all(ended)

    def say(self, text: str) -> None:
        """Start a turn with what the person says, or say it to the turn that runs."""
        lane = self.state.lane
        if not lane.running:
            lane.begin(text, self.state.clock())
            self.thread.send(text)
        elif self.thread.steer(text):
            lane.steer(text)
        else:
            self._later.setdefault(lane.name, []).append(text)
            lane.say("this loop reads nothing before it ends: your message waits for the next turn")

    def after_turns(self) -> None:
        """Start the turns that waited for others to end."""
        for name, texts in self._later.items():
            lane = self.state.lanes[name]
            if texts and not lane.running:
                text = texts.pop(0)
                lane.begin(text, self.state.clock())
                self._threads[name].send(text)

    def cancel(self, *, everywhere: bool = False) -> None:
        """Cancel the turn of the lane that is looked at; a second time insists."""
        self._later.pop(self.state.current, None)
        self.thread.cancel()

    def settle(self, question: Question, verdict: Verdict, say: Callable[[str, Tone], None]) -> None:
        """Carry out a verdict; what cannot be written down is said, and holds for the session."""
        if verdict.answer is Answer.PROJECT:
            try:
                path = allow_in_project(self.asking.root, question.rules)
                place = path.relative_to(self.asking.root) if path.is_relative_to(self.asking.root) else path
                say(f"allowed from now on, in {place}: {', '.join(question.rules)}", Tone.NOTE)
            except ConfigError as problem:
                say(f"{problem}; it is allowed for this session only", Tone.WARNING)
        elif verdict.answer is Answer.SESSION:
            say(f"allowed for this session: {', '.join(question.rules)}", Tone.NOTE)
        if question.lane not in self._heard:
            self.state.timeline.add(_given(question, verdict))
        if verdict.answer is Answer.CANCEL:
            self.stop(question.lane)
        self.asking.settle(question, verdict)

    def show_history(self) -> None:
        """Begin the transcript anew with the conversation as it stands."""
        self.state.lane.clear()
        self.greet()
        history = self.agent.history
        if history and self.agent.journal is not None:
            self.state.lane.say(f"this goes on with the session {self.agent.journal.id}")
        self.state.lane.load(history)

    def greet(self) -> None:
        """Say where one is."""
        about, lane = self.state.about, self.state.lane
        packs = ", ".join(about.plugins) or "none"
        lane.say(f"Chimera  {lane.model}", Tone.PLAIN)
        lane.say(f"{about.project}")
        lane.say(f"{about.preset}, permissions: {about.mode}, plugins: {packs}")
        for file in about.files:
            lane.say(f"settings {file}")

    def stop(self, name: str) -> None:
        """Cancel the turn of a lane."""
        self._threads[name].cancel()

    def listen(self, bus: EventBus, name: str) -> None:
        def hear(event: Event) -> None:
            if event.depth or not isinstance(event, _BELOW):
                self.state.inbox.put(name, event)

        self._heard.add(name)
        self._undo += [bus.subscribe(kind, hear) for kind in _HEARD]

    def _forget(self) -> None:
        for undo in self._undo:
            undo()
        self._undo.clear()


def _given(question: Question, verdict: Verdict) -> Decision:
    """Return what the person decided, as permissions would tell it."""
    call, refused = question.approval.tool_call, verdict.answer in (Answer.NO, Answer.CANCEL)
    reason = verdict.reason or question.approval.reason
    word = "denied" if refused else "approved"
    return Decision(time.time(), question.lane, "permission", word, "user", tool=call.name, reason=reason, before=call)
