"""The plugins that `chimera plugins new` writes, each with a test of its own."""

from __future__ import annotations

from chimera.cli.options import Kind

__all__ = ["skeleton"]

_GATE = '''\
"""__NAME__: keeps commands with certain words from running."""

from __future__ import annotations

from chimera.core.interception import InterceptDecision
from chimera.plugins import BasePlugin, ComponentRegistry
from chimera.types import ToolCall


class __CLASS__(BasePlugin):
    """Blocks shell commands that hold one of `words`."""

    def __init__(self, words: tuple[str, ...] = ("rm -rf", "git push --force")) -> None:
        self.words = tuple(words)

    @property
    def name(self) -> str:
        return "__NAME__"

    def register_interceptors(self, registry: ComponentRegistry) -> None:
        registry.register_interceptor("tool_call", self.gate)

    def gate(self, call: ToolCall) -> InterceptDecision | None:
        if call.name != "bash":
            return None
        command = str(call.arguments.get("command", ""))
        word = next((word for word in self.words if word in command), None)
        return InterceptDecision.block(f"__NAME__: {word!r} is not allowed here") if word else None
'''

_GATE_TESTS = """\
def test_a_forbidden_command_does_not_run() -> None:
    done = run("touch kept; rm -rf kept")
    assert done.tool_results[0].error == "Blocked by interceptor: __NAME__: 'rm -rf' is not allowed here"
    assert done.files_created == []


def test_other_commands_run() -> None:
    done = run("touch kept")
    assert done.tool_results[0].error is None
    assert done.files_created == ["kept"]
"""

_REDACTOR = '''\
"""__NAME__: takes a pattern out of what tools answer, before the model or anybody else reads it."""

from __future__ import annotations

import re

from chimera.core.interception import InterceptDecision
from chimera.plugins import BasePlugin, ComponentRegistry
from chimera.types import ToolCall, ToolResult


class __CLASS__(BasePlugin):
    """Replaces `pattern`, a regular expression, in the output and the error of every tool."""

    def __init__(self, pattern: str = r"tok-[0-9a-f]{8,}", replacement: str = "[redacted]") -> None:
        self.pattern = re.compile(pattern)
        self.replacement = replacement

    @property
    def name(self) -> str:
        return "__NAME__"

    def register_interceptors(self, registry: ComponentRegistry) -> None:
        registry.register_interceptor("tool_result", self.scrub)

    def scrub(self, call: ToolCall, result: ToolResult) -> InterceptDecision | None:
        output = self.clean(result.output)
        error = None if result.error is None else self.clean(result.error)
        if (output, error) == (result.output, result.error):
            return None
        return InterceptDecision.replace(ToolResult(output, error, result.metadata))

    def clean(self, text: str) -> str:
        return self.pattern.sub(self.replacement, text)
'''

_REDACTOR_TESTS = """\
def test_the_secret_does_not_reach_the_conversation() -> None:
    done = run("echo key=tok-; echo key=tok-0123abcd")
    assert done.tool_results[0].output.split() == ["key=tok-", "key=[redacted]"]
    results = [message.content for message in done.messages if message.role == "tool"]
    assert "0123abcd" not in "".join(results)


def test_errors_are_scrubbed_too() -> None:
    done = run("cat tok-0123abcd")
    assert done.tool_results[0].error
    assert "0123abcd" not in f"{done.tool_results[0]}"
"""

_REWRITER = '''\
"""__NAME__: runs another command than the model asked for."""

from __future__ import annotations

from chimera.core.interception import InterceptDecision
from chimera.plugins import BasePlugin, ComponentRegistry
from chimera.types import ToolCall


class __CLASS__(BasePlugin):
    """Puts `new` in the place of `old` at the beginning of shell commands.

    Permissions, events and the conversation all see the command that runs.
    """

    def __init__(self, old: str = "npm ", new: str = "pnpm ") -> None:
        if not old:
            raise ValueError("old is what commands begin with, and cannot be empty")
        self.old, self.new = old, new

    @property
    def name(self) -> str:
        return "__NAME__"

    def register_interceptors(self, registry: ComponentRegistry) -> None:
        registry.register_interceptor("tool_call", self.rewrite)

    def rewrite(self, call: ToolCall) -> InterceptDecision | None:
        command = call.arguments.get("command")
        if call.name != "bash" or not isinstance(command, str) or not command.startswith(self.old):
            return None
        arguments = {**call.arguments, "command": self.new + command.removeprefix(self.old)}
        return InterceptDecision.replace(ToolCall(call.id, call.name, arguments))
'''

_REWRITER_TESTS = """\
def test_the_other_command_runs_and_is_what_everybody_sees() -> None:
    done = run("false and more", old="false", new="echo instead")
    assert done.tool_calls[0].arguments == {"command": "echo instead and more"}
    assert "instead and more" in done.tool_results[0].output


def test_other_commands_stay_as_they_are() -> None:
    done = run("echo npm install")
    assert done.tool_calls[0].arguments == {"command": "echo npm install"}
    assert done.decisions == []
"""

_TEST = '''\
"""Try __NAME__ on the real agent loop, with real tools, a scripted model, and no network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chimera.plugins import PluginManager
from chimera.testing import HarnessRun, create_assembled_harness


def run(command: str, **options: Any) -> HarnessRun:
    """Let the model call bash with `command` under the plugin, and return what happened."""
    manager = PluginManager()
    manager.load_file(Path(__file__).parent, **options)
    script: list[Any] = [{"tool_calls": [{"name": "bash", "arguments": {"command": command}}]}, "Done."]
    try:
        with create_assembled_harness(script) as harness:
            return harness.run("go")
    finally:
        manager.unload("__NAME__")


'''

_PARTS = {
    Kind.GATE: (_GATE, _GATE_TESTS),
    Kind.REDACTOR: (_REDACTOR, _REDACTOR_TESTS),
    Kind.REWRITER: (_REWRITER, _REWRITER_TESTS),
}


def skeleton(name: str, kind: Kind) -> tuple[str, str]:
    """Return the source of a plugin called `name`, and that of its test."""
    plugin, tests = _PARTS[kind]
    words = "".join(part.capitalize() for part in name.replace("_", "-").split("-"))

    def filled(text: str) -> str:
        return text.replace("__NAME__", name).replace("__CLASS__", words)

    return filled(plugin), filled(_TEST + tests)
