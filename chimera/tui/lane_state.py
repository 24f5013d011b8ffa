"""One lane: its transcript, what it is doing, and what it has used."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from chimera.core.loop_events import LoopEvent, LoopEventType, LoopResult
from chimera.events import CompactionEvent, Event, InterceptorEvent, ModelResponseEvent, ToolCallEvent, ToolResultEvent
from chimera.text import one_line
from chimera.tui.blocks import Block, BlockSplitter
from chimera.tui.entries import Called, Entry, Prose, Remark, Said, Status, Thought, Tone
from chimera.types import Message, ToolCall, ToolResult

__all__ = ["LaneState", "Used"]

_ENDINGS = {
    "Blocked by interceptor: ": Status.BLOCKED,
    "Permission denied: ": Status.DENIED,
    "Blocked by hook: ": Status.DENIED,
}
_CUT = ("The run was cancelled", "cancelled")
_CHARACTERS_PER_TOKEN = 4


@dataclass(slots=True)
class Used:
    """Tokens, and money in US dollars."""

    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0


class LaneState:
    """Everything that the screen shows of one lane. `window` is the size of the model's context in tokens.

    `apply` takes the events of its loop, `hear` those of its bus; `now` is in seconds of any steady clock.
    """

    def __init__(self, name: str = "", model: str = "", window: int = 0) -> None:
        self.name, self.model, self.window = name, model, window
        self.entries: list[Entry] = []
        self.waiting: list[str] = []
        """What was said during the turn and has not been read yet."""
        self.running = False
        self.asking = 0
        self.started = 0.0
        self.used = Used()
        self.turn = Used()
        self.turns = 0
        self.blocked = 0
        self.context = 0
        self.last_seconds = 0.0
        self._splitter = BlockSplitter()
        self._tail: Prose | None = None
        self._fresh = True
        self._streamed = 0
        self._thought: Thought | None = None
        self._calls: dict[tuple[int, str], Called] = {}
        self._verdicts: dict[str, list[InterceptorEvent]] = {}
        self._counted = False

    @property
    def streamed_tokens(self) -> int:
        """About how many tokens of the answer under way have come."""
        return self._streamed // _CHARACTERS_PER_TOKEN

    def begin(self, text: str, now: float) -> None:
        """The person starts a turn."""
        self.entries.append(Said(text))
        self.running, self.started = True, now
        self.turn, self._counted = Used(), False

    def steer(self, text: str) -> None:
        self.waiting.append(text)

    def say(self, text: str, tone: Tone = Tone.NOTE) -> None:
        """Add a remark of the program itself."""
        self._finish_text()
        self.entries.append(Remark(text, tone))

    def clear(self) -> None:
        """Begin a new transcript; what was used stays counted."""
        self.entries, self.waiting, self.context = [], [], 0
        self._splitter, self._tail, self._thought = BlockSplitter(), None, None
        self._calls.clear()
        self._verdicts.clear()

    def load(self, messages: Iterable[Message]) -> None:
        """Show a conversation that was had before."""
        for message in messages:
            _LOADERS.get(message.role, LaneState._load_note)(self, message)
        self._finish_text()

    def apply(self, event: LoopEvent, now: float) -> None:
        """Take an event of the lane's loop."""
        method = _APPLIERS.get(event.type)
        if method is not None:
            method(self, event.data, now)

    def hear(self, event: Event, now: float) -> None:
        """Take an event of the lane's bus: what the model used, and what sub-agents do."""
        match event:
            case ModelResponseEvent():
                self._count(event)
            case ToolCallEvent() if event.depth:
                self._begin_call(event.call, now, event.depth)
            case ToolResultEvent() if event.depth:
                self._end_call(event.call, event.result, now, event.depth)

    def end(self, failure: str, now: float) -> None:
        """The turn is over, whatever became of it."""
        self._finish_text()
        for called in self._calls.values():
            if called.status is Status.RUNNING:
                called.status, called.seconds = Status.CUT, now - called.started
                called.touch()
        self._calls.clear()
        self._verdicts.clear()
        if failure:
            self.entries.append(Remark(failure, Tone.BAD))
        if self.running:
            self.last_seconds = now - self.started
        self.running, self.asking = False, 0

    def _chunk(self, text: str, _now: float) -> None:
        self._thought = None
        self._streamed += len(text)
        for block in self._splitter.feed(text):
            self._put_block(block)
        tail = self._splitter.tail
        if tail is None:
            return
        if self._tail is None:
            self._tail = self._add_prose(tail)
        else:
            self._tail.block = tail
            self._tail.touch()

    def _thinking(self, text: str, _now: float) -> None:
        if self._thought is None:
            self._finish_text()
            self._thought = Thought()
            self.entries.append(self._thought)
        self._streamed += len(text)
        self._thought.pieces.append(text)
        self._thought.touch()

    def _put_block(self, block: Block) -> None:
        """Add a block that is whole; the one that was growing becomes it."""
        if self._tail is not None:
            self._tail.block = block
            self._tail.touch()
            self._tail = None
        else:
            self._add_prose(block)

    def _add_prose(self, block: Block) -> Prose:
        prose = Prose(block, self._fresh)
        self._fresh = False
        self.entries.append(prose)
        return prose

    def _finish_text(self) -> None:
        for block in self._splitter.close():
            self._put_block(block)
        self._tail = self._thought = None
        self._fresh = True

    def _message(self, message: Message, _now: float) -> None:
        if not self._streamed and message.content.strip():
            self._whole(message.content)
        self._finish_text()
        self._streamed = 0

    def _whole(self, text: str) -> None:
        for block in self._splitter.feed(text):
            self._put_block(block)

    def _stream(self, model: str, _now: float) -> None:
        self.model = model or self.model
        if self._tail is not None or self._thought is not None:
            self._finish_text()
            self.entries.append(Remark("the model begins its answer anew"))
        self._streamed = 0

    def _use(self, call: ToolCall, now: float) -> None:
        self._begin_call(call, now, 0)

    def _answer(self, data: tuple[ToolCall, ToolResult], now: float) -> None:
        self._end_call(*data, now, 0)

    def _begin_call(self, call: ToolCall, now: float, depth: int) -> Called:
        self._finish_text()
        called = Called(call, started=now, depth=depth)
        self._note_verdicts(called)
        self._calls[depth, call.id] = called
        self.entries.append(called)
        return called

    def _end_call(self, call: ToolCall, result: ToolResult, now: float, depth: int) -> None:
        called = self._calls.pop((depth, call.id), None)
        if called is None:  # it was kept from running
            called = self._begin_call(call, now, depth)
            del self._calls[depth, call.id]
        called.result, called.seconds = result, now - called.started
        called.status = _status_of(result)
        self._note_verdicts(called)
        if called.status is Status.BLOCKED:
            self.blocked += 1
        if called.status in (Status.BLOCKED, Status.DENIED):
            self._finish_text()
        called.touch()

    def _note_verdicts(self, called: Called) -> None:
        for event in self._verdicts.pop(called.call.id, ()):
            if event.seam == "tool_call" and event.decision == "replaced" and isinstance(event.before, ToolCall):
                called.original = called.original or event.before
            called.remarks.append(_remark(event))

    def _decision(self, event: InterceptorEvent, _now: float) -> None:
        if event.seam in ("tool_call", "tool_result") and event.call_id:
            self._verdicts.setdefault(event.call_id, []).append(event)
        elif event.decision != "replaced":  # what is replaced with every call would drown the rest; see the timeline
            self.say(_remark(event), Tone.WARNING)

    def _boundary(self, event: CompactionEvent, _now: float) -> None:
        self.say(f"conversation shortened from {event.before} to {event.after} messages")

    def _system(self, data: Message | str, _now: float) -> None:
        self._finish_text()
        if isinstance(data, str):
            self.entries.append(Remark(one_line(data, 240)))
            return
        if data.content in self.waiting:
            self.waiting.remove(data.content)
        self.entries.append(Said(data.content, during=True))

    def _error(self, text: str, _now: float) -> None:
        self.say(text, Tone.BAD)

    def _result(self, result: LoopResult, _now: float) -> None:
        self._finish_text()
        self.turns += 1
        if not self._counted:
            self._add(result.usage.get("input_tokens", 0), result.usage.get("output_tokens", 0), result.cost_usd)
        if not result.success and not result.reason.startswith("error"):
            tone = Tone.NOTE if result.reason == "aborted" else Tone.BAD
            self.entries.append(Remark(f"the turn ended: {result.reason}", tone))

    def _count(self, event: ModelResponseEvent) -> None:
        self._counted = True
        self._add(event.input_tokens, event.output_tokens, event.cost)
        if not event.depth and event.input_tokens:
            self.context = event.input_tokens + event.output_tokens

    def _add(self, tokens_in: int, tokens_out: int, cost: float) -> None:
        for used in (self.used, self.turn):
            used.tokens_in += tokens_in
            used.tokens_out += tokens_out
            used.cost += cost

    def _load_user(self, message: Message) -> None:
        self._finish_text()
        self.entries.append(Said(message.content))

    def _load_assistant(self, message: Message) -> None:
        self._message(message, 0.0)
        for call in message.tool_calls:
            self._begin_call(call, 0.0, 0)

    def _load_tool(self, message: Message) -> None:
        called = self._calls.pop((0, message.call_id or ""), None)
        if called is None:
            return
        refused = message.content.startswith((*_ENDINGS, *_CUT))
        called.result = ToolResult("", message.content) if refused else ToolResult(message.content)
        called.status = _status_of(called.result)
        called.touch()

    def _load_note(self, message: Message) -> None:
        self.say(one_line(message.content, 240))


def _status_of(result: ToolResult) -> Status:
    if result.error is None:
        return Status.DONE
    for beginning, status in _ENDINGS.items():
        if result.error.startswith(beginning):
            return status
    return Status.CUT if result.error.startswith(_CUT) else Status.FAILED


def _remark(event: InterceptorEvent) -> str:
    what = {"tool_call": "", "tool_result": "result "}.get(event.seam, f"{event.seam} ")
    word = "withheld" if (event.seam, event.decision) == ("tool_result", "blocked") else event.decision
    word = "rewritten" if (event.seam, word) == ("tool_call", "replaced") else word
    why = f": {one_line(event.reason, 240)}" if event.reason else ""
    return f"{what}{word} by {event.interceptor}{why}"


_APPLIERS: dict[LoopEventType, Callable[[LaneState, Any, float], None]] = {
    LoopEventType.STREAM_START: LaneState._stream,
    LoopEventType.ASSISTANT_CHUNK: LaneState._chunk,
    LoopEventType.THINKING_CHUNK: LaneState._thinking,
    LoopEventType.ASSISTANT: LaneState._message,
    LoopEventType.TOOL_USE: LaneState._use,
    LoopEventType.TOOL_RESULT: LaneState._answer,
    LoopEventType.INTERCEPTOR: LaneState._decision,
    LoopEventType.COMPACT_BOUNDARY: LaneState._boundary,
    LoopEventType.SYSTEM: LaneState._system,
    LoopEventType.ERROR: LaneState._error,
    LoopEventType.RESULT: LaneState._result,
}
_LOADERS: dict[str, Callable[[LaneState, Message], None]] = {
    "user": LaneState._load_user,
    "assistant": LaneState._load_assistant,
    "tool": LaneState._load_tool,
}
