"""AgentSession: an agent inside your own program."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from chimera.assembly.driver import AgentDriver
from chimera.core.loop_events import LoopEvent, LoopResult
from chimera.errors import MisuseError

__all__ = ["AgentSession", "TurnResult", "run_agent"]


@dataclass(frozen=True, slots=True)
class TurnResult:
    """One finished turn: the last text, the cost in US dollars, the number of provider calls, why it ended (see
    `LoopResult.reason`), the time it took in milliseconds, and the tokens used."""

    text: str
    cost_usd: float
    steps: int
    reason: str
    duration_ms: float
    usage: Mapping[str, int] = field(default_factory=dict)

    @property
    def success(self) -> bool:
        return self.reason == "completed"


class AgentSession(AgentDriver):
    """An `AgentDriver` that can also be used from synchronous code, and as a context manager.

    `on_event`, when given, is called with every `LoopEvent` of `run` and `run_async`.
    """

    def __init__(self, *args: Any, on_event: Callable[[LoopEvent], object] | None = None, **kwargs: Any) -> None:
        kwargs.setdefault("interactive", on_event is not None)
        super().__init__(*args, **kwargs)
        self._on_event = on_event
        self._closed = False

    def run(self, task: str) -> TurnResult:
        """Run one turn to its end. From asynchronous code use `run_async`; here that is a `MisuseError`."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.run_async(task))
        raise MisuseError("run() would block the running event loop: use `await session.run_async(...)`")

    async def run_async(self, task: str) -> TurnResult:
        """Run one turn to its end on the event loop."""
        if self._closed:
            raise MisuseError("the session is closed")
        turn = self.send(task)
        result: LoopResult | None = None
        try:
            async for event in turn:
                if self._on_event is not None:
                    self._on_event(event)
                if isinstance(event.data, LoopResult):
                    result = event.data
        finally:
            await turn.aclose()
        assert result is not None
        return TurnResult(
            result.output, result.cost_usd, result.turn_count, result.reason, result.duration_ms, result.usage
        )

    def close(self) -> None:
        """Cancel what runs, close the journal, and the provider when it can be closed. Closing twice does nothing."""
        if self._closed:
            return
        self._closed = True
        self.cancel()
        if self.journal is not None:
            self.journal.close()
        close = getattr(self.agent.provider, "close", None)
        if callable(close):
            close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def run_agent(task: str, *args: Any, **kwargs: Any) -> TurnResult:
    """Run one task with a session of its own. Arguments are those of `AgentSession`."""
    with AgentSession(*args, **kwargs) as session:
        return session.run(task)
