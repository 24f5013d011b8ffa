"""The values that travel through every part of the system: calls, messages, results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from chimera.errors import MisuseError
from chimera.frozen import FrozenDict, freeze, quick_init, safe_text

__all__ = ["AgentResult", "Message", "PendingApproval", "StepResult", "ToolCall", "ToolResult"]


@quick_init
@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a model asks for: run the tool `name` with `arguments` (a JSON object). `id` ties the result to it."""

    id: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)

    def sealed(self) -> ToolCall:
        """Return this call with arguments that nobody can edit in place; itself when they already are."""
        if type(self) is ToolCall and type(self.arguments) is FrozenDict:
            return self
        return ToolCall(self.id, self.name, freeze(self.arguments))


@quick_init
@dataclass(frozen=True, slots=True)
class Message:
    """One entry of a conversation, deeply read-only once built.

    `role` is `system`, `user`, `assistant` or `tool`; `call_id` names the call that a tool message answers;
    `content_blocks` holds what is not plain text (images, say) as JSON objects in the provider's own terms.
    """

    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    content_blocks: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if type(self.content) is not str:
            if not isinstance(self.content, str | None):
                raise TypeError(f"the content of a message is text, not {type(self.content).__name__}")
            object.__setattr__(self, "content", "" if self.content is None else safe_text(self.content))
        if self.tool_calls != ():
            object.__setattr__(self, "tool_calls", tuple([call.sealed() for call in self.tool_calls or ()]))
        if self.content_blocks != ():
            object.__setattr__(self, "content_blocks", tuple([freeze(block) for block in self.content_blocks or ()]))

    def __deepcopy__(self, _memo: object) -> Message:
        return self  # nothing in it can be edited, and a copy made field by field would hold what can

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.role, self.content, self.tool_calls, self.call_id, self.content_blocks))

    @classmethod
    def system(cls, content: str) -> Message:
        return cls("system", content)

    @classmethod
    def user(cls, content: str) -> Message:
        return cls("user", content)

    @classmethod
    def assistant(cls, content: str, tool_calls: Iterable[ToolCall] | None = None) -> Message:
        return cls("assistant", content, tuple(tool_calls or ()))

    @classmethod
    def tool(cls, call_id: str, content: str) -> Message:
        return cls("tool", content, (), call_id)


@quick_init
@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answers: text in `output`, or the reason why it failed in `error`; `metadata` is for programs."""

    output: str
    error: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def success(self) -> bool:
        return self.error is None

    def sealed(self) -> ToolResult:
        """Return this result with metadata that nobody can edit in place, for those who only look.

        Metadata that cannot be copied is left out, and says so.
        """
        if type(self.metadata) is FrozenDict:
            return self
        try:
            metadata = freeze(self.metadata)
        except Exception as exc:  # it nests too deep, or it is of a kind that does not let itself be read
            metadata = FrozenDict({"left_out": f"{type(exc).__name__}: {exc}"})
        return ToolResult(self.output, self.error, metadata)


@dataclass(slots=True)
class PendingApproval:
    """A call that waits for a person. Decide once, with `approve` or `deny`, then go on with the iteration.

    `tool_call` is the effective call: the one that runs when it is approved.
    """

    tool_call: ToolCall
    tool_name: str
    arguments: dict[str, Any]
    reason: str
    _verdict: bool | None = field(default=None, init=False, repr=False)
    _message: str = field(default="", init=False, repr=False)

    @property
    def decided(self) -> bool:
        return self._verdict is not None

    @property
    def approved(self) -> bool:
        return self._verdict is True

    @property
    def message(self) -> str:
        """What the person who denied the call wants the model to know; empty otherwise."""
        return self._message

    def approve(self) -> None:
        self._decide(True, "")

    def deny(self, message: str = "") -> None:
        self._decide(False, message)

    def _decide(self, verdict: bool, message: str) -> None:
        if self._verdict is not None and self._verdict is not verdict:
            raise MisuseError(f"the call {self.tool_name!r} was already {'approved' if self._verdict else 'denied'}")
        self._verdict, self._message = verdict, message


@quick_init
@dataclass(frozen=True, slots=True)
class StepResult:
    """One turn of a loop: the model's message, the calls as they ran, their results, and the cost in US dollars."""

    message: Message | None = None
    tool_calls: list[ToolCall] = field(default_factory=list)
    done: bool = False
    step: int = 0
    tool_results: list[ToolResult] = field(default_factory=list)
    cost: float = 0.0
    pending_approval: PendingApproval | None = None


@dataclass(frozen=True, slots=True)
class AgentResult:
    """How a run ended: the last text, counts, the cost in US dollars, and why it failed when it did."""

    output: str
    steps: int
    tool_calls_total: int
    cost: float
    success: bool
    error: str | None = None
