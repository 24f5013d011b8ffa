"""Record which seams see what, for every loop in every situation, from the marks that they leave."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from chimera.assembly import CodingAgent
from chimera.assembly.loop_adapter import REAL_LOOPS, adapt_loop
from chimera.compaction.base import SummaryRequest
from chimera.core.agent_loop import AgentLoop, stream_events
from chimera.core.loop import ReAct, new_run
from chimera.core.loop_config import LoopConfig
from chimera.core.loop_events import LoopEvent, LoopResult
from chimera.core.tool import BaseTool
from chimera.permissions.base import PermissionAction, PermissionPolicy
from chimera.plugins import ComponentRegistry
from chimera.providers.faux import FauxProvider
from chimera.types import Message, ToolResult
from tests.core.loops.marks import marking, seen_by_body, seen_by_request, tool_messages
from tests.core.loops.scenes import DRIVES, SCENES, Probe, Scene, approve_all, calls, conversation

__all__ = ["LOOPS", "SITUATIONS", "Measured", "Record", "Seen", "Subject", "cell", "measured"]

Seen = frozenset[str]
Measured = dict[str, dict[str, "Seen | None"]]


@dataclass
class Record:
    """For everything that happened in a run: which seams saw each envelope on the wire, and each body entered."""

    envelopes: list[Seen] = field(default_factory=list)
    internal: list[Seen] = field(default_factory=list)
    summaries: list[Seen] = field(default_factory=list)
    bodies: list[Seen] = field(default_factory=list)

    def take_requests(self, provider: FauxProvider) -> None:
        for request in provider.requests:
            seen = frozenset(seen_by_request(request))
            if request.messages[0].content == SUMMARISE:
                self.summaries.append(seen)
            else:
                (self.internal if request.tools is None else self.envelopes).append(seen)

    def take_bodies(self, entered: Sequence[dict[str, Any]], answers: Sequence[str]) -> None:
        for arguments, answer in zip(entered, answers, strict=True):
            self.bodies.append(frozenset(seen_by_body(arguments, answer)))


@dataclass(frozen=True)
class Subject:
    """A loop under observation. `drives` are the ways to run it, each of which returns the conversation after."""

    name: str
    scene: Scene
    drives: Mapping[str, Callable[..., Sequence[Message]]]

    def run(self, drive: str, config: LoopConfig | None, provider: FauxProvider, tools: Sequence[Any]) -> list[Message]:
        """Run it in a project folder of its own."""
        with tempfile.TemporaryDirectory() as folder:
            return list(self.drives[drive](self.scene, config, provider, tools, Path(folder)))


Drive = Callable[[Scene, "LoopConfig | None", FauxProvider, Sequence[Any], Path], Sequence[Message]]


def _stepped(drive: str) -> Drive:
    def run(scene: Scene, config: Any, provider: Any, tools: Any, root: Path) -> Sequence[Message]:
        ran = DRIVES[drive](scene.make(config), provider, tools, root, approve_all)
        assert ran.result is not None, ran.raised
        assert ran.result.success, ran.result.error
        return ran.context.messages

    return run


def _streamed(scene: Scene, config: Any, provider: Any, tools: Any, root: Path) -> Sequence[Message]:
    loop, context = scene.make(config), conversation()
    run = new_run(loop, provider, tools, context, root, listening=True, streaming=True)
    return _messages(stream_events(run, lambda: loop.program(context), context))


def _lane(scene: Scene, config: Any, provider: Any, tools: Any, root: Path) -> Sequence[Message]:
    name = scene.make(None).name
    undo = None if name in REAL_LOOPS else ComponentRegistry().register_loop(name, scene.make)
    context = conversation()
    chains = config.interceptors if config is not None else None
    try:
        return _messages(
            adapt_loop(
                name,
                provider=provider,
                tools=tools,
                system_prompt=context.system,
                messages=context.messages,
                env=root,
                interceptors=chains,
            )
        )
    finally:
        if undo is not None:
            undo()


def _agent(stream: bool) -> Drive:
    def run(_scene: Scene, config: Any, provider: Any, tools: Any, root: Path) -> Sequence[Message]:
        context = conversation()
        events = AgentLoop().run(
            context.messages,
            tools=tools,
            provider=provider,
            system_prompt=context.system,
            config=config,
            env=root,
            stream=stream,
        )
        return _messages(events)

    return run


def _assembled(_scene: Scene, config: Any, provider: Any, tools: Any, root: Path) -> Sequence[Message]:
    chains = config.interceptors if config is not None else None
    agent = CodingAgent(provider=provider, project_dir=root, tools_override=tools, interceptors=chains, lane="left")
    return asyncio.run(agent.run("Do the task.")).messages


def _messages(events: AsyncIterator[LoopEvent]) -> Sequence[Message]:
    async def last() -> LoopResult:
        seen = [event async for event in events]
        result: LoopResult = seen[-1].data
        return result

    result = asyncio.run(last())
    assert result.success, result.reason
    return result.messages


_LOOP_DRIVES: dict[str, Drive] = {**{name: _stepped(name) for name in DRIVES}, "streamed": _streamed, "lane": _lane}
_AGENT_DRIVES: dict[str, Drive] = {"run": _agent(False), "streamed": _agent(True), "lane": _assembled}
_TITLES = {
    "react": "ReAct",
    "plan-execute": "PlanAndExecute",
    "reflexion": "Reflexion",
    "tot": "TreeOfThought",
    "plan-act": "PlanActLoop",
    "autonomous": "AutonomousLoop",
    "retry": "RetryLoop",
    "lint-feedback": "LintFeedbackLoop",
    "own": "a plugin's loop",
}
_agent_loop = Subject("AgentLoop", SCENES["react"], _AGENT_DRIVES)
_loops = [Subject(title, SCENES[name], _LOOP_DRIVES) for name, title in _TITLES.items()]
LOOPS: list[Subject] = [_loops[0], _agent_loop, *_loops[1:]]


def _plain(drive: str) -> Callable[[Subject], Record | None]:
    def record(subject: Subject) -> Record | None:
        if drive not in subject.drives:
            return None
        return _observed(subject, drive, LoopConfig(interceptors=marking(), yolo_mode=True))

    return record


def _observed(subject: Subject, drive: str, config: LoopConfig | None) -> Record:
    provider, probe, record = subject.scene.provider(), Probe(), Record()
    messages = subject.run(drive, config, provider, [probe])
    assert len(provider.requests) == len(subject.scene.script), "the script was written for all phases of the loop"
    record.take_requests(provider)
    record.take_bodies(probe.entered, tool_messages(messages))
    return record


class _Launch(BaseTool):
    """Runs something in its body."""

    name = "launch"

    def __init__(self, start: Callable[[], None]) -> None:
        self.start = start

    def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        self.start()
        return ToolResult("launched")


def _sub_agent(depth: int) -> Callable[[Subject], Record | None]:
    """The loop has no configuration of its own and runs `depth` levels below the one that carries the chains."""

    def record(subject: Subject) -> Record:
        records: list[Record] = []

        def innermost() -> None:
            records.append(_observed(subject, "run", None))

        def launch(level: int, config: LoopConfig | None) -> None:
            start = innermost if level == 1 else lambda: launch(level - 1, None)
            provider = FauxProvider([calls(name="launch"), "done"])
            ReAct(config=config).run(provider, [_Launch(start)], conversation())

        launch(depth, LoopConfig(interceptors=marking(), yolo_mode=True))
        return records[0]

    return record


class _AskForFirst(PermissionPolicy):
    def evaluate(self, tool_name: str, args: Mapping[str, Any]) -> PermissionAction:
        return PermissionAction.ASK if args.get("n") == 1 else PermissionAction.ALLOW


def _approved(n: int) -> Callable[[Subject], Record | None]:
    """Two calls a step: the first waits for approval, the second does not; what happens to the nth of them."""

    def record(subject: Subject) -> Record | None:
        if "iter_steps" not in subject.drives:
            return None
        both = calls({"n": 1}, {"n": 2})
        script = [both if isinstance(step, dict) else step for step in subject.scene.script]
        if subject.scene is SCENES["tot"]:
            script = [both, both, both, "done", "done", "done"]  # alike, so that nothing is evaluated
        config = LoopConfig(interceptors=marking(), permissions=_AskForFirst())
        probe, found = Probe(), Record()
        scene = replace(subject.scene, script=script)
        messages = replace(subject, scene=scene).run("iter_steps", config, scene.provider(), [probe])
        found.take_bodies(probe.entered, tool_messages(messages))
        found.bodies = found.bodies[n - 1 :: 2]
        return found

    return record


class _Outer(Probe):
    """Calls another tool, and keeps what that one answered."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[str] = []

    def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        self.answers.append(env.run_tool("inner", {"n": 1}).output)
        return super().execute(args, env)


def _nested(subject: Subject) -> Record:
    outer, inner, record = _Outer(), Probe("inner"), Record()
    drive = "iter_steps" if "iter_steps" in subject.drives else "run"
    config = LoopConfig(interceptors=marking(), yolo_mode=True)
    subject.run(drive, config, subject.scene.provider(), [outer, inner])
    record.take_bodies(inner.entered, outer.answers)
    return record


SUMMARISE = "Summarise."


class _SumUpOnce:
    """Asks for a summary before the first call, and puts it in front of the conversation."""

    name = "once"

    def __init__(self) -> None:
        self.asked = False

    def due(self, _messages: Sequence[Message], **_sizes: int) -> bool:
        return not self.asked

    def compact(self, messages: list[Message]) -> Iterator[SummaryRequest]:
        self.asked = True
        answer: Any = yield SummaryRequest((Message.system(SUMMARISE), *messages), {})
        return [Message.user(answer.content), *messages]  # type: ignore[return-value]


def _summary(subject: Subject) -> Record:
    """The summary is asked for right before the first call of the conversation."""
    script, drive = list(subject.scene.script), "iter_steps" if "iter_steps" in subject.drives else "run"
    at = 1 if subject.scene is SCENES["autonomous"] else 0
    script.insert(at, "It was about a task.")
    provider, record = FauxProvider(script), Record()
    config = LoopConfig(interceptors=marking(), yolo_mode=True, compaction=_SumUpOnce())
    subject.run(drive, config, provider, [Probe()])
    record.take_requests(provider)
    return Record(envelopes=record.summaries)


def _internal(subject: Subject) -> Record | None:
    found = _observed(subject, "run", LoopConfig(interceptors=marking(), yolo_mode=True))
    return Record(envelopes=found.internal) if found.internal else None


SITUATIONS: dict[str, Callable[[Subject], Record | None]] = {
    "`run`": _plain("run"),
    "`iter_steps`": _plain("iter_steps"),
    "`async_iter_steps`": _plain("async_iter_steps"),
    "streamed": _plain("streamed"),
    "lane": _plain("lane"),
    "sub-agent": _sub_agent(1),
    "sub-sub-agent": _sub_agent(2),
    "approved call": _approved(1),
    "call after it": _approved(2),
    "nested call": _nested,
    "summary": _summary,
    "internal": _internal,
}


def cell(record: Record) -> Seen:
    """Return the seams that saw what happened. Raises `AssertionError` when they did not see all of it alike."""
    kinds = [set(found) for found in (record.envelopes, record.bodies) if found]
    assert kinds, "nothing happened"
    for kind in kinds:
        assert len(kind) == 1, f"some were seen by {kind}"
    return frozenset().union(*(kind.pop() for kind in kinds))


def measured() -> Measured:
    """Return what each loop's cells are, by loop and situation; None where there is no such situation."""
    cells: Measured = {}
    for subject in LOOPS:
        row = {name: situation(subject) for name, situation in SITUATIONS.items()}
        cells[subject.name] = {name: None if record is None else cell(record) for name, record in row.items()}
    return cells
