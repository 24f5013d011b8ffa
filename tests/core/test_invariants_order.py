"""What comes before what: every verdict before any tool, one set of rules for a whole run, every provider call past the
seams."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from chimera.core.context import Context
from chimera.core.effects import VettedCall
from chimera.core.interception import InterceptDecision, Interceptors
from chimera.core.loop import ReAct
from chimera.core.loop_config import LoopConfig
from chimera.core.middleware import LoopMiddleware
from chimera.core.steering import MessageQueue
from chimera.core.tool import BaseTool
from chimera.errors import ContextOverflowError, MisuseError
from chimera.permissions.base import PermissionAction, PermissionPolicy
from chimera.providers.faux import FauxProvider
from chimera.types import Message, PendingApproval, ToolCall, ToolResult
from tests.core.driving import Note, Summarise, assert_acceptable, calling, drive, every_mode, held

allow, replace, block = InterceptDecision.allow, InterceptDecision.replace, InterceptDecision.block


class Timeline:
    """Notes what happens, in order, from whichever thread."""

    def __init__(self) -> None:
        self.entries: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, entry: str) -> None:
        with self._lock:
            self.entries.append(entry)


class Timed(BaseTool):
    """Notes when its body begins and ends."""

    def __init__(self, name: str, timeline: Timeline, *, safe: bool, awaits: bool = False) -> None:
        self.name, self.timeline = name, timeline
        self.is_concurrency_safe = safe
        if awaits:
            self.async_execute = self._awaiting  # type: ignore[method-assign]

    def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        self.timeline(f"begin {self.name}")
        time.sleep(0.002)
        self.timeline(f"end {self.name}")
        return ToolResult(self.name)

    async def _awaiting(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        self.timeline(f"begin {self.name}")
        await asyncio.sleep(0.002)
        self.timeline(f"end {self.name}")
        return ToolResult(self.name)


class AskAll(PermissionPolicy):
    def evaluate(self, tool_name: str, args: Any) -> PermissionAction:
        return PermissionAction.ASK


@every_mode
@pytest.mark.parametrize("safe", [False, True])
@pytest.mark.parametrize("awaits", [False, True])
def test_no_tool_begins_before_every_chain_and_every_answer_is_in(mode: str, safe: bool, awaits: bool) -> None:
    timeline = Timeline()

    def slow(tag: str) -> Any:
        def interceptor(call: ToolCall) -> None:
            time.sleep(0.001)
            timeline(f"{tag} {call.name}")

        return interceptor

    async def ask(approval: PendingApproval) -> bool:
        await asyncio.sleep(0.001)
        timeline(f"asked {approval.tool_name}")
        return approval.tool_name != "b"

    config = LoopConfig(AskAll(), Interceptors(tool_call=[slow("1"), slow("2")]), permission_callback=ask)
    tools = [Timed(name, timeline, safe=safe, awaits=awaits) for name in "abc"]
    ran = drive(mode, [calling("a", "b", "c"), "done"], tools, config)
    chains = [f"{tag} {name}" for name in "abc" for tag in "12"]
    assert timeline.entries[:9] == [*chains, "asked a", "asked b", "asked c"]
    assert sorted(timeline.entries[9:]) == ["begin a", "begin c", "end a", "end c"]
    assert ran.answers == ["a", "Permission denied: the user denied it", "c"]


@pytest.mark.parametrize("mode", ["async_iter_steps", "agent", "agent_streamed"])
def test_safe_neighbours_run_side_by_side_and_answers_come_in_call_order(mode: str) -> None:
    """Two tools that wait for each other: one after the other they would wait for ever."""
    first_is_here, second_is_here = asyncio.Event(), asyncio.Event()

    class Meets(BaseTool):
        is_concurrency_safe = True

        def __init__(self, name: str, mine: asyncio.Event, other: asyncio.Event) -> None:
            self.name, self.mine, self.other = name, mine, other

        async def async_execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
            self.mine.set()
            await asyncio.wait_for(self.other.wait(), 5)
            return ToolResult(self.name)

    tools = [Meets("a", first_is_here, second_is_here), Meets("b", second_is_here, first_is_here), Note("c")]
    ran = drive(mode, [calling("a", "b", "c"), "done"], tools, held())
    assert ran.answers == ["a", "b", "noted"]


@every_mode
def test_a_tool_that_is_not_safe_runs_alone(mode: str) -> None:
    timeline = Timeline()
    safety = {"a": True, "b": True, "c": False, "d": True, "e": False}
    tools = [Timed(name, timeline, safe=safe) for name, safe in safety.items()]
    drive(mode, [calling(*"abcde"), "done"], tools, held())
    assert timeline.entries[4:] == ["begin c", "end c", "begin d", "end d", "begin e", "end e"]
    assert sorted(timeline.entries[:4]) == ["begin a", "begin b", "end a", "end b"]


@every_mode
def test_a_run_is_held_to_the_chains_that_it_began_with(mode: str) -> None:
    """What is appended, removed or exchanged while it runs counts from the next run on."""
    met: list[str] = []

    def late(call: ToolCall) -> InterceptDecision:
        return block("late")

    def changing(call: ToolCall) -> None:
        met.append(call.name)
        chains.tool_call.append(late)
        config.interceptors = None
        config.yolo_mode = False
        config.middleware = [Late()]

    class Late(LoopMiddleware):
        def before_model(self, context: Context) -> None:
            raise AssertionError("not in this run")

    chains = Interceptors(tool_call=[changing])
    config = held(chains)
    note = Note(effect="write")
    ran = drive(mode, [calling("note", "note"), calling("note"), "done"], [note], config)
    assert (len(note.entered), met) == (3, ["note"] * 3)
    assert ran.success
    config.interceptors, config.yolo_mode, config.middleware = chains, True, None
    assert drive(mode, [calling("note"), "done"], [note], config).answers == ["Blocked by interceptor: late"]


@every_mode
def test_nothing_runs_without_the_proof_that_it_was_vetted(mode: str) -> None:
    with pytest.raises(MisuseError, match="tool_call_flow alone"):
        VettedCall(None, ToolCall("x", "note", {}), Note(), {}, proof=object())


class Marks:
    """Marks everything that passes a pre-provider seam."""

    def __init__(self) -> None:
        self.chains = Interceptors(context=[self._context], provider_request=[self._request])

    @staticmethod
    def _context(messages: list[Message]) -> InterceptDecision:
        return replace([*messages, Message.user("seen by context")])

    @staticmethod
    def _request(request: Any) -> InterceptDecision:
        return replace(type(request)(request.model, request.messages, request.tools, {"temperature": 0.125}))


def unmarked(requests: list[Any]) -> list[Any]:
    marked = [r for r in requests if "seen by context" in str(r.messages) and r.kwargs.get("temperature") == 0.125]
    return [request for request in requests if request not in marked]


@every_mode
def test_every_call_that_carries_the_conversation_passes_the_seams(mode: str) -> None:
    """The first, those after tools, a summary, the new plan after an overflow, a follow-up, a steered one."""
    queue = MessageQueue()
    queue.follow_up("and then?")

    class Steer(LoopMiddleware):
        def after_model(self, context: Context, response: Any) -> None:
            queue.steer("careful") if "go on" in response.content else None

    script = [
        calling("note"),
        calling("note", text="go on"),
        "summary",
        {"error": ContextOverflowError("too long")},
        "short",
        "done",
        "more",
    ]
    config = held(Marks().chains, compaction=Summarise(5), message_queue=queue, middleware=[Steer()])
    ran = drive(mode, script, [Note()], config)
    assert ran.output == "more"
    assert len(ran.requests) == len(script)
    assert unmarked(ran.requests) == []
    assert ran.messages[0] == Message.user("summary: short")
    assert "careful" in str(ran.requests)
    control = drive(mode, ["done"], [], held())
    assert len(unmarked(control.requests)) == 1


@every_mode
@pytest.mark.parametrize("seam", ["context", "provider_request"])
def test_a_block_of_a_summary_ends_the_run_before_anything_is_sent(mode: str, seam: str) -> None:
    def gate(value: Any) -> InterceptDecision:
        messages = value if isinstance(value, list) else value.messages
        return block("no summaries") if messages[0].content == "summarise" else allow()

    chain: list[Any] = [gate]
    config = held(Interceptors(**{seam: chain}), compaction=Summarise(2))
    ran = drive(mode, [calling("note"), "never"], [Note()], config)
    assert ran.output == "Blocked by interceptor: no summaries"
    assert len(ran.requests) == 1
    assert_acceptable(ran.messages)


@every_mode
def test_the_seams_fire_once_for_a_call_however_often_the_transport_tries(mode: str) -> None:
    """A provider retries inside one call: it resends what it was given."""
    met: list[int] = []

    class Retrying(FauxProvider):
        def _take(self) -> Any:
            for _ in range(2):
                super()._take()
            return super()._take()

    config = held(Interceptors(context=[lambda _: met.append(1)], provider_request=[lambda _: met.append(2)]))
    ran = drive(mode, Retrying(["lost", "lost", "kept"]), [], config)
    assert (ran.output, met) == ("kept", [1, 2])


def test_deny_before_ask_before_allow_when_several_have_a_say() -> None:
    """A run inside a tool is judged by its own policy and by those above: the strictest answer holds."""

    class Says(PermissionPolicy):
        def __init__(self, action: PermissionAction) -> None:
            self.action = action

        def evaluate(self, tool_name: str, args: Any) -> PermissionAction:
            return PermissionAction.ALLOW if tool_name == "spawn" else self.action

    class Spawn(BaseTool):
        name = "spawn"

        def __init__(self, own: PermissionAction, note: Note) -> None:
            self.own, self.note = own, note

        def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
            context = Context(None, [Message.user("x")])
            provider = FauxProvider([calling("note"), "child"])
            ReAct(config=LoopConfig(Says(self.own))).run(provider, [self.note], context)
            return ToolResult(next(m.content for m in context.messages if m.role == "tool"))

    actions = PermissionAction.ALLOW, PermissionAction.ASK, PermissionAction.DENY
    for above in actions:
        for below in actions:
            note = Note()
            ran = drive("run", [calling("spawn"), "done"], [Spawn(below, note)], LoopConfig(Says(above)))
            strictest = max(above, below, key=actions.index)
            assert len(note.entered) == (strictest is PermissionAction.ALLOW)
            asked = "nobody is there to be asked" in ran.answers[0]
            assert asked == (strictest is PermissionAction.ASK)
