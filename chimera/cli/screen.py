"""How a run looks on a terminal, line by line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chimera.cli.wrapping import Wrapper
from chimera.core.loop_events import LoopEvent, LoopEventType, LoopResult
from chimera.events import CompactionEvent, Event, EventBus, InterceptorEvent, ToolCallEvent, ToolResultEvent
from chimera.text import clean, clip, headline, one_line
from chimera.types import Message, ToolCall, ToolResult

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = ["Screen", "make_console", "print_beside"]

_RESULT_LINES = 8
_HEADLINE = 240
_LABEL = 60
_SILENT = frozenset({"think"})
_MARKS = {"call": "●", "good": "✓", "bad": "✗", "note": "~", "": " "}
_PLAIN_MARKS = {"call": "*", "good": "+", "bad": "x", "note": "~", "": " "}


def make_console(*, stderr: bool = False) -> Console:
    """Return a console that prints what it is given as it is: no markup, no emoji codes, no highlighting."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=False)


def print_beside(console: Console, label: Text, text: Text) -> None:
    """Print `label`, and beside it `text`, whose lines all begin where its first one does."""
    from rich.text import Text

    margin = label.cell_len
    for index, line in enumerate(text.wrap(console, max(20, console.width - margin), overflow="fold")):
        line.rstrip()
        beginning = label if index == 0 else Text(" " * margin if line else "")
        console.print(beginning + line, soft_wrap=True)


class Screen:
    """Prints the events of a run as they come. With `answers` False the model's text is left out."""

    def __init__(self, console: Console, *, answers: bool = True, result_lines: int = _RESULT_LINES) -> None:
        self.console = console
        self._answers = answers
        self._result_lines = result_lines
        self._marks = _MARKS if (console.encoding or "").lower().startswith("utf") else _PLAIN_MARKS
        self._flow: Wrapper | None = None
        self._streamed = False
        self._latest: str | None = None
        self._begun: set[str] = set()

    def show(self, event: LoopEvent) -> None:
        """Print what there is to see of `event`."""
        method = _METHODS.get(event.type)
        if method is not None:
            getattr(self, method)(event.data)

    def pause(self) -> None:
        """Write what is held back of the model's text: somebody else is about to print."""
        self._end_flow()

    def note(self, text: str, style: str = "dim") -> None:
        """Print a remark that is neither the model's nor a tool's."""
        self._line("note", text, style)

    def verdict(self, text: str, *, good: bool) -> None:
        """Print whether something was found to be so."""
        self._line("good" if good else "bad", text, "green" if good else "bold red")

    def follow_sub_agents(self, bus: EventBus) -> None:
        """Print what sub-agents do as well: the run that is shown only says that it waits for them."""
        bus.subscribe(ToolCallEvent, self._below)
        bus.subscribe(ToolResultEvent, self._below)

    def _below(self, event: Event) -> None:
        if not event.depth:
            return
        if isinstance(event, ToolCallEvent):
            self._line("call", f"{event.call.name} {headline(event.call)}", "dim", 4 * event.depth)
        elif isinstance(event, ToolResultEvent) and not event.result.success:
            text = one_line(f"{event.call.name}: {event.result.error}", _HEADLINE)
            self._line("bad", text, "red", 4 * event.depth)

    def _chunk(self, text: str) -> None:
        if self._answers and text:
            if self._flow is None:
                self._flow = Wrapper(self.console)
            self._flow.write(clean(text))
            self._streamed = True

    def _message(self, message: Message) -> None:
        self._end_flow()
        if self._answers and not self._streamed and message.content.strip():
            self.console.print(clean(message.content.strip()))
        self._streamed = False

    def _use(self, call: ToolCall) -> None:
        self._call(call)
        self._begun.add(call.id)

    def _call(self, call: ToolCall) -> None:
        from rich.text import Text

        self._line("call", Text.assemble((clean(call.name), "bold"), " ", headline(call, _HEADLINE)), "cyan")
        self._latest = call.id

    def _result(self, data: tuple[ToolCall, ToolResult]) -> None:
        call, result = data
        if call.id not in self._begun:  # it was kept from running
            self._call(call)
        self._begun.discard(call.id)
        if result.success and call.name in _SILENT:
            return
        label = "" if self._latest == call.id else f"{call.name} {headline(call, _LABEL)}".rstrip() + ": "
        self._latest = None
        if result.success or result.output:
            self._block("", label + (result.output.strip("\n") or "done"), "dim")
        if not result.success:
            self._block("bad", label + (result.error or ""), "red")

    def _block(self, mark: str, text: str, style: str) -> None:
        shown, hidden = clip(text, self._result_lines)
        more = f"\n({hidden} more {'lines' if hidden > 1 else 'line'})" if hidden else ""
        self._line(mark, shown + more, style, 2)

    def _decision(self, event: InterceptorEvent) -> None:
        if event.seam == "tool_call" and event.decision != "replaced":
            return  # the result of the call says so
        what = f" {event.tool_name}" if event.tool_name else ""
        why = f": {one_line(event.reason)}" if event.reason else ""
        self.note(f"{event.seam}{what} {event.decision} by {event.interceptor}{why}", "yellow")

    def _boundary(self, event: CompactionEvent) -> None:
        self.note(f"conversation shortened from {event.before} to {event.after} messages")

    def _system(self, data: Message | str) -> None:
        self.note(one_line(data.content if isinstance(data, Message) else data, _HEADLINE))

    def _error(self, text: str) -> None:
        self._line("bad", text, "bold red")

    def _end(self, result: LoopResult) -> None:
        self._end_flow()
        self._begun.clear()
        self._streamed = False
        if not result.success and not result.reason.startswith("error"):
            self._line("bad", f"the run ended: {result.reason}", "bold red")

    def _line(self, mark: str, text: str | Text, style: str, indent: int = 0) -> None:
        """Print a mark and, beside it, text that keeps its left edge when it is wrapped."""
        from rich.text import Text

        self._end_flow()
        shown = Text(clean(text), style) if isinstance(text, str) else text
        print_beside(self.console, Text(f"{'':{indent}}{self._marks[mark]} ", style), shown)

    def _end_flow(self) -> None:
        if self._flow is not None:
            self._flow.close()
            self._flow = None


_METHODS: dict[Any, str] = {
    LoopEventType.ASSISTANT_CHUNK: "_chunk",
    LoopEventType.ASSISTANT: "_message",
    LoopEventType.TOOL_USE: "_use",
    LoopEventType.TOOL_RESULT: "_result",
    LoopEventType.INTERCEPTOR: "_decision",
    LoopEventType.COMPACT_BOUNDARY: "_boundary",
    LoopEventType.SYSTEM: "_system",
    LoopEventType.ERROR: "_error",
    LoopEventType.RESULT: "_end",
}
