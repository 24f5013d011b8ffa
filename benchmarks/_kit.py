"""What the measurements share: a scripted model, the same work without an engine, clocks, and tables.

Time is the processor time of the measuring thread where nothing is waited for, so that a busy machine disturbs little,
and a ratio is always made of two things measured in turns in one process.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from functools import cache
from statistics import median
from typing import Any, NamedTuple

from chimera.core import BaseTool, Context, InterceptDecision, Interceptors, LoopConfig
from chimera.providers.base import Response
from chimera.types import Message, ToolCall, ToolResult

__all__ = [
    "POLICY",
    "Echo",
    "Row",
    "Scripted",
    "config",
    "conversation",
    "floor",
    "in_turns",
    "report",
    "seconds",
]


class Row(NamedTuple):
    """One line of a table: what was measured, the value as text, and the limit where there is one."""

    what: str
    measured: str
    limit: str = ""
    kept: bool | None = None


def report(title: str, rows: Iterable[Row]) -> None:
    """Print a Markdown table."""
    print(f"### {title}\n\n| what | measured | limit | kept |\n| --- | --- | --- | --- |")
    for row in rows:
        kept = "" if row.kept is None else "yes" if row.kept else "**no**"
        print(f"| {row.what} | {row.measured} | {row.limit} | {kept} |", flush=True)
    print()


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time that this thread spends on `work`."""
    gc.collect()
    start = time.thread_time()
    work()
    return time.thread_time() - start


def in_turns(*works: Callable[[], float], rounds: int) -> list[float]:
    """Call all `works` again and again, in turns, and return the median of what each returned."""
    found = [[work() for work in works] for _ in range(rounds + 1)]
    return [median(values) for values in zip(*found[1:], strict=True)]


@cache
def _script(steps: int, output: str) -> tuple[Response, ...]:
    return tuple(Response("", (ToolCall(f"c{i}", "echo", {"text": output}),)) for i in range(steps))


class Scripted:
    """A model that calls `echo` in each of its first `steps` answers and then says `text`.

    The answers are made beforehand, so that making them is no part of what is measured. `calls` counts the requests.
    """

    model_name = "scripted"

    def __init__(self, steps: int, text: str = "done", output: str = "a") -> None:
        self.calls = 0
        self._text = text
        self._script = _script(steps, output)

    def complete(self, messages: list[Message], tools: Any = None, **kwargs: Any) -> Response:
        number, self.calls = self.calls, self.calls + 1
        return self._script[number] if number < len(self._script) else Response(self._text)

    async def async_complete(self, messages: list[Message], tools: Any = None, **kwargs: Any) -> Response:
        return self.complete(messages, tools)


class Echo(BaseTool):
    """Answers with its argument, on the event loop as well as off it."""

    name = "echo"
    parameters = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}  # noqa: RUF012
    effect = "read"

    def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        return ToolResult(args["text"])

    async def async_execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        return ToolResult(args["text"])


def _gate(call: ToolCall) -> InterceptDecision | None:
    return InterceptDecision.block("never") if call.name == "rm" else None


def _scrub(_call: ToolCall, result: ToolResult) -> InterceptDecision | None:
    if "secret" in result.output:
        return InterceptDecision.replace(ToolResult(result.output.replace("secret", "[redacted]")))
    return None


def _watch(_messages: list[Message]) -> None:
    return None


POLICY = Interceptors(tool_call=[_gate], tool_result=[_scrub], context=[_watch])
"""A gate, a result scrub, and a context watcher that has nothing to do."""


def config(policy: Interceptors | None) -> LoopConfig:
    return LoopConfig(interceptors=policy, yolo_mode=True)


def conversation() -> Context:
    return Context("You are a helper.", [Message.user("Go.")])


def _echo(args: dict[str, Any]) -> ToolResult:
    return ToolResult(args["text"])


def _refusal(call: ToolCall) -> str | None:
    return "never" if call.name == "rm" else None


def _scrubbed(result: ToolResult) -> ToolResult | None:
    return ToolResult(result.output.replace("secret", "[redacted]")) if "secret" in result.output else None


_TOOLS = {"echo": _echo}


def floor(steps: int, *, policy: bool, output: str = "a") -> Callable[[], float]:
    """Return the measurement of the same work in one plain loop over plain functions: seconds a step.

    It makes the same values (messages, results) and keeps the same conversation; there is nothing around it.
    """

    def measured() -> float:
        model, messages = Scripted(steps, output=output), [Message.system("You are a helper."), Message.user("Go.")]
        return seconds(lambda: (_plain_with_policy if policy else _plain)(model, messages)) / steps

    return measured


def _plain(model: Scripted, messages: list[Message]) -> None:
    while True:
        answer = model.complete(messages)
        messages.append(Message.assistant(answer.content, answer.tool_calls))
        if not answer.tool_calls:
            return
        for call in answer.tool_calls:
            result = _TOOLS[call.name](call.arguments)
            messages.append(Message.tool(call.id, result.output))


def _plain_with_policy(model: Scripted, messages: list[Message]) -> None:
    while True:
        _watch(list(messages))
        answer = model.complete(messages)
        messages.append(Message.assistant(answer.content, answer.tool_calls))
        if not answer.tool_calls:
            return
        for call in answer.tool_calls:
            reason = _refusal(call)
            result = _TOOLS[call.name](call.arguments) if reason is None else ToolResult("", reason)
            messages.append(Message.tool(call.id, result.error or (_scrubbed(result) or result).output))
