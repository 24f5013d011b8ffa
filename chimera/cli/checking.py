"""Trying a plugin, in the process that `chimera plugins check` starts for it.

It is started as `python -m chimera.cli.checking PATH OUT`. What is found goes to OUT as it is found, one JSON list
`[kind, text]` a line, so that a plugin that ends or blocks the process leaves behind what was known until then. The
kinds are those of `Finding`.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import wraps
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from chimera.cli.surroundings import left_behind, surroundings
from chimera.core.decisions import SEAMS, Interceptor, Interceptors, interceptor_name
from chimera.core.loop_config import LoopConfig
from chimera.errors import MisuseError, PluginError
from chimera.events import InterceptorEvent
from chimera.plugins import PluginExtensionRegistry, PluginManager
from chimera.plugins.inventory import inventory
from chimera.testing import create_harness, default_test_tools

__all__ = ["SLOW_SECONDS", "Finding", "check"]

SLOW_SECONDS = 0.005
"""An interceptor that usually takes longer than this holds up every turn."""

Tell = Callable[["Finding", str], None]


class Finding(StrEnum):
    """What is told: what is being done next, what the plugin registers and decides, and what is wrong with it."""

    STAGE = "stage"
    REGISTERS = "registers"
    DECIDES = "decides"
    PROBLEM = "problem"
    END = "end"


def _calls(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments} for name, arguments in calls]}


_SCRIPT: list[Any] = [
    _calls(("think", {"thought": "Look around, then write a file."})),
    _calls(("bash", {"command": "echo hello"}), ("list_files", {})),
    _calls(("write_file", {"path": "notes.txt", "content": "one\ntwo\n"})),
    _calls(("read_file", {"path": "notes.txt"}), ("search", {"pattern": "two"})),
    _calls(("edit_file", {"path": "notes.txt", "old_string": "two", "new_string": "three"})),
    _calls(("bash", {"command": "rm -rf notes.txt && exit 3"})),
    _calls(("no_such_tool", {})),
    "Done.",
]


def check(path: Path, tell: Tell) -> None:
    """Load, run, swap and unload the plugin at `path`, and tell what there is to tell."""
    _run_script(Interceptors(), [])  # so that what Chimera itself needs is there before the plugin comes
    before = surroundings()
    manager = PluginManager()
    with _warnings_told(tell):
        if _try(tell, "it was being loaded", lambda: manager.load_file(path)):
            _tell_registrations(manager, tell)
            _try(tell, "a scripted conversation ran under it", lambda: _tell_run(manager, tell))
            (name,) = manager.plugins
            _try(tell, "it was being swapped for itself", lambda: _swap(manager, name, tell))
            _try(tell, "it was being unloaded", lambda: manager.unload(name))
    tell(Finding.STAGE, "what it left behind was looked for")
    for what in left_behind(before):
        tell(Finding.PROBLEM, f"left behind: {what}")
    for item in inventory(manager):
        tell(Finding.PROBLEM, f"left behind: {item.kind} {item.label}")


def _try(tell: Tell, stage: str, action: Callable[[], object]) -> bool:
    tell(Finding.STAGE, stage)
    try:
        action()
    except MisuseError as exc:
        tell(Finding.PROBLEM, str(exc))
        return False
    return True


def _tell_registrations(manager: PluginManager, tell: Tell) -> None:
    for item in inventory(manager):
        if item.kind != "plugin":
            tell(Finding.REGISTERS, f"{item.kind:<17} {item.label}")


def _swap(manager: PluginManager, name: str, tell: Tell) -> None:
    before = [(item.kind, item.label) for item in inventory(manager)]
    for note in manager.swap(name).notes:
        tell(Finding.PROBLEM, f"on a swap, {note}")
    if [(item.kind, item.label) for item in inventory(manager)] != before:
        tell(Finding.PROBLEM, "swapped for itself, it registers something else than before")


def _tell_run(manager: PluginManager, tell: Tell) -> None:
    times: dict[str, list[float]] = {}
    registered = PluginExtensionRegistry.get_all_interceptors()
    timed = Interceptors(*([_timed(fn, seam, times) for fn in getattr(registered, seam)] for seam in SEAMS))
    for kind, text in dict.fromkeys(map(_decision, _run_script(timed, manager.tools))):
        tell(kind, text)
    for label, taken in times.items():
        if median(taken) > SLOW_SECONDS:
            tell(Finding.PROBLEM, f"slow: {label} takes about {median(taken) * 1000:.0f} ms a call")


def _decision(event: InterceptorEvent) -> tuple[Finding, str]:
    if event.decision == "error":
        return Finding.PROBLEM, f"{event.seam}: {event.reason}"
    tool = f" {event.tool_name}" if event.tool_name else ""
    reason = f": {event.reason}" if event.reason else ""
    return Finding.DECIDES, f"{event.seam}: {event.decision}{tool}{reason}"


def _run_script(interceptors: Interceptors, tools: list[Any]) -> list[InterceptorEvent]:
    """Run the script twice in one conversation and return the decisions."""
    config = LoopConfig(interceptors=interceptors, yolo_mode=True)
    with TemporaryDirectory(prefix="chimera-check-") as folder:
        held = [*default_test_tools(folder), *tools]
        harness = create_harness([*_SCRIPT, *_SCRIPT], config=config, tools=held, workspace=folder)
        runs = [harness.run("Look around.") for _ in range(2)]
    for run in runs:
        if run.reason.startswith("error:"):
            raise PluginError(f"the scripted conversation failed: {run.reason.removeprefix('error: ')}")
    return [event for run in runs for event in run.decisions]


def _timed(fn: Interceptor, seam: str, times: dict[str, list[float]]) -> Interceptor:
    taken = times.setdefault(f"{seam} {interceptor_name(fn)}", [])

    @wraps(fn)
    def call(*args: Any) -> Any:
        started = perf_counter()
        try:
            return fn(*args)
        finally:
            taken.append(perf_counter() - started)

    return call


@contextmanager
def _warnings_told(tell: Tell) -> Iterator[None]:
    """Tell of warnings, such as that of a coroutine that nobody awaited."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
        gc.collect()
    for text in dict.fromkeys(f"{item.category.__name__}: {item.message}" for item in caught):
        tell(Finding.PROBLEM, text)


def _main(path: str, out: str) -> None:
    with Path(out).open("w", encoding="utf-8") as file:

        def tell(kind: Finding, text: str) -> None:
            file.write(json.dumps([kind, text]) + "\n")
            file.flush()

        check(Path(path), tell)
        tell(Finding.END, "")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # a thread that the plugin left behind must not keep the process from ending


if __name__ == "__main__":
    _main(*sys.argv[1:])
