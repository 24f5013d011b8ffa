"""The question whether a call may run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from chimera.text import clean, one_line
from chimera.tui.approvals import Answer, Question, Verdict
from chimera.tui.colours import component_styles
from chimera.tui.diffs import call_diff, call_lines, edit_lines
from chimera.tui.render import diff_text

__all__ = ["ApprovalScreen"]

_PARTS = ("added", "removed", "heading", "quiet")


class ApprovalScreen(ModalScreen[Verdict]):
    """Shows the call that will run, all of it, and what it was before policies rewrote it; returns the verdict.

    Keys count only once nothing has been typed for `pause` seconds, and nothing is chosen beforehand: what was meant
    for the prompt must not approve.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "no", "no"),
        Binding("ctrl+c", "give_up", "cancel the turn", priority=True),
        Binding("pageup", "page(-1)", show=False, priority=True),
        Binding("pagedown", "page(1)", show=False, priority=True),
        *(Binding(key, f"answer('{answer.value}')", show=False) for key, answer in (
            ("y", Answer.ONCE), ("1", Answer.ONCE), ("s", Answer.SESSION), ("2", Answer.SESSION),
            ("p", Answer.PROJECT), ("3", Answer.PROJECT), ("n", Answer.NO), ("4", Answer.NO),
        )),
    ]  # fmt: skip
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"approval--{name}" for name in _PARTS}

    def __init__(self, question: Question, *, waiting: int = 0, pause: float = 0.0, many_lanes: bool = False) -> None:
        super().__init__()
        self._question = question
        self._waiting = waiting
        self._pause = pause
        self._many_lanes = many_lanes
        self._deaf = pause > 0

    def more_wait(self, count: int) -> None:
        """Say how many questions come after this one."""
        if count != self._waiting:
            self._waiting = count
            self._hint()

    def compose(self) -> ComposeResult:
        with Vertical(id="approval"):
            yield Static(self._title(), id="approval-title", markup=False)
            yield Static(self._reason(), id="approval-reason", markup=False)
            with VerticalScroll(id="approval-call", can_focus=False):
                yield Static(id="approval-text")
            yield Static(self._always(), id="approval-rules", markup=False)
            yield OptionList(*self._options(), id="approval-options", markup=False)
            yield Input(placeholder="What should the model know? Enter sends it", id="approval-why")
            yield Static(id="approval-hint")

    def on_mount(self) -> None:
        self.query_one("#approval-text", Static).update(Text("\n").join(self._call()))
        self.query_one("#approval-why").display = False
        options = self.query_one(OptionList)
        options.focus()
        options.highlighted = None  # Enter means nothing until something was chosen: it may end another sentence
        self._hint()
        if self._deaf:
            self._timer = self.set_timer(self._pause, self._listen)

    async def on_event(self, event: events.Event) -> None:
        """Drop keys that come while the person is still typing something else."""
        if self._deaf and isinstance(event, events.Key) and event.key != "ctrl+c":
            self._timer.stop()
            self._timer = self.set_timer(self._pause, self._listen)
            return
        await super().on_event(event)

    def action_answer(self, value: str) -> None:
        answer = Answer(value)
        if answer not in self._offered():
            return
        if answer is Answer.NO:
            self._ask_why()
        else:
            self.dismiss(Verdict(answer))

    def action_no(self) -> None:
        self.dismiss(Verdict(Answer.NO))

    def action_give_up(self) -> None:
        self.dismiss(Verdict(Answer.CANCEL))

    def action_page(self, pages: int) -> None:
        scroll = self.query_one("#approval-call", VerticalScroll)
        scroll.scroll_relative(y=pages * max(1, scroll.size.height - 1), animate=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.action_answer(str(event.option.id))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(Verdict(Answer.NO, event.value.strip()))

    def _ask_why(self) -> None:
        self.query_one(OptionList).display = False
        why = self.query_one(Input)
        why.display = True
        why.focus()
        self.query_one("#approval-hint", Static).update("Enter says so · Esc no, without a reason")

    def _listen(self) -> None:
        self._deaf = False
        self._hint()

    def _hint(self) -> None:
        more = f" · {self._waiting} more waiting" if self._waiting else ""
        text = (
            "Waiting until you stop typing" if self._deaf else "Esc: no · Ctrl-C: cancel the turn · PgUp/PgDn: scroll"
        )
        self.query_one("#approval-hint", Static).update(f"{text}{more}")

    def _title(self) -> str:
        lane = f"  in {one_line(self._question.lane)}" if self._many_lanes else ""
        return f"May this run? {one_line(self._question.approval.tool_name)}{lane}"

    def _reason(self) -> str:
        return f"Asked because {one_line(self._question.approval.reason, 300)}"

    def _offered(self) -> dict[Answer, str]:
        question = self._question
        offered = {Answer.ONCE: "y  Yes, once"}
        if question.rules:
            offered[Answer.SESSION] = "s  Yes, and always in this session"
        if question.lasting:
            offered[Answer.PROJECT] = "p  Yes, and always in this project (into .chimera/config.toml)"
        offered[Answer.NO] = "n  No, and say why"
        return offered

    def _options(self) -> Iterator[Option]:
        for answer, text in self._offered().items():
            yield Option(text, id=answer.value)

    def _always(self) -> str:
        """Say what an answer that lasts would cover."""
        rules = ", ".join(one_line(rule, 2_000) for rule in self._question.rules)
        return f"Always means {rules}" if rules else "No rule would mean just this call: it can be allowed once."

    def _call(self) -> Iterator[Text]:
        question = self._question
        call = question.approval.tool_call
        styles = component_styles(self, "approval", _PARTS)
        if question.original is not None:
            yield Text("A policy rewrote this call. - as the model wanted it  + as it will run", styles["heading"])
            yield from (diff_text(line, styles) for line in call_diff(question.original, call))
            return
        changes = edit_lines(call, question.was)
        if changes:
            yield Text(str(clean(str(call.arguments.get("path", "")))), styles["heading"])
            yield from (diff_text(line, styles) for line in changes)
            return
        yield from map(Text, call_lines(call)[1:])
