"""Running a shell command in the project folder."""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chimera.core.tool import ToolEnv
from chimera.errors import ToolError
from chimera.threads import in_thread
from chimera.tools._base import OUTPUT_CHARS, ProjectTool, object_schema
from chimera.tools._paths import Project
from chimera.tools._process import Ended, run_process
from chimera.types import ToolResult

__all__ = ["BashTool"]

_DEFAULT_SECONDS = 120.0
_MAX_SECONDS = 3600


class BashTool(ProjectTool):
    """Runs a command in a fresh bash, standard input closed, both output streams merged in order.

    `environment` replaces the environment that commands see, by default that of this process.
    """

    name = "bash"
    description = (
        "Run a shell command with bash in the project folder and return what it prints (stdout and stderr together). "
        "Each call is a new shell: no directory, variable or function lasts. There is no input and no terminal. The "
        f"command and all that it started are killed after `timeout` seconds, {_DEFAULT_SECONDS:.0f} by default. Of a "
        "long output the middle is left out. A program that shall go on in the background needs its output in a file: "
        "`server > log.txt 2>&1 &`."
    )
    parameters = object_schema(
        {
            "command": {"type": "string", "minLength": 1, "description": "The command, as typed in a shell."},
            "timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": _MAX_SECONDS,
                "description": f"Seconds after which it is killed. Default {_DEFAULT_SECONDS:.0f}.",
            },
        },
        required=("command",),
    )
    effect = "command"

    def __init__(self, root: Path | None = None, *, environment: Mapping[str, str] | None = None) -> None:
        super().__init__(root)
        self.environment = environment

    def run(self, args: dict[str, Any], project: Project, env: ToolEnv | None) -> ToolResult:
        return self._run(args, project, env, threading.Event())

    async def async_execute(self, args: dict[str, Any], env: ToolEnv | None = None) -> ToolResult:
        """Like `execute`, in a thread; when the awaiting task is cancelled the command is killed too."""
        abandoned = threading.Event()
        try:
            return await in_thread(self._guarded, args, env, abandoned)
        finally:
            abandoned.set()

    def _guarded(self, args: dict[str, Any], env: ToolEnv | None, abandoned: threading.Event) -> ToolResult:
        try:
            return self._run(args, self.project(env), env, abandoned)
        except ToolError as error:
            return ToolResult("", str(error))

    def _run(
        self, args: dict[str, Any], project: Project, env: ToolEnv | None, abandoned: threading.Event
    ) -> ToolResult:
        timeout = float(args.get("timeout", _DEFAULT_SECONDS))

        def stopped() -> bool:
            return abandoned.is_set() or bool(getattr(env, "cancelled", False))

        if stopped():
            raise ToolError("cancelled before the command was started")
        try:
            ended = run_process(
                ["bash", "-c", "--", args["command"]],
                cwd=project.root,
                timeout=timeout,
                stopped=stopped,
                limit=OUTPUT_CHARS,
                environment=self.environment,
            )
        except FileNotFoundError as error:
            raise ToolError("bash is not installed or not on the PATH, so no command can run") from error
        except (OSError, ValueError) as error:  # too long for the system, or with a NUL character
            raise ToolError(f"the command cannot be started: {error}; put long input into a file") from error
        return _result(ended, timeout)


def _result(ended: Ended, timeout: float) -> ToolResult:
    metadata = {"exit_code": ended.exit_code, "cause": ended.cause, "left_running": ended.left_running}
    output = ended.output
    if ended.left_running and ended.cause == "exit":
        output += ("" if output.endswith("\n") or not output else "\n") + "[a background process goes on]"
    return ToolResult(output, _error(ended, timeout), metadata)


def _error(ended: Ended, timeout: float) -> str | None:
    if ended.cause == "timeout":
        return f"timed out after {timeout:g} seconds; the command and all that it started were killed"
    if ended.cause == "cancelled":
        return "cancelled; the command and all that it started were killed"
    if ended.exit_code < 0:
        return f"killed by signal {_signal_name(-ended.exit_code)}"
    return f"exit code {ended.exit_code}" if ended.exit_code else None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal has no name
        return str(number)
