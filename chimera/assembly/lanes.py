"""Lanes: several agents at one task at once, each in a copy of the project of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from chimera.assembly.driver import AgentDriver
from chimera.assembly.edits import Edit
from chimera.assembly.loop_adapter import lane_of
from chimera.assembly.scoreboard import Check, LaneScore, ranked
from chimera.assembly.worktrees import Workspace, Worktrees
from chimera.core.loop_events import LoopEvent, LoopEventType, LoopResult
from chimera.errors import ConfigError, MisuseError, OutsideError
from chimera.threads import in_thread

__all__ = ["Check", "Edit", "Lane", "LaneEvent", "LaneScore", "LaneSpec", "Race", "make_room", "parse_lanes"]

_THREADS = 8  # for one lane: calls side by side, a model, hooks
_CHECK_SECONDS = 900.0
_CHECK_OUTPUT = 20_000


class LaneSpec(NamedTuple):
    """Which model runs in a lane, and under which loop; None for the default one."""

    model: str
    loop: str | None = None

    def __str__(self) -> str:
        return f"{self.model}:{self.loop}" if self.loop else self.model


class LaneEvent(NamedTuple):
    """What happened in a lane. The last event of each lane is its one `result`."""

    lane: str
    event: LoopEvent


def make_room(lanes: int) -> None:
    """Give the running event loop threads enough for so many lanes: tools and models that block take one each.

    For a program whose loop runs nothing but a race. Without it lanes wait for each other on a small machine.
    """
    pool = ThreadPoolExecutor(_THREADS * max(1, lanes), "chimera-race")
    asyncio.get_running_loop().set_default_executor(pool)


def parse_lanes(text: str) -> list[LaneSpec]:
    """Return the lanes of a list such as `a,b:reflexion,llama3:8b`: models, each with a loop or without.

    Only the name of a loop that there is, after the last colon, is a loop. Raises `ConfigError` when there is no lane
    in the list, or an empty one.
    """
    specs = [LaneSpec(*lane_of(part.strip())) for part in text.split(",")]
    if not all(spec.model for spec in specs):
        raise ConfigError(f"lanes are written as MODEL or MODEL:LOOP with commas between them, not {text!r}")
    return specs


class Lane:
    """One lane of a race: its name, what runs in it, its copy of the project, its agent and its score."""

    def __init__(self, name: str, spec: LaneSpec, workspace: Workspace) -> None:
        self.name, self.spec = name, spec
        self.workspace = workspace
        self.agent: Any = None
        self.score = LaneScore(name, spec.model, spec.loop)
        self.cancelled = False

    @property
    def root(self) -> Path:
        """The project folder that the lane works in."""
        return self.workspace.root

    def cancel(self) -> None:
        """End this lane; the others go on. From any thread or signal handler."""
        self.cancelled = True
        if self.agent is not None:
            self.agent.cancel()


MakeAgent = Callable[[Lane], Any]


class Race:
    """Runs one task in several lanes at once, and lets one of them be applied to the project.

    `make_agent(lane)` returns the agent of a lane, an `AgentDriver` or something with its `send` and `cancel`, that
    works in `lane.root`; by default one with the lane's model and loop and nothing else. Chains of loaded plugins hold
    in every lane. `check` is a shell command that is run in each lane when its agent is done, for at most
    `check_seconds`; exit code 0 passes. `folder` is where the copies lie, see `Worktrees`.

    Use it as a context manager: the copies are made when it is entered and removed when it is left. What does not
    belong into a lane (files that are ignored, the repository's branches, the rest of the machine) is not copied, and a
    lane is kept from it by its permissions alone.
    """

    def __init__(
        self,
        task: str,
        specs: Sequence[LaneSpec],
        project_dir: str | Path | None = None,
        *,
        make_agent: MakeAgent | None = None,
        check: str | None = None,
        check_seconds: float = _CHECK_SECONDS,
        folder: Path | None = None,
    ) -> None:
        if not specs:
            raise MisuseError("a race needs at least one lane")
        self.task, self.check = task, check
        self.project = Path(project_dir or ".").expanduser().resolve()
        if not self.project.is_dir():
            raise MisuseError(f"the project folder {str(self.project)!r} does not exist")
        self.lanes: dict[str, Lane] = {}
        self._specs = list(specs)
        self._make_agent = make_agent or _default_agent
        self._check_seconds = check_seconds
        self._folder = folder
        self._trees: Worktrees | None = None
        self._begun = False

    def open(self) -> None:
        """Copy the project once for each lane, and make the agents. Takes its time: it is work for a thread.

        Raises `OutsideError` when the copies cannot be made, and whatever `make_agent` raises; nothing is left then.
        """
        if self._trees is not None:
            raise MisuseError("the race is open already")
        trees = self._trees = Worktrees(self.project, self._folder)
        try:
            for name, spec in zip(_names(self._specs), self._specs, strict=True):
                lane = self.lanes[name] = Lane(name, spec, trees.add())
                lane.agent = self._make_agent(lane)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Cancel what runs and remove the copies. Closing twice does nothing."""
        self.cancel()
        trees, self._trees = self._trees, None
        if trees is not None:
            for lane in self.lanes.values():
                close = getattr(lane.agent, "close", None)
                if callable(close):
                    close()
            trees.close()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await in_thread(self.open)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        await in_thread(self.close)

    def __aiter__(self) -> AsyncGenerator[LaneEvent, None]:
        return self.events()

    async def events(self) -> AsyncGenerator[LaneEvent, None]:
        """Run all lanes and yield what happens in them, until each has had its `result`. A race runs once.

        What one lane raises is its `error` and its result, and no concern of the others.
        """
        if self._trees is None or self._begun:
            raise MisuseError("a race runs once, while it is open")
        self._begun = True
        queue: asyncio.Queue[LaneEvent | None] = asyncio.Queue()
        tasks = [asyncio.create_task(self._run(lane, queue)) for lane in self.lanes.values()]
        try:
            left = len(tasks)
            while left:
                item = await queue.get()
                if item is None:
                    left -= 1
                else:
                    yield item
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def cancel(self, lane: str | None = None) -> None:
        """Cancel one lane, or all of them. From any thread or signal handler."""
        for each in self.lanes.values() if lane is None else [self._lane(lane)]:
            each.cancel()

    @property
    def scoreboard(self) -> list[LaneScore]:
        """How the lanes stand, the best first."""
        return ranked(lane.score for lane in self.lanes.values())

    @property
    def best(self) -> str | None:
        """The name of the best of the lanes that succeeded; None when none did."""
        leader = next(iter(self.scoreboard), None)
        return leader.name if leader is not None and leader.won else None

    def edits(self, lane: str) -> list[Edit]:
        """Return what a lane has done to the project, file by file."""
        return self._lane(lane).workspace.edits()

    def diff(self, lane: str) -> str:
        """Return what a lane has done to the project in unified form; empty when it did nothing."""
        return self._lane(lane).workspace.diff()

    def apply(self, lane: str) -> list[Edit]:
        """Do to the project what a lane that has ended did to its copy, all of it or none, and return what that was.

        Raises `OutsideError` when the project changed since the start, when the lane still runs, or when a file cannot
        be written. The index and the branches of git stay as they are.
        """
        chosen = self._lane(lane)
        if self._trees is None:
            raise MisuseError("the race is closed")
        if not chosen.score.ended:
            raise OutsideError(f"the lane {lane} has not ended yet")
        return self._trees.apply(chosen.workspace)

    def _lane(self, name: str) -> Lane:
        try:
            return self.lanes[name]
        except KeyError:
            raise ConfigError(f"there is no lane {name!r}; there are {', '.join(self.lanes)}") from None

    async def _run(self, lane: Lane, queue: asyncio.Queue[LaneEvent | None]) -> None:
        def tell(kind: LoopEventType, data: Any) -> None:
            event = LoopEvent(kind, data, lane.score.steps)
            lane.score.see(event)
            queue.put_nowait(LaneEvent(lane.name, event))

        try:
            result = await self._work(lane, tell)
            await self._judge(lane, result, tell)
        except asyncio.CancelledError:
            lane.cancel()
            lane.score.end(LoopResult("aborted"))
            raise
        except Exception as problem:
            text = f"{type(problem).__name__}: {problem}"
            tell(LoopEventType.ERROR, text)
            tell(LoopEventType.RESULT, LoopResult(f"error: {text}"))
        finally:
            queue.put_nowait(None)

    async def _work(self, lane: Lane, tell: Callable[[LoopEventType, Any], None]) -> LoopResult:
        """Let the agent do the task. Its result is not told yet: the check comes first."""
        lane.score.begin()
        if lane.cancelled:
            return LoopResult("aborted")
        result: LoopResult | None = None
        turn = lane.agent.send(self.task)
        try:
            async for event in turn:
                if event.type is LoopEventType.RESULT:
                    result = event.data
                else:
                    lane.score.steps = max(lane.score.steps, event.turn)
                    tell(event.type, event.data)
                if lane.cancelled:
                    lane.agent.cancel()
        finally:
            await turn.aclose()
        if result is None:
            raise OutsideError("the agent ended without a result")
        return result

    async def _judge(self, lane: Lane, result: LoopResult, tell: Callable[[LoopEventType, Any], None]) -> None:
        if self.check is not None and not lane.cancelled:
            lane.score.state = "checking"
            tell(LoopEventType.SYSTEM, f"checking: {self.check}")
            check = lane.score.check = await self._checked(lane, self.check)
            tell(LoopEventType.SYSTEM, f"the check {check}")
        try:
            lane.score.files = len(await in_thread(lane.workspace.edits))
        except OutsideError as problem:
            tell(LoopEventType.ERROR, str(problem))
            result = replace(result, reason=f"error: {problem}")
        tell(LoopEventType.RESULT, result)

    async def _checked(self, lane: Lane, command: str) -> Check:
        from chimera.tools._process import run_process

        abandoned = False
        try:
            ended = await in_thread(
                run_process,
                ["bash", "-c", "--", command],
                cwd=lane.root,
                timeout=self._check_seconds,
                stopped=lambda: abandoned or lane.cancelled,
                limit=_CHECK_OUTPUT,
            )
        except OSError as problem:
            return Check(False, None, f"it cannot be started: {problem}")
        finally:
            abandoned = True
        timed_out = ended.cause != "exit"
        return Check(ended.exit_code == 0 and not timed_out, None if timed_out else ended.exit_code, ended.output)


def _names(specs: Sequence[LaneSpec]) -> list[str]:
    """Return a name for each lane: what it is written as, with a number where that is there already."""
    names: list[str] = []
    for spec in specs:
        name, number = str(spec), 1
        while name in names:
            number += 1
            name = f"{spec}#{number}"
        names.append(name)
    return names


def _default_agent(lane: Lane) -> AgentDriver:
    return AgentDriver(lane.spec.model, lane.root, interactive=False, loop=lane.spec.loop, lane=lane.name)
