"""The app: it hands the state to widgets, and what the person does to the lanes."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Event, Key
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Static, TextArea

from chimera.text import clean, one_line
from chimera.tui.approval_screen import ApprovalScreen
from chimera.tui.approvals import Answer, Question, Verdict
from chimera.tui.commands import complete, split_command
from chimera.tui.entries import Tone
from chimera.tui.files import project_files
from chimera.tui.lanes import Lanes
from chimera.tui.pace import REPAINTS_PER_SECOND, Pace
from chimera.tui.prompt import Completions, Prompt
from chimera.tui.racing import Course, RacingLanes
from chimera.tui.scoreboard import scoreboard
from chimera.tui.slash import Slash
from chimera.tui.state import AppState
from chimera.tui.status import status_line, working_line
from chimera.tui.timeline_screen import TimelineScreen
from chimera.tui.transcript import Transcript

__all__ = ["ApprovalAsked", "ChimeraApp"]

_PAUSE = 0.6
_JUST_NOW = 2.0
_REST = "Enter sends · Ctrl-J new line · / commands · @ files · Ctrl-T decisions"

_AFTER_RACE = "Ctrl-N next lane · Ctrl-G what it did · /apply does it · Ctrl-T decisions"


class ApprovalAsked(Message):
    """A call waits for the person; `question.future` takes the verdict."""

    def __init__(self, question: Question) -> None:
        super().__init__()
        self.question = question


class Line(Static):
    """Text that is drawn again only when it has changed."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id, markup=False)
        self._shown = Text()

    def put(self, text: str | Text) -> None:
        shown = Text(clean(text)) if isinstance(text, str) else text
        if shown != self._shown or shown.spans != self._shown.spans:
            self._shown = shown
            self.update(shown)


class ChimeraApp(App[int]):
    """One or several lanes on a terminal. Exits with an exit code."""

    CSS_PATH = "chimera.tcss"
    TITLE = "Chimera"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", "cancel or leave", priority=True),
        Binding("ctrl+t", "timeline", "decisions", priority=True),
        Binding("ctrl+o", "unfold", "unfold all", priority=True),
        Binding("ctrl+n", "step(1)", "next lane", priority=True),
        Binding("ctrl+p", "step(-1)", "previous lane", priority=True),
        Binding("ctrl+g", "diff", "what the lane did", priority=True),
        Binding("escape", "cancel", "cancel", show=False),
    ]

    def __init__(
        self,
        state: AppState,
        *,
        clock: Callable[[], float] = time.monotonic,
        utc: bool = False,
        course: Course | None = None,
        reaction: float = 0.25,
    ) -> None:
        """`reaction` is the time in seconds in which nobody can have answered a question that has just appeared."""
        super().__init__()
        self.state = state
        self.state.clock = clock
        show = self._show_question
        self.lanes: Lanes = Lanes(state, show) if course is None else RacingLanes(state, show, course)
        self.slash = Slash(self)
        self.utc = utc
        self._pace = Pace()
        self._reaction = reaction
        self.board = Line(id="scoreboard")
        self.transcript = Transcript(id="transcript")
        self.waiting, self.working, self.status = Line(id="waiting"), Line(id="working"), Line(id="status")
        self.completions = Completions(id="completions")
        self.prompt = Prompt(state.history, self.completions, id="prompt")
        self._typed_at = float("-inf")
        self._asking = False
        self._notice = ""
        self._files: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.board
        yield self.transcript
        yield self.waiting
        yield self.working
        yield self.completions
        yield self.prompt
        yield self.status

    def on_mount(self) -> None:
        self.transcript.show(self.state.lane)
        self.prompt.focus()
        self.theme_changed_signal.subscribe(self, lambda _: self.call_after_refresh(self.transcript.restyle))
        self.lanes.start()
        self.set_interval(1 / REPAINTS_PER_SECOND, self._tick_when_due)
        self.run_worker(self._read_files, thread=True, exit_on_error=False)
        self.show_lines()

    def _tick_when_due(self) -> None:
        if self._pace.due(time.monotonic()):
            self.tick()
            self.call_after_refresh(lambda: self._pace.painted(time.monotonic()))

    def tick(self) -> None:
        """Take what has come, and show it. All repaints of what streams begin here."""
        if self.state.take():
            self.show_lane()
            if isinstance(self.screen, TimelineScreen):
                self.screen.sync()
            self.lanes.after_turns()
            if not self.state.running:
                self._notice = ""
        self.show_lines()

    def show_lane(self) -> None:
        """Show the lane that is looked at."""
        if self.transcript.lane is self.state.lane:
            self.transcript.sync()
        else:
            self.transcript.show(self.state.lane)

    def show_lines(self) -> None:
        """Show the lines around the prompt."""
        lane = self.state.lane
        if not self.status.is_attached:  # the app is closing
            return
        scores = scoreboard(self.state, self.size.width - 2, self.transcript.styles_of_parts)
        self.board.put(scores)
        self.board.display = bool(scores)
        working = working_line(lane, self.state.clock())
        self.working.put(self._notice or working or (_AFTER_RACE if scores else _REST))
        self.working.set_class(not working, "rest")
        self.status.put(status_line(self.state, self.size.width - 2))
        waiting = "\n".join(f"» {one_line(text, 200)}  (read before the next answer)" for text in lane.waiting)
        self.waiting.put(waiting)
        self.waiting.display = bool(waiting)

    def notice(self, text: str) -> None:
        """Show a remark above the prompt until the next key."""
        self._notice = text
        self.show_lines()

    def say(self, text: str, tone: Tone = Tone.NOTE) -> None:
        """Add a remark to the transcript that is looked at."""
        self.state.lane.say(text, tone)
        self.transcript.sync()

    def on_prompt_sent(self, message: Prompt.Sent) -> None:
        self._notice, self._typed_at = "", float("-inf")
        self.completions.offer([])
        command = split_command(message.text)
        if command is not None:
            self.slash.obey(*command)
        else:
            self.lanes.say(message.text)
        self.transcript.sync()
        self.transcript.scroll_end(animate=False)
        self.show_lines()

    def on_prompt_escaped(self) -> None:
        self.action_cancel()

    def on_prompt_leaving(self) -> None:
        self.leave(0)

    def on_prompt_paged(self, message: Prompt.Paged) -> None:
        move = self.transcript.scroll_page_up if message.pages < 0 else self.transcript.scroll_page_down
        move(animate=False)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        if event.text_area is self.prompt:
            self._typed_at, self._notice = self.state.clock(), ""
            before = "" if self.prompt.text == self.prompt.recalled else self.prompt.before_cursor
            self.completions.offer(complete(before, self._files, self.slash.commands()))
            if self.prompt.before_cursor.endswith("@"):
                self.run_worker(self._read_files, thread=True, exclusive=True, exit_on_error=False)

    def on_approval_asked(self, message: ApprovalAsked) -> None:
        self.tick()
        self.state.ask(message.question)
        self._next_question()

    def action_interrupt(self) -> None:
        if self.state.running:
            self.lanes.cancel(everywhere=True)
            self.notice("Cancelling; once more insists")
        elif self.prompt.text:
            self.prompt.put("")
        else:
            self.leave(0)

    def action_cancel(self) -> None:
        if self.state.lane.running:
            self.lanes.cancel()
            self.notice("Cancelling; once more insists")

    def action_timeline(self) -> None:
        if isinstance(self.screen, TimelineScreen):
            self.screen.dismiss()
        elif not isinstance(self.screen, ModalScreen):
            self.state.take()
            self.push_screen(TimelineScreen(self.state.timeline, lanes=len(self.state.lanes), utc=self.utc))

    def action_step(self, places: int) -> None:
        self.state.step(places)
        self.show_lane()
        self.show_lines()

    def action_diff(self) -> None:
        if not isinstance(self.screen, ModalScreen):
            self.slash.obey("diff", "")

    def action_unfold(self) -> None:
        self.transcript.unfold_all()

    async def on_event(self, event: Event) -> None:
        if isinstance(event, Key):
            self._pace.typed(time.monotonic())
        await super().on_event(event)

    async def action_quit(self) -> None:
        self.leave(0)

    def leave(self, code: int) -> None:
        """End the app; what runs is cancelled."""
        if self.state.running:
            self.lanes.cancel(everywhere=True)
        self.exit(code)

    def _show_question(self, question: Question) -> bool:
        """Bring a question to the thread of the screen. Called in the threads of lanes."""
        return self.is_running and self.post_message(ApprovalAsked(question))

    def _next_question(self) -> None:
        """Show the oldest question, unless one is shown."""
        while self.state.questions and self.state.questions[0].future.done():
            self.state.answered(self.state.questions[0])
        if isinstance(self.screen, ApprovalScreen):
            self.screen.more_wait(len(self.state.questions) - 1)
        if self._asking or not self.state.questions:
            return
        self._asking = True
        question = self.state.questions[0]
        just_typed = self.state.clock() - self._typed_at < _JUST_NOW and bool(self.prompt.text)
        screen = ApprovalScreen(
            question,
            waiting=len(self.state.questions) - 1,
            pause=_PAUSE if just_typed else self._reaction,
            many_lanes=len(self.state.lanes) > 1,
        )
        question.future.add_done_callback(partial(self._settled, screen))
        self.push_screen(screen, partial(self._answered, question))
        self.show_lines()

    def _settled(self, screen: ApprovalScreen, _future: Any) -> None:
        """A question was settled by something else than its screen, a cancelled turn say: take the screen away."""
        self.call_later(self._withdraw, screen)

    def _withdraw(self, screen: ApprovalScreen) -> None:
        if screen.is_current:
            screen.dismiss(Verdict(Answer.CANCEL))

    def _answered(self, question: Question, verdict: Verdict | None) -> None:
        verdict = verdict or Verdict(Answer.CANCEL)
        self._asking = False
        self.state.answered(question)
        if not question.future.done():
            self.lanes.settle(question, verdict, self.say)
        self._next_question()
        self.transcript.sync()
        self.show_lines()

    def _read_files(self) -> None:
        self._files = project_files(self.lanes.asking.root)
