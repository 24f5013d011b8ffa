"""What the slash commands do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from chimera.errors import ChimeraError, ConfigError
from chimera.permissions.families import nearest
from chimera.text import clean, one_line
from chimera.tui.commands import COMMANDS, RACE_COMMANDS
from chimera.tui.compacting import OnDemand
from chimera.tui.diff_screen import DiffScreen
from chimera.tui.entries import Tone
from chimera.tui.lanes import Opened
from chimera.tui.racing import RacingLanes
from chimera.tui.status import tokens

if TYPE_CHECKING:
    from chimera.tui.app import ChimeraApp

__all__ = ["Slash"]

T = TypeVar("T")
_SESSIONS = 15
_KEYS = {
    "Enter": "send; while a turn runs, say something to it",
    "Ctrl-J": "new line (also Shift-Enter, or \\ and Enter)",
    "Up, Down": "what was typed before",
    "Esc": "cancel the turn",
    "Ctrl-C": "cancel the turn; at rest, leave",
    "Ctrl-D": "leave, on an empty line",
    "Ctrl-T": "the decision timeline",
    "Ctrl-N, Ctrl-P": "in a race, the next and the previous lane; Ctrl-G what it did",
    "Ctrl-O": "unfold all calls, and fold them again",
    "Tab": "complete; else go to the transcript, where arrows and Enter unfold one call",
    "PgUp, PgDn": "scroll",
}


class Slash:
    """Obeys slash commands of the app and of plugins."""

    def __init__(self, app: ChimeraApp) -> None:
        self._app = app
        self._own: dict[str, Callable[[str], None]] = {
            "help": self._help,
            "model": self._model,
            "plugins": self._plugins,
            "resync": self._resync,
            "clear": self._clear,
            "compact": self._compact,
            "cost": self._cost,
            "decisions": lambda _: app.action_timeline(),
            "resume": self._resume,
            "diff": self._diff,
            "apply": self._apply,
            "theme": self._theme,
            "exit": lambda _: app.leave(0),
            "quit": lambda _: app.leave(0),
        }

    def commands(self) -> dict[str, str]:
        """Return every command with what it does."""
        opened = self._app.lanes.opened
        added = opened.manager.components.commands if opened is not None else {}
        known = {**COMMANDS, **RACE_COMMANDS} if isinstance(self._app.lanes, RacingLanes) else COMMANDS
        return {**known, **{name: command.help for name, command in added.items()}}

    def obey(self, name: str, rest: str) -> None:
        if name in self._own:
            try:
                self._own[name](rest)
            except ChimeraError as problem:
                self._app.say(str(problem), Tone.WARNING)
            return
        opened = self._app.lanes.opened
        added = opened.manager.components.commands if opened is not None else {}
        if name in added:
            handler = added[name].handler
            self._app.run_worker(lambda: self._added(name, handler, rest), thread=True, exit_on_error=False)
            return
        near = nearest(name, self.commands())
        hint = f"did you mean /{near}?" if near else "/help lists the commands"
        self._app.say(f"there is no command /{name}; {hint}", Tone.WARNING)

    def _added(self, name: str, handler: Callable[[str], str | None], rest: str) -> None:
        """Run a plugin's command, in a thread of its own: it may take its time."""
        try:
            text, tone = handler(rest) or "done", Tone.PLAIN
        except Exception as problem:  # a plugin's command must not end the conversation
            text, tone = f"/{name} failed: {type(problem).__name__}: {problem}", Tone.BAD
        self._app.call_from_thread(self._app.say, str(text), tone)

    def _help(self, _rest: str) -> None:
        lines = [f"/{name:<12} {text}" for name, text in self.commands().items()]
        keys = [f"{key:<14} {text}" for key, text in _KEYS.items()]
        self._app.say(clean("\n".join([*lines, "", *keys])), Tone.PLAIN)

    def _model(self, name: str) -> None:
        agent = self._app.lanes.agent.agent
        if not name:
            self._app.say(f"the model is {agent.model}", Tone.PLAIN)
        elif self._at_rest("change the model"):
            self._change_model(name)

    def _change_model(self, name: str) -> None:
        from chimera.providers.factory import create_provider

        agent, lane = self._app.lanes.agent.agent, self._app.state.lane
        try:
            provider = create_provider(name)
        except ChimeraError as problem:
            self._app.say(str(problem), Tone.BAD)
            return
        close = getattr(agent.provider, "close", None)
        agent.provider = provider
        agent.model = lane.model = str(getattr(provider, "model_name", "") or name)
        lane.window = getattr(provider, "context_window", 0) or 0
        if callable(close):
            close()
        self._app.say(f"the model is now {lane.model}")

    def _plugins(self, _rest: str) -> None:
        opened = self._app.lanes.opened
        loaded = opened.manager.plugins if opened is not None else {}
        lines = [
            f"{name}  {(type(plugin).__doc__ or '').strip().partition(chr(10))[0]}" for name, plugin in loaded.items()
        ]
        none = "no plugins; load some with --plugin NAME, or name them in .chimera/config.toml"
        self._app.say("\n".join(lines) or none, Tone.PLAIN)

    def _resync(self, _rest: str) -> None:
        agent, opened = self._app.lanes.agent, self._app.lanes.opened
        if opened is not None and self._at_rest("resync"):
            self._app.say("reading settings and plugins")
            self._work(lambda: _resynced(agent, opened), self._tell_resync)

    def _tell_resync(self, lines: list[str]) -> None:
        lanes = self._app.lanes
        if lanes.opened is not None:
            lanes.describe(lanes.opened, self._app.state.about.preset)
        self._app.say("\n".join(lines), Tone.PLAIN)

    def _clear(self, _rest: str) -> None:
        if self._at_rest("clear the conversation"):
            self._app.lanes.agent.clear()
            self._app.lanes.show_history()

    def _compact(self, _rest: str) -> None:
        strategy = self._app.lanes.agent.agent.compaction
        if not isinstance(strategy, OnDemand) or self._app.lanes.agent.agent.loop is not None:
            self._app.say("this lane shortens nothing", Tone.WARNING)
            return
        strategy.wanted = True
        self._app.say("the conversation is shortened before the next answer")

    def _cost(self, _rest: str) -> None:
        lane = self._app.state.lane
        used, turns = lane.used, f"{lane.turns} turn{'s' * (lane.turns != 1)}"
        spent = f"{tokens(used.tokens_in)} tokens in, {tokens(used.tokens_out)} out, ${used.cost:.4f}"
        self._app.say(f"{turns}, {spent}", Tone.PLAIN)

    def _resume(self, wanted: str) -> None:
        if not wanted:
            self._app.say(self._sessions(), Tone.PLAIN)
        elif self._at_rest("go on with another session"):
            self._go_on_with(wanted)

    def _sessions(self) -> str:
        from chimera.assembly.journal import list_sessions

        agent = self._app.lanes.agent
        project, journal = self._app.lanes.asking.root, agent.journal
        folder = None if journal is None else journal.path.parent
        found = list_sessions(folder, project=project)
        own = "" if journal is None else journal.id
        lines = [f"{info.id}  {one_line(info.title, 60)}" for info in found if info.id != own]
        return "\n".join(["/resume ID goes on with one of these:", *lines[:_SESSIONS]]) if lines else "no other session"

    def _go_on_with(self, wanted: str) -> None:
        from chimera.assembly.journal import Journal, find_session

        agent = self._app.lanes.agent
        folder = None if agent.journal is None else agent.journal.path.parent
        try:
            journal = Journal.resume(find_session(wanted, folder), model=agent.model)
        except ChimeraError as problem:
            self._app.say(str(problem), Tone.BAD)
            return
        if journal.project != self._app.lanes.asking.root:
            journal.close()
            self._app.say(f"that session is of the project {journal.project}: go on with it there", Tone.BAD)
            return
        agent.go_on_with(journal)
        self._app.lanes.show_history()

    def _diff(self, wanted: str) -> None:
        lanes = self._race()
        name = lanes.name_of(wanted)
        self._work(lambda: lanes.race.diff(name), lambda diff: self._app.push_screen(DiffScreen(name, diff)))

    def _apply(self, wanted: str) -> None:
        lanes = self._race()
        name = lanes.name_of(wanted)

        def tell(edits: Sequence[Any]) -> None:
            files = ", ".join(str(edit.path) for edit in edits) or "it changed nothing"
            self._app.say(f"{name} was applied to the project: {files}", Tone.PLAIN)

        self._work(lambda: lanes.race.apply(name), tell)

    def _race(self) -> RacingLanes:
        lanes = self._app.lanes
        if not isinstance(lanes, RacingLanes):
            raise ConfigError("this is for a race: start one with --models")
        return lanes

    def _work(self, work: Callable[[], T], then: Callable[[T], object]) -> None:
        """Do something that takes its time in a thread, and show what came of it."""

        def run() -> None:
            try:
                found = work()
            except ChimeraError as problem:
                self._app.call_from_thread(self._app.say, str(problem), Tone.BAD)
            else:
                self._app.call_from_thread(then, found)

        self._app.run_worker(run, thread=True, exit_on_error=False)

    def _theme(self, name: str) -> None:
        wanted = {"light": "textual-light", "dark": "textual-dark"}.get(name)
        if wanted is None:
            wanted = "textual-light" if self._app.current_theme.dark else "textual-dark"
        self._app.theme = wanted

    def _at_rest(self, what: str) -> bool:
        if self._app.state.lane.running:
            self._app.say(f"cannot {what} while a turn runs: wait for it, or press Esc", Tone.WARNING)
            return False
        return True


def _resynced(agent: Any, opened: Opened) -> list[str]:
    """Load, reload and unload plugins as the command line, the settings and their files say now."""
    from chimera.assembly.resync import resync_agent
    from chimera.assembly.settings import load_settings

    asked: dict[str, Mapping[str, Any]] = {name: {} for name in opened.options.plugins}
    return resync_agent(agent, {**asked, **load_settings(opened.project).plugins}).lines()
