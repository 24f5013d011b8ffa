"""Harnesses: run a scripted model through the real loop with real tools in a real folder, and look at what happened."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from chimera.assembly.driver import AgentDriver
from chimera.core.agent_loop import stream_events
from chimera.core.context import Context
from chimera.core.loop import Loop, ReAct, new_run
from chimera.core.loop_config import LoopConfig
from chimera.core.loop_events import LoopEvent, LoopEventType, LoopResult
from chimera.core.tool import BaseTool
from chimera.providers.faux import FauxProvider
from chimera.threads import run_coroutine
from chimera.tools import default_tools
from chimera.types import Message, ToolCall, ToolResult

__all__ = ["Harness", "HarnessRun", "create_assembled_harness", "create_harness", "default_test_tools"]


Start = Callable[[str], AsyncIterator[LoopEvent]]


@dataclass(frozen=True, slots=True)
class HarnessRun:
    """What one run did. `error` is the reason of a run that did not complete; files are named from the workspace."""

    events: list[LoopEvent]
    result: LoopResult
    error: str | None
    files_created: list[str] = field(default_factory=list)
    files_modified: list[str] = field(default_factory=list)
    files_deleted: list[str] = field(default_factory=list)

    @property
    def reason(self) -> str:
        return self.result.reason

    @property
    def output(self) -> str:
        """The last text of the model."""
        return self.result.output

    @property
    def messages(self) -> list[Message]:
        """The durable conversation after the run, earlier runs included."""
        return self.result.messages

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The effective calls of this run, those that were refused included."""
        return [call for call, _ in self._answers()]

    @property
    def tool_results(self) -> list[ToolResult]:
        """The results of `tool_calls`, in the same order."""
        return [result for _, result in self._answers()]

    @property
    def decisions(self) -> list[Any]:
        """The `InterceptorEvent`s of this run."""
        return [event.data for event in self.events if event.type is LoopEventType.INTERCEPTOR]

    @property
    def usage(self) -> Mapping[str, int]:
        return self.result.usage

    @property
    def cost_usd(self) -> float:
        return self.result.cost_usd

    def __await__(self) -> Generator[Any, None, HarnessRun]:
        """A finished run may be awaited, so that `await harness.run(...)` reads well in asynchronous tests."""
        return self
        yield

    def _answers(self) -> list[tuple[ToolCall, ToolResult]]:
        return [event.data for event in self.events if event.type is LoopEventType.TOOL_RESULT]


class Harness:
    """A scripted model, a workspace, and an agent or a loop between them. Consecutive runs continue the conversation.

    `provider.requests` holds what a `FauxProvider` was sent: the wire as the model's service would see it. A workspace
    that the harness made is removed with it, by `close`, as a context manager, or when it is garbage.
    """

    def __init__(self, provider: Any, workspace: Path, start: Start, *, temporary: bool) -> None:
        self.provider = provider
        self.workspace = workspace
        self._start = start
        self._remove = weakref.finalize(self, shutil.rmtree, workspace, ignore_errors=True) if temporary else None

    def run(self, prompt: str) -> HarnessRun:
        """Run one turn to its end. Works below a running event loop too, which waits meanwhile."""
        return run_coroutine(self.arun(prompt))

    async def arun(self, prompt: str) -> HarnessRun:
        """`run` on the event loop."""
        before = _snapshot(self.workspace)
        events: list[LoopEvent] = []
        async for event in self._start(prompt):
            events.append(event)
        result: LoopResult = events[-1].data
        created, modified, deleted = _changes(before, _snapshot(self.workspace))
        return HarnessRun(events, result, result.error, created, modified, deleted)

    def close(self) -> None:
        """Remove the workspace when the harness made it."""
        if self._remove is not None:
            self._remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AssembledHarness(Harness):
    """A harness around an `AgentDriver`."""

    def __init__(self, driver: AgentDriver, provider: Any, workspace: Path, *, temporary: bool) -> None:
        super().__init__(provider, workspace, driver.send, temporary=temporary)
        self.driver = driver

    @property
    def agent(self) -> Any:
        return self.driver.agent


def create_harness(
    script: Any = None,
    *,
    loop: Loop | None = None,
    config: LoopConfig | None = None,
    provider: Any = None,
    tools: Iterable[BaseTool] | None = None,
    workspace: str | Path | None = None,
    system: str | None = None,
) -> Harness:
    """Return a harness around a bare loop, by default a `ReAct` under `config`.

    `script` is what the model says (see `FauxProvider`), unless a `provider` is given. `tools` default to
    `default_test_tools`. Without `workspace` a temporary folder is made.
    """
    folder = _workspace(workspace)
    model = provider if provider is not None else FauxProvider(script)
    used = loop or ReAct(config=config)
    held = list(default_test_tools(folder) if tools is None else tools)
    context = Context(system)

    def start(prompt: str) -> AsyncGenerator[LoopEvent, None]:
        run = new_run(used, model, held, context, folder, listening=True)
        return stream_events(run, lambda: used.program(context), context, None, [Message.user(prompt)])

    return Harness(model, folder, start, temporary=workspace is None)


def create_assembled_harness(
    script: Any = None,
    *,
    workspace: str | Path | None = None,
    provider: Any = None,
    tools: Iterable[BaseTool] | None = None,
    agent_kwargs: Mapping[str, Any] | None = None,
    stream: bool = False,
) -> AssembledHarness:
    """Return a harness around a whole assembled agent, with the chains of loaded plugins.

    `agent_kwargs` go to `CodingAgent`; the rest is as in `create_harness`.
    """
    folder = _workspace(workspace)
    model = provider if provider is not None else FauxProvider(script)
    held = list(default_test_tools(folder) if tools is None else tools)
    driver = AgentDriver(
        project_dir=folder, provider=model, tools_override=held, interactive=stream, **(agent_kwargs or {})
    )
    return AssembledHarness(driver, model, folder, temporary=workspace is None)


def default_test_tools(workspace: str | Path) -> list[BaseTool]:
    """Return the real default tools, rooted in `workspace`."""
    return default_tools(Path(workspace))


def _workspace(given: str | Path | None) -> Path:
    return Path(given or tempfile.mkdtemp(prefix="chimera-harness-")).resolve()


def _snapshot(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[list[str], list[str], list[str]]:
    created = sorted(set(after) - set(before))
    modified = sorted(name for name in set(after) & set(before) if after[name] != before[name])
    return created, modified, sorted(set(before) - set(after))
