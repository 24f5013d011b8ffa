"""AgentDriver: a conversation with an assembled agent, turn by turn."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Any

from chimera.assembly.coding_agent import CodingAgent
from chimera.assembly.journal import Journal
from chimera.assembly.turn import Turn
from chimera.core.cancellation import CancellationToken
from chimera.core.context import Context
from chimera.core.loop_events import LoopEvent, LoopEventType, LoopResult
from chimera.core.steering import MessageQueue
from chimera.core.tool import BaseTool
from chimera.errors import MisuseError
from chimera.events import CompactionEvent, InterceptorEvent
from chimera.types import Message, ToolCall, ToolResult

__all__ = ["AgentDriver", "render_event"]

_LINE_LIMIT = 200


class AgentDriver:
    """Holds the conversation and runs one turn at a time.

    `interactive` streams the model's text as it is written. `journal` records the conversation, and begins it with what
    the journal already holds; whoever made it closes it. All other arguments are those of `CodingAgent`.
    """

    def __init__(
        self,
        model: str | None = None,
        project_dir: str | Path | None = None,
        preset: str = "coding_agent",
        *,
        interactive: bool = True,
        journal: Journal | None = None,
        **agent_kwargs: Any,
    ) -> None:
        self.agent = CodingAgent(model, project_dir, preset, **agent_kwargs)
        self.interactive = interactive
        self.total_cost = 0.0
        self.turn_count = 0
        self.journal = journal
        self._context = Context() if journal is None else journal.context()
        self._queue = MessageQueue()
        self._token: CancellationToken | None = None

    @property
    def model(self) -> str:
        return self.agent.model

    @property
    def tools(self) -> list[BaseTool]:
        return self.agent.tools

    @property
    def history(self) -> list[Message]:
        """The durable conversation so far, as a list of one's own."""
        return list(self._context.messages)

    @property
    def running(self) -> bool:
        """True while a turn is under way."""
        return self._token is not None

    def send(self, text: str) -> Turn[LoopResult]:
        """Start a turn with what the user says. Iterate for its events, or await its `LoopResult`.

        Starting a second turn while one runs raises `MisuseError`: use `steer` or `queue_follow_up`.
        """
        return Turn(self._run(text), lambda result: result)

    def steer(self, text: str) -> None:
        """Say something to the turn that runs; the model reads it before its next answer. From any thread."""
        self._queue.steer(text)

    def queue_follow_up(self, text: str) -> None:
        """Say something once the turn that runs would end. From any thread."""
        self._queue.follow_up(text)

    def cancel(self) -> None:
        """Cancel the turn that runs, if one does. From any thread or signal handler; the conversation stays whole."""
        token = self._token
        if token is not None:
            token.cancel()

    def clear(self) -> None:
        """Begin a new conversation; a journal ends, and `journal` is a new one, or None where none can be begun."""
        self._require_rest("clear the conversation")
        if self.journal is not None:
            self.journal = self.journal.renew()
        self._context = Context() if self.journal is None else self.journal.context()
        self._queue.clear()

    def go_on_with(self, journal: Journal) -> None:
        """Go on with the conversation that `journal` holds; the journal so far is closed."""
        self._require_rest("go on with another session")
        if self.journal is not None:
            self.journal.close()
        self.journal = journal
        self._context = journal.context()
        self._queue.clear()

    def load_history(self, messages: Iterable[Message]) -> None:
        """Go on from `messages` (without a system prompt) in place of the conversation so far."""
        self._require_rest("load a conversation")
        self._context = Context(messages=messages) if self.journal is None else self.journal.context(messages)

    def _require_rest(self, what: str) -> None:
        if self._token is not None:
            raise MisuseError(f"cannot {what} while a turn runs: wait for it, or cancel it")

    async def _run(self, text: str) -> AsyncGenerator[LoopEvent, None]:
        self._require_rest("start a turn")
        token = self._token = CancellationToken()
        turn = self.agent.run(
            text,
            context=self._context,
            stream=self.interactive,
            abort_signal=token,
            message_queue=self._queue,
        )
        try:
            async for event in turn:
                if event.type is LoopEventType.RESULT:
                    self.total_cost += event.data.cost_usd
                    self.turn_count += 1
                    self._token = None
                if self.journal is not None:
                    self.journal.append(event)
                yield event
        finally:
            self._token = None
            await turn.aclose()


def render_event(event: LoopEvent) -> str | None:
    """Return what a line-based front end prints for `event`; None for what it leaves out.

    Chunks of text come without a line end; everything else is one or more whole lines.
    """
    render = _RENDERERS.get(event.type)
    return render(event.data) if render is not None else None


def _use(call: ToolCall) -> str:
    return f"> {call.name} {_short(json.dumps(call.arguments, ensure_ascii=False, default=str))}"


def _result(data: tuple[ToolCall, ToolResult]) -> str:
    call, result = data
    if result.success:
        return f"< {call.name}: {_short(result.output) or 'done'}"
    return f"! {call.name}: {_short(result.error or '')}"


def _decision(event: InterceptorEvent) -> str | None:
    if event.seam == "tool_call" and event.decision != "replaced":
        return None  # the result of the call says so
    what = f" {event.tool_name}" if event.tool_name else ""
    why = f": {_short(event.reason)}" if event.reason else ""
    return f"~ {event.seam}{what} {event.decision} by {event.interceptor}{why}"


def _boundary(event: CompactionEvent) -> str:
    return f"~ conversation shortened from {event.before} to {event.after} messages"


def _end(result: LoopResult) -> str | None:
    return None if result.success else f"! ended: {result.reason}"


def _message(message: Message) -> str | None:
    return message.content or None


def _system(data: Message | str) -> str:
    return f"~ {_short(data.content if isinstance(data, Message) else data)}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LINE_LIMIT else line[: _LINE_LIMIT - 3] + "..."


_RENDERERS: dict[LoopEventType, Any] = {
    LoopEventType.ASSISTANT_CHUNK: str,
    LoopEventType.ASSISTANT: _message,
    LoopEventType.TOOL_USE: _use,
    LoopEventType.TOOL_RESULT: _result,
    LoopEventType.INTERCEPTOR: _decision,
    LoopEventType.COMPACT_BOUNDARY: _boundary,
    LoopEventType.SYSTEM: _system,
    LoopEventType.ERROR: lambda text: f"! {text}",
    LoopEventType.RESULT: _end,
}
