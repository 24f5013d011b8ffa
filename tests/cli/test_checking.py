"""What `chimera plugins check` finds out, found out in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from chimera.cli.checking import Finding, check
from chimera.plugins import PluginExtensionRegistry

PLUGIN = """\
import threading
from chimera.core import tool
from chimera.core.interception import InterceptDecision
from chimera.plugins import BasePlugin, PluginExtensionRegistry

class Tried(BasePlugin):
    name = "tried"

    def register_interceptors(self, registry):
        registry.register_interceptor({seam!r}, self.decide)

    def decide(self, *args):
        {deciding}
{more}
"""


def found(
    folder: Path, *, seam: str = "tool_call", deciding: str = "return None", more: str = ""
) -> dict[str, list[str]]:
    """Check a plugin and return what was told, by kind."""
    path = folder / "tried.py"
    lines = "".join(f"    {line}\n" for line in more.splitlines())
    path.write_text(PLUGIN.format(seam=seam, deciding=deciding, more=lines))
    told: dict[str, list[str]] = {kind: [] for kind in Finding}
    check(path, lambda kind, text: told[kind].append(text))
    assert PluginExtensionRegistry.get_all_interceptors().tool_call == []
    return told


def problems(folder: Path, **parts: str) -> list[str]:
    return found(folder, **parts)[Finding.PROBLEM]


def test_a_sound_plugin_has_no_problems(tmp_path: Path) -> None:
    told = found(tmp_path, deciding="return InterceptDecision.block('no') if args[0].name == 'bash' else None")
    assert told[Finding.PROBLEM] == []
    assert told[Finding.REGISTERS] == ["tool_call         tried: Tried.decide"]
    assert told[Finding.DECIDES] == ["tool_call: blocked bash: no"]
    assert len(told[Finding.STAGE]) == 5


def test_components_are_listed(tmp_path: Path) -> None:
    more = "def register_commands(self, registry):\n    registry.register_command('now', print)"
    told = found(tmp_path, more=more)
    assert told[Finding.PROBLEM] == []
    assert told[Finding.REGISTERS] == ["tool_call         tried: Tried.decide", "command           now"]


def test_a_plugin_that_does_not_load_is_not_run(tmp_path: Path) -> None:
    told = found(tmp_path, seam="tool_cal")
    (problem,) = told[Finding.PROBLEM]
    assert "tried.py, line 10: ValueError: unknown interceptor seam 'tool_cal'" in problem
    assert told[Finding.REGISTERS] == []


def test_crashes_and_junk_are_problems(tmp_path: Path) -> None:
    assert problems(tmp_path, deciding="return 1 / 0") == [
        "tool_call: interceptor error: Tried.decide: ZeroDivisionError: division by zero"
    ]
    (junk,) = problems(tmp_path, seam="context", deciding="return True")
    assert "an interceptor returns an InterceptDecision or None, not bool" in junk


@pytest.mark.parametrize(
    ("deciding", "more", "words"),
    [
        ("return self.later()", "async def later(self):\n    return None", "None, not coroutine"),
        ("self.later()", "async def later(self):\n    return None", "'Tried.later' was never awaited"),
        ("return None", "async def deactivate(self):\n    return None", "deactivate is asynchronous"),
    ],
)
def test_what_nobody_awaits_is_a_problem(tmp_path: Path, deciding: str, more: str, words: str) -> None:
    assert words in "\n".join(problems(tmp_path, deciding=deciding, more=more))


def test_asynchronous_interceptors_are_refused(tmp_path: Path) -> None:
    more = "async def later(self, *args):\n    return None\ndecide = later"
    assert "is asynchronous" in problems(tmp_path, more=more)[0]


def test_slow_interceptors_are_problems(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, deciding="import time; time.sleep(0.02)")
    assert problem.startswith("slow: tool_call Tried.decide takes about 2")


def test_registrations_that_stay_are_problems(tmp_path: Path) -> None:
    more = (
        "def register_tools(self, registry):\n"
        "    bring = lambda: PluginExtensionRegistry.register_interceptor('context', len)\n"
        "    thread = threading.Thread(target=bring)\n    thread.start()\n    thread.join()"
    )
    assert "left behind: context len" in problems(tmp_path, more=more)


def test_a_swap_that_brings_something_else_or_warns_is_a_problem(tmp_path: Path) -> None:
    more = "def export_state(self):\n    return 1"
    assert problems(tmp_path, more=more) == ["on a swap, the new version takes no state and starts afresh"]
    counting = "def register_tools(self, registry):\n    registry.register_command(f'c{len(threading.left)}', print)\n"
    counting += "    threading.left.append(1)"
    import threading

    threading.left = []  # type: ignore[attr-defined]
    try:
        assert problems(tmp_path, more=counting) == ["swapped for itself, it registers something else than before"]
    finally:
        del threading.left  # type: ignore[attr-defined]


def test_a_deactivate_that_raises_is_a_problem(tmp_path: Path) -> None:
    told = problems(tmp_path, more="def deactivate(self):\n    raise OSError('held')")
    assert ["was not reloaded" in told[0], "is unloaded, but its deactivate raised" in told[1]] == [True, True]


def test_a_tool_that_takes_a_name_is_a_problem(tmp_path: Path) -> None:
    more = (
        "def register_tools(self, registry):\n    @tool(name='bash', effect='read')\n    def mine() -> str:\n"
        "        'Mine.'\n        return 'x'\n    registry.register_tool(mine)"
    )
    assert "two tools are named 'bash'" in problems(tmp_path, more=more)[0]
