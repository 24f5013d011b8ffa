"""Starting the app and leaving the terminal as it was."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

from chimera.text import clean, one_line
from chimera.tui.app import ChimeraApp
from chimera.tui.entries import Tone
from chimera.tui.lanes import Opened, OpenedAgent
from chimera.tui.racing import Course
from chimera.tui.state import AppState
from chimera.types import PendingApproval

__all__ = ["is_light", "run_race", "run_tui"]

_TERMINATED = 143
Ask = Callable[[PendingApproval], None]


def run_tui(
    open_session: Callable[[Ask], AbstractContextManager[OpenedAgent]], *, watches_plugins: bool = False
) -> int:
    """Run the app until the person leaves, and return the exit code.

    `open_session` assembles an agent whose questions go to the function that it is handed. With `watches_plugins`, its
    plugins are reloaded as their files change, and the transcript says so.
    """
    app = ChimeraApp(AppState())
    with open_session(app.lanes.asking.ask) as opened:
        if not watches_plugins:
            return _run(app, opened)
        with opened.manager.watch(lambda line: app.call_later(app.say, clean(line))):
            return _run(app, opened)


def run_race(opened: Opened, course: Course) -> int:
    """Run the app with the lanes of `course`: each task that the person gives starts a race."""
    return _run(ChimeraApp(AppState(), course=course), opened)


def _run(app: ChimeraApp, opened: Opened) -> int:
    app.theme = "textual-light" if is_light(os.environ.get("COLORFGBG", "")) else "textual-dark"
    app.lanes.attach(opened)
    log = _ScreenLog(app)
    logging.getLogger("chimera").addHandler(log)
    before = signal.signal(signal.SIGTERM, lambda *_: app.call_later(app.leave, _TERMINATED))
    try:
        code = app.run()
    finally:
        signal.signal(signal.SIGTERM, before)
        logging.getLogger("chimera").removeHandler(log)
        ended = app.lanes.close()
    if not ended:
        sys.stderr.write("chimera: a tool does not end; it is left behind\n")
    return 1 if code is None else code


class _ScreenLog(logging.Handler):
    """Shows warnings in the transcript: standard error is covered by the screen. Used from any thread."""

    def __init__(self, app: ChimeraApp) -> None:
        super().__init__(logging.WARNING)
        self._app = app

    def emit(self, record: logging.LogRecord) -> None:
        if self._app.is_running:
            self._app.call_later(self._app.say, one_line(record.getMessage(), 500), Tone.WARNING)


def is_light(colours: str) -> bool:
    """Tell whether the terminal says that its background is light: `foreground;background`, numbers of colours."""
    background = colours.rpartition(";")[2]
    return background in ("7", "15")
