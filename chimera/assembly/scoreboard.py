"""How the lanes of a race stand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from time import monotonic
from typing import Literal

from chimera.core.loop_events import LoopEvent, LoopEventType, LoopResult

__all__ = ["Check", "LaneScore", "LaneState", "ranked"]

LaneState = Literal["waiting", "running", "checking", "finished", "failed", "cancelled"]
_REFUSED = ("Permission denied: ", "Blocked by hook: ")


@dataclass(frozen=True, slots=True)
class Check:
    """How the command that judges a lane ended. `exit_code` is None when it ran out of time or could not be started."""

    passed: bool
    exit_code: int | None = None
    output: str = ""

    def __str__(self) -> str:
        if self.passed:
            return "passed"
        return "did not finish" if self.exit_code is None else f"failed with exit code {self.exit_code}"


@dataclass(slots=True)
class LaneScore:
    """One row. Tokens and cost (US dollars) are known when the lane has ended, `blocks` counts as they happen: what
    interceptors, permissions and hooks kept from happening. `files` counts files that differ from the start."""

    name: str
    model: str
    loop: str | None = None
    state: LaneState = "waiting"
    reason: str = ""
    output: str = ""
    check: Check | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    steps: int = 0
    blocks: int = 0
    files: int = 0
    _began: float | None = field(default=None, repr=False)
    _took: float | None = field(default=None, repr=False)

    @property
    def ended(self) -> bool:
        return self.state in ("finished", "failed", "cancelled")

    @property
    def won(self) -> bool:
        """True when the agent did the task and the check, where there is one, passed."""
        return self.state == "finished" and (self.check is None or self.check.passed)

    @property
    def seconds(self) -> float:
        """How long the lane has been at work, its check included."""
        if self._took is not None:
            return self._took
        return 0.0 if self._began is None else monotonic() - self._began

    def begin(self) -> None:
        """The lane starts now."""
        self.state, self._began = "running", monotonic()

    def see(self, event: LoopEvent) -> None:
        """Take in what an event of the lane tells."""
        if event.type is LoopEventType.RESULT:
            self.end(event.data)
        elif event.type is LoopEventType.INTERCEPTOR:
            gate_failed = event.data.seam == "tool_call" and event.data.decision == "error"
            self.blocks += event.data.decision == "blocked" or gate_failed
        elif event.type is LoopEventType.TOOL_RESULT:
            self.blocks += (event.data[1].error or "").startswith(_REFUSED)

    def end(self, result: LoopResult) -> None:
        """The lane ended so."""
        self._took = self.seconds
        self.reason, self.output = result.reason, result.output
        self.state = "finished" if result.success else "cancelled" if result.reason == "aborted" else "failed"
        self.input_tokens = result.usage.get("input_tokens", 0)
        self.output_tokens = result.usage.get("output_tokens", 0)
        self.cost_usd, self.steps = result.cost_usd, max(self.steps, result.turn_count)


def ranked(scores: Iterable[LaneScore]) -> list[LaneScore]:
    """Return the scores, the best first: those that won before those that did not, those that changed something before
    those that did not, then the cheaper, then the quicker ones."""
    return sorted(
        scores,
        key=lambda score: (not score.won, not score.ended, score.files == 0, score.cost_usd, score.seconds),
    )
