"""`chimera code`: pick the front end."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

from chimera.cli.exits import USAGE
from chimera.cli.options import CodeOptions, Mode, Output
from chimera.cli.setup import open_session
from chimera.errors import ConfigError

__all__ = ["run_code"]


def run_code(options: CodeOptions, task: str | None) -> int:
    """Run one task, or a conversation when `task` is None, and return the exit code."""
    if task is None:
        return _converse(options)
    task = sys.stdin.read() if task == "-" else _readable(task)
    if not task.strip():
        raise ConfigError("the task is empty")
    if options.watches_plugins:
        raise ConfigError("--watch-plugins is for conversations: a task ends under the plugins that it began with")
    if options.lanes is not None:
        from chimera.cli.race import run_race

        return run_race(options, task)
    _require_race(options)
    from chimera.cli.oneshot import run_task

    with open_session(options, default_mode=Mode.ACCEPT_EDITS, streams=options.output is Output.STREAM_JSON) as session:
        return run_task(session, task, options.output)


def _readable(argument: str) -> str:
    """Return an argument of the command line without the halves of characters that stand for bytes of no text."""
    return argument.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _require_race(options: CodeOptions) -> None:
    for name, value in (("--check", options.check), ("--apply", options.apply)):
        if value is not None:
            raise ConfigError(f"{name} is for a race: name its lanes with --models")


def _converse(options: CodeOptions) -> int:
    if options.lanes is not None:
        return _race(options)
    _require_race(options)
    if options.output is not Output.TEXT:
        raise ConfigError(f"--output {options.output} needs a task: -p TASK")
    if not sys.stdin.isatty():
        with open_session(options, default_mode=Mode.ASK):  # says what else is missing, a model say
            pass
        sys.stderr.write("chimera: a conversation needs a terminal; give the task with -p TASK, or -p - to read it\n")
        return USAGE
    if not options.plain and _has_full_screen():
        from chimera.tui.start import run_tui

        return run_tui(
            lambda ask: open_session(options, default_mode=Mode.ASK, ask=ask), watches_plugins=options.watches_plugins
        )
    from chimera.cli.repl import run_repl

    return run_repl(options)


def _race(options: CodeOptions) -> int:
    if options.plain or not sys.stdin.isatty() or not _has_full_screen():
        raise ConfigError(
            "a race needs a task, -p TASK, or the full screen: a terminal and the extra chimera-harness[tui]"
        )
    if options.watches_plugins:
        raise ConfigError("--watch-plugins is for a conversation with one agent")
    from chimera.cli.race import race_on_screen

    return race_on_screen(options)


def _has_full_screen() -> bool:
    """Tell whether there is a terminal that can be drawn on, and what draws."""
    able = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    return able and find_spec("textual") is not None
