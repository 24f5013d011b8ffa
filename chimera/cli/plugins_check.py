"""`chimera plugins check`: start the process that tries a plugin, and print what it found."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from chimera.cli.checking import Finding
from chimera.cli.exits import FAILED, OK
from chimera.cli.screen import Screen, make_console
from chimera.plugins.sources import source_at
from chimera.text import clean

__all__ = ["check_plugin"]

_SECONDS = 60.0
_TAIL = 2000


def check_plugin(path: Path, *, seconds: float = _SECONDS) -> int:
    """Try the plugin in the file or folder `path` and print what it does and what is wrong with it.

    It is given up after `seconds`. Raises `PluginError` when there is no plugin there.
    """
    source = source_at(path)
    with tempfile.TemporaryDirectory(prefix="chimera-check-") as folder:
        out, output = Path(folder) / "found", Path(folder) / "output"
        code = _run(path.absolute(), out, output, seconds)
        found = [(Finding(kind), text) for kind, text in map(json.loads, _lines(out))]
        _print(source.name, [*found, *_ending(found, code, output, seconds)])
    return FAILED if any(kind is Finding.PROBLEM for kind, _ in found) or found[-1:] != [_END] else OK


_END = (Finding.END, "")


def _run(path: Path, out: Path, output: Path, seconds: float) -> int | None:
    """Return the exit code, None when it did not end. What the plugin prints goes to a file that nobody waits for."""
    command = [sys.executable, "-P", "-m", "chimera.cli.checking", str(path), str(out)]
    with output.open("wb") as file:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the process and what it started, as far as it is still there."""
    kill_group = getattr(os, "killpg", None)
    try:
        if kill_group is not None:
            kill_group(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):  # nothing is left of it
        pass
    process.wait()


def _lines(out: Path) -> list[str]:
    """Return the whole lines; the last one may have been cut."""
    text = out.read_text(encoding="utf-8") if out.exists() else ""
    return text[: text.rfind("\n") + 1].splitlines()


def _ending(
    found: list[tuple[Finding, str]], code: int | None, output: Path, seconds: float
) -> list[tuple[Finding, str]]:
    """Return what is wrong with a process that did not come to its end."""
    if found[-1:] == [_END]:
        return []
    stage = next((text for kind, text in reversed(found) if kind is Finding.STAGE), "the check began")
    if code is None:
        return [(Finding.PROBLEM, f"it took more than {seconds:g} s; given up while {stage}")]
    said = output.read_text(encoding="utf-8", errors="replace").strip()[-_TAIL:]
    return [(Finding.PROBLEM, f"its process ended with code {code} while {stage}" + (f":\n{said}" if said else ""))]


def _print(name: str, found: list[tuple[Finding, str]]) -> None:
    screen = Screen(make_console())
    screen.console.print(clean(name), style="bold")
    for kind, nothing in ((Finding.REGISTERS, "nothing"), (Finding.DECIDES, "nothing in the scripted conversation")):
        screen.console.print(f"{kind}:")
        for text in [text for item, text in found if item is kind] or [nothing]:
            screen.console.print(f"  {clean(text)}", soft_wrap=True)
    problems = [text for kind, text in found if kind is Finding.PROBLEM]
    for text in problems:
        screen.verdict(clean(text), good=False)
    if not problems:
        screen.verdict("nothing is wrong with it", good=True)
