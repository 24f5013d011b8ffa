"""Where the person types."""

from __future__ import annotations

from typing import Any, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import OptionList, TextArea
from textual.widgets.option_list import Option

from chimera.text import one_line
from chimera.tui.commands import Completion
from chimera.tui.history import History

__all__ = ["Completions", "Prompt"]

_NEW_LINE = ("shift+enter", "ctrl+j", "alt+enter")


class Completions(OptionList, can_focus=False):
    """What the text before the cursor may become; hidden when there is nothing."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self._found: list[Completion] = []
        self.picked = False
        """True once the person has moved through the list: what is marked is then meant."""
        self.display = False

    def offer(self, found: list[Completion]) -> None:
        if found == self._found:
            return
        self._found, self.picked = found, False
        width = max((len(item.text) for item in found), default=0)
        self.clear_options()
        self.add_options(Option(f"{one_line(item.text):<{width}}  {item.about}".rstrip()) for item in found)
        self.display = bool(found)
        if found:
            self.highlighted = 0

    def step(self, places: int) -> None:
        """Mark another one."""
        self.picked = True
        self.action_cursor_down() if places > 0 else self.action_cursor_up()

    @property
    def chosen(self) -> Completion | None:
        if not self.display or self.highlighted is None:
            return None
        return self._found[self.highlighted]


class Prompt(TextArea):
    """Several lines of text. Enter sends them as they stand; the arrow keys leave the first and the last line for what
    was typed before; Tab takes the completion that is offered, and Enter one that the arrow keys have chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "take_completion", "complete", show=False),
        Binding("escape", "escape", "cancel", show=False, priority=False),
        Binding("ctrl+d", "leave", "leave", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
    ]

    class Sent(Message):
        """The person wants this text to be sent."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Escaped(Message):
        """Esc was pressed, and there was nothing to close here."""

    class Leaving(Message):
        """End of input on an empty line."""

    class Paged(Message):
        """The person wants to see what stands above or below."""

        def __init__(self, pages: int) -> None:
            super().__init__()
            self.pages = pages

    def __init__(self, history: History, completions: Completions, *, id: str | None = None) -> None:
        super().__init__(id=id, soft_wrap=True, compact=True, show_line_numbers=False, tab_behavior="focus")
        self._past = history
        self._completions = completions
        self.highlight_cursor_line = False
        self.recalled = ""
        """The text that was fetched from what was typed before: nothing is offered for it."""

    @property
    def before_cursor(self) -> str:
        """The text from its beginning to the cursor."""
        return self.get_text_range((0, 0), self.cursor_location)

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            self._enter()
        elif event.key in _NEW_LINE:
            event.stop()
            event.prevent_default()
            self.insert("\n")
        else:
            await super()._on_key(event)

    def action_take_completion(self) -> None:
        chosen = self._completions.chosen
        if chosen is None:
            self.screen.focus_next()
            return
        kept = self.before_cursor[: chosen.start].split("\n")
        self.replace(chosen.text, (len(kept) - 1, len(kept[-1])), self.cursor_location)

    def action_escape(self) -> None:
        if self._completions.display:
            self._completions.offer([])
        else:
            self.post_message(self.Escaped())

    def action_leave(self) -> None:
        if self.text:
            self.action_delete_right()
        else:
            self.post_message(self.Leaving())

    def action_page(self, pages: int) -> None:
        self.post_message(self.Paged(pages))

    def action_cursor_up(self, select: bool = False) -> None:
        if self._completions.display:
            self._completions.step(-1)
        elif select or self.cursor_location[0] > 0:
            super().action_cursor_up(select)
        else:
            self._recall(self._past.older(self.text))

    def action_cursor_down(self, select: bool = False) -> None:
        if self._completions.display:
            self._completions.step(1)
        elif select or self.cursor_location[0] < self.document.line_count - 1:
            super().action_cursor_down(select)
        else:
            self._recall(self._past.newer())

    def put(self, text: str) -> None:
        """Replace the text, with the cursor behind it."""
        self.text = text
        self.move_cursor(self.document.end)

    def _recall(self, text: str | None) -> None:
        if text is not None:
            self.recalled = text
            self.put(text)

    def _enter(self) -> None:
        chosen = self._completions.chosen if self._completions.picked else None
        typed = "" if chosen is None else self.before_cursor[chosen.start :]
        if chosen is not None and chosen.text.startswith(typed) and typed != chosen.text.rstrip():
            self.action_take_completion()
            return
        if self.before_cursor.endswith("\\"):
            self.action_delete_left()
            self.insert("\n")
            return
        text: Any = self.text.strip()
        if not text:
            return
        self._past.add(self.text.rstrip())
        self.text = ""
        self.post_message(self.Sent(text))
