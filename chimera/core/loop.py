"""Loops: programs that ask, and three ways to run each of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from chimera.core.context import Context
from chimera.core.drivers import async_drive, drive, drive_to_end
from chimera.core.effects import Act, Acted, Complete, Effect, Emit, FinishStep, Outcome
from chimera.core.engine import Program, execute_program
from chimera.core.env import RunEnv, root_of
from chimera.core.loop_config import LoopConfig
from chimera.core.normalize import Answer
from chimera.core.run import Run
from chimera.errors import MisuseError
from chimera.types import AgentResult, StepResult

__all__ = ["Loop", "ReAct", "StepStream", "async_drain_steps", "drain_steps", "new_run"]


class Loop(ABC):
    """A reasoning loop. A subclass writes `program` and gets everything else, the four seams included.

    `max_steps` bounds the model's turns; `config` is what a run is held to, None for an unchecked run without seams.
    """

    name: ClassVar[str] = "loop"

    def __init__(self, max_steps: int = 50, config: LoopConfig | None = None) -> None:
        self.max_steps = max_steps
        self.config = config

    @abstractmethod
    def program(self, context: Context) -> Program:
        """Yield asks (see `chimera.core.effects`), be sent the answers, and return an `Outcome`."""

    def run(self, provider: Any, tools: Iterable[Any] | None, context: Context, env: Any = None) -> AgentResult:
        """Run to the end in this thread.

        `provider` is anything with a `complete` method, `env` None or something with the project folder as `root`.
        What the policy wants asked is put to `config.permission_callback`, and denied where there is none. A block
        before a provider call ends the run with a result that says so; whatever a provider raises comes out, with the
        conversation so far in `context`.
        """
        return drive_to_end(self._effects(provider, tools, context, env, iterated=False))

    def iter_steps(
        self, provider: Any, tools: Iterable[Any] | None, context: Context, env: Any = None
    ) -> Generator[StepResult, None, AgentResult]:
        """Run step by step in this thread; the generator returns the `AgentResult`.

        A call that needs a person comes as a step with `pending_approval`: decide it, then go on. Undecided means no.
        Closing the generator early leaves a conversation that a provider accepts.
        """
        return drive(self._effects(provider, tools, context, env))

    def async_iter_steps(
        self, provider: Any, tools: Iterable[Any] | None, context: Context, env: Any = None
    ) -> StepStream:
        """`iter_steps` on the event loop. The stream has the `AgentResult` as `result` once it is exhausted."""
        return StepStream(async_drive(_with_result(self._effects(provider, tools, context, env))))

    def _effects(
        self, provider: Any, tools: Iterable[Any] | None, context: Context, env: Any, *, iterated: bool = True
    ) -> Generator[Effect, Any, AgentResult]:
        """A run of this loop. It is made when the first effect is asked for, and held to what is around it then."""
        run = new_run(self, provider, tools, context, env)
        run.iterated = iterated
        return (yield from execute_program(run, lambda: self.program(context), context))


@dataclass(frozen=True, slots=True)
class _Returned:
    result: AgentResult


def _with_result(effects: Generator[Effect, Any, AgentResult]) -> Generator[Effect, Any, None]:
    result = yield from effects
    yield Emit(deque((_Returned(result),)))


class StepStream(AsyncIterator[StepResult]):
    """The steps of an asynchronous run. `result` is the `AgentResult` once the last step has been taken."""

    def __init__(self, items: AsyncGenerator[Any, None]) -> None:
        self._items = items
        self._result: AgentResult | None = None

    def __aiter__(self) -> StepStream:
        return self

    async def __anext__(self) -> StepResult:
        item = await anext(self._items)
        if isinstance(item, _Returned):
            self._result = item.result
            await self._items.aclose()
            raise StopAsyncIteration
        step: StepResult = item
        return step

    async def aclose(self) -> None:
        """Stop early; the conversation stays one that a provider accepts."""
        await self._items.aclose()

    @property
    def result(self) -> AgentResult:
        if self._result is None:
            raise MisuseError("the run has no result before its last step is taken")
        return self._result


class ReAct(Loop):
    """Reason and act: ask the model, run what it calls, until it calls nothing.

    Source: Yao et al., "ReAct: Synergizing Reasoning and Acting in Language Models", 2022.
    """

    name = "react"

    def program(self, context: Context) -> Program:
        text, complete = "", Complete(context)
        for _ in range(self.max_steps):
            answer: Answer = yield complete
            acted: Acted = yield Act(context, answer)
            done = not acted.calls
            yield FinishStep(acted, done)
            text = answer.content
            if done:
                return Outcome(text)
        return Outcome(text, False, f"the run did not finish within {self.max_steps} steps", "max_turns")


def new_run(
    loop: Loop, provider: Any, tools: Iterable[Any] | None, context: Context, env: Any = None, **options: Any
) -> Run:
    """Return the state of a new run of `loop`, with an environment for its tools. `options` are those of `Run`."""
    run = Run(
        loop.config,
        provider,
        tools,
        conversation_id=context.conversation_id,
        loop=loop.name,
        root=root_of(env),
        **options,
    )
    run.env = RunEnv(run)
    return run


def drain_steps(gen: Generator[StepResult, None, AgentResult]) -> AgentResult:
    """Take all steps and return the result; what waits for approval is denied."""
    while True:
        try:
            next(gen)
        except StopIteration as stop:
            result: AgentResult = stop.value
            return result


async def async_drain_steps(agen: StepStream) -> AgentResult:
    """`drain_steps` for the stream of `async_iter_steps`."""
    async for _ in agen:
        pass
    return agen.result
