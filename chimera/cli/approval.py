"""Asking the person at the terminal whether a call may run."""

from __future__ import annotations

import sys
import termios
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from chimera.cli.interrupts import raising
from chimera.cli.screen import Screen
from chimera.text import clean, clip, details, one_line
from chimera.types import PendingApproval

__all__ = ["Approver", "drop_typed_ahead"]

_VALUE_LINES = 30
_QUESTION = "Run it? [y]es, [n]o, [v]iew all, or say why not: "
_CHANGES = {"old_string": ("- ", "red"), "new_string": ("+ ", "green")}


class Approver:
    """Shows the effective call, in full, and waits for an answer. Only `y` and `yes` run it.

    `read_line` asks one question and returns the line that was typed; an end of input denies, and Ctrl-C denies and
    calls `cancel`.
    """

    def __init__(self, screen: Screen, read_line: Callable[[str], str], cancel: Callable[[], None]) -> None:
        self._screen = screen
        self._console = screen.console
        self._read_line = read_line
        self._cancel = cancel

    def __call__(self, approval: PendingApproval) -> None:
        """Ask until there is a decision, and write it into `approval`. Blocks meanwhile."""
        self._screen.pause()
        self._show(approval, _VALUE_LINES)
        while not approval.decided:
            answer = self._ask()
            if answer is None:
                approval.deny()
            elif answer.casefold() in ("y", "yes"):
                approval.approve()
            elif answer.casefold() in ("n", "no"):
                approval.deny()
            elif answer.casefold() in ("v", "view"):
                self._show(approval, None)
            elif answer:
                approval.deny(answer)

    def _ask(self) -> str | None:
        drop_typed_ahead()
        try:
            with raising():
                return self._read_line(_QUESTION).strip()
        except EOFError:
            self._console.print()
        except KeyboardInterrupt:
            self._console.print()
            self._cancel()
        return None

    def _show(self, approval: PendingApproval, limit: int | None) -> None:
        from rich.text import Text

        reason = f"  ({one_line(approval.reason)})" if approval.reason else ""
        self._console.print(Text.assemble(("? ", "bold yellow"), (clean(approval.tool_name), "bold"), (reason, "dim")))
        for line, style in _lines(approval.arguments, limit):
            self._console.print(Text(line, style), soft_wrap=True)


def drop_typed_ahead() -> None:
    """Forget what was typed before the question was shown: nobody has consented to what nobody has seen."""
    try:
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    except (termios.error, OSError, ValueError, AttributeError):
        return  # no terminal, so nobody who types


def _lines(arguments: Mapping[str, Any], limit: int | None) -> Iterator[tuple[str, str]]:
    """Yield the lines that show every argument, and their styles; `limit` lines of each value."""
    for key, value in details(arguments):
        shown, hidden = (value, 0) if limit is None else clip(value, limit)
        mark, style = _CHANGES.get(key, ("", ""))
        if "\n" not in shown and not mark:
            yield f"  {key}: {shown}", ""
            continue
        yield f"  {key}:", ""
        yield from ((f"    {mark}{line}", style) for line in shown.split("\n"))
        if hidden:
            yield f"    ({hidden} more lines; v shows them)", "yellow"
