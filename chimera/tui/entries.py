"""What stands in a transcript: one entry for each thing that happened, with a number that grows when it changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from chimera.tui.blocks import Block
from chimera.types import ToolCall, ToolResult

__all__ = ["Called", "Entry", "Prose", "Remark", "Said", "Status", "Thought", "Tone"]


class Status(StrEnum):
    """How a call stands. The last four never ran to a good end."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    BLOCKED = "blocked"
    DENIED = "denied"
    CUT = "cut"


class Tone(StrEnum):
    PLAIN = "plain"
    NOTE = "note"
    WARNING = "warning"
    BAD = "bad"


@dataclass(slots=True, eq=False, kw_only=True)
class Entry:
    """`version` grows with each change; `open` says that it is unfolded; `depth` is that of the agent it is about."""

    version: int = 0
    open: bool = False
    depth: int = 0

    @property
    def foldable(self) -> bool:
        """True when there is more to see than what is shown folded."""
        return False

    def touch(self) -> None:
        self.version += 1

    def toggle(self) -> None:
        if self.foldable:
            self.open = not self.open
            self.touch()


@dataclass(slots=True, eq=False)
class Said(Entry):
    """What the person said; `during` a turn when it steered one."""

    text: str
    during: bool = False


@dataclass(slots=True, eq=False)
class Prose(Entry):
    """A piece of an answer. `first` pieces begin one."""

    block: Block
    first: bool = False


@dataclass(slots=True, eq=False)
class Thought(Entry):
    """What a model showed of its reasoning."""

    pieces: list[str] = field(default_factory=list)

    @property
    def foldable(self) -> bool:
        return True

    @property
    def text(self) -> str:
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""


@dataclass(slots=True, eq=False)
class Called(Entry):
    """A tool call, and how it ended. `original` is the call before it was rewritten, `remarks` what was decided."""

    call: ToolCall
    status: Status = Status.RUNNING
    result: ToolResult | None = None
    original: ToolCall | None = None
    remarks: list[str] = field(default_factory=list)
    started: float = 0.0
    seconds: float | None = None

    @property
    def foldable(self) -> bool:
        return True


@dataclass(slots=True, eq=False)
class Remark(Entry):
    """Something that is neither the model's nor a tool's."""

    text: str
    tone: Tone = Tone.NOTE
