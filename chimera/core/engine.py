"""The engine: runs a loop's program by turning its asks into effects.

Whatever every loop needs exists here once: durable middleware and compaction before a call, batches of tools, one tool
message for every call on every path, counters, limits, and how a run ends.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

from chimera.core.batch import run_batch
from chimera.core.context import Context
from chimera.core.decisions import ProviderRequest
from chimera.core.effects import (
    ROUND,
    Act,
    Acted,
    Ask,
    Begin,
    Complete,
    CompleteInternally,
    Consult,
    Consulting,
    Counts,
    Effect,
    FinishStep,
    Outcome,
    Tally,
    WireCall,
    Within,
)
from chimera.core.flows import provider_call_flow
from chimera.core.loop_events import LoopEvent, LoopEventType
from chimera.core.normalize import Answer, normalize
from chimera.core.prompts import admit, objections
from chimera.core.run import Run
from chimera.errors import ContextOverflowError, MisuseError, RunCancelled, RunStopped
from chimera.events import CompactionEvent, ModelResponseEvent, RunFinishedEvent, RunStartedEvent
from chimera.providers.base import Response, StreamChunk
from chimera.types import AgentResult, Message, StepResult

__all__ = ["Program", "execute_program"]

Program = Generator[Ask, Any, Outcome]


def execute_program(
    run: Run, start: Callable[[], Program], context: Context, prompts: Sequence[Message] = ()
) -> Generator[Effect, Any, AgentResult]:
    """Run the program that `start` makes; again for every message that waits in the run's queue when it succeeded.

    `prompts` are what the user says now: they pass the hooks for prompts on their way into `context`. Returns the
    result of the run. A `RunStopped` becomes the result; other exceptions come out.
    """
    yield Begin(run)
    run.publish(RunStartedEvent, loop=run.identity.loop)
    result: AgentResult | None = None
    try:
        yield from admit(run, context, prompts, announce=False)
        outcome = yield from _with_follow_ups(run, start, context)
        run.reason = outcome.reason
        result = _result(run, outcome)
    except RunStopped as stop:
        run.reason = stop.reason
        result = _result(run, Outcome(str(stop), False, str(stop), stop.reason))
    except Exception as exc:
        run.reason = f"error: {exc}"
        yield from _release(run, done=False)
        raise
    except BaseException:
        run.reason = RunCancelled.kind
        run.cancellation.cancel()  # tools that still run in threads of their own are told to stop
        raise
    finally:
        run.publish(RunFinishedEvent, reason=run.reason, result=result)
    yield from _release(run, done=False)
    if run.notes:
        yield run.told
    return result


def _with_follow_ups(run: Run, start: Callable[[], Program], context: Context) -> Generator[Effect, Any, Outcome]:
    may_object = run.identity.depth == 0
    while True:
        outcome = yield from _interpret(run, start())
        queue = run.config.message_queue
        waiting = queue.take_next() if queue is not None and outcome.success else []
        if not waiting and may_object and outcome.success:
            may_object = False  # a hook that always objects must not keep the run going for ever
            waiting = yield from objections(run)
        yield from _release(run, done=not waiting)
        if not waiting:
            return outcome
        yield from admit(run, context, waiting)


def _interpret(run: Run, program: Program) -> Generator[Effect, Any, Outcome]:
    """Answer the asks of `program`. A failure is thrown back into it, so that it may clean up or go on."""
    send = step = program.send
    answer: Any = None
    try:
        while True:
            try:
                ask = step(answer)
            except StopIteration as stop:
                return _outcome(stop.value)
            try:
                if run.held_step is not None and type(ask) not in _QUIET:
                    yield from _release(run, done=False)
                answer = yield from _HANDLERS[type(ask)](run, ask)
                step = send
            except RunStopped:  # a stop is final: no loop may go on after it
                raise
            except Exception as exc:
                answer, step = exc, program.throw
    finally:
        program.close()


def _outcome(value: Any) -> Outcome:
    if not isinstance(value, Outcome):
        raise MisuseError(f"a loop's program returns an Outcome, not {type(value).__name__}")
    return value


class _Handlers(dict[type, Callable[[Run, Any], Generator[Effect, Any, Any]]]):
    def __missing__(self, kind: type) -> NoReturn:
        raise MisuseError(f"a loop's program yields asks, not {kind.__name__}")


def _complete(run: Run, ask: Complete) -> Generator[Effect, Any, Answer]:
    if run.home is not None:
        yield ROUND  # here, where all results are in their place
    run.begin_turn()
    if run.shapes_turns:
        yield from _prepare(run, ask.context)
    tools = run.schemas if ask.tools else None
    messages = ask.context.to_messages() if ask.messages is None else list(ask.messages)
    try:
        answer = _received(run, (yield from _model_call(run, messages, tools, ask)))
    except ContextOverflowError:
        if run.config.compaction is None or ask.messages is not None:
            raise
        if not (yield from _compact(run, ask.context)):
            raise
        answer = _received(run, (yield from _model_call(run, ask.context.to_messages(), tools, ask)))
    for middleware in run.config.middleware or ():
        changed = middleware.after_model(ask.context, answer)
        if changed is not None:
            answer = normalize(changed)
    return answer


def _prepare(run: Run, context: Context) -> Generator[Effect, Any, None]:
    queue = run.config.message_queue
    if queue:
        yield from admit(run, context, queue.take_steering())
    for middleware in run.config.middleware or ():
        middleware.before_model(context)
    strategy = run.config.compaction
    if strategy is not None:
        window = getattr(run.provider, "context_window", 0) or 128_000
        if strategy.due(context.messages, input_tokens=run.last_input_tokens, context_window=window):
            yield from _compact(run, context)


def _model_call(run: Run, messages: list[Message], tools: Any, ask: Complete) -> Generator[Effect, Any, Response]:
    on_chunk = _chunk_reporter(run) if run.streaming and ask.shown else None
    return provider_call_flow(run, messages, tools, ask.kwargs, on_chunk=on_chunk)


def _received(run: Run, response: Any) -> Answer:
    answer = normalize(response)
    if answer.usage or run.publishes:
        _count(run, answer)
    else:
        run.last_input_tokens = 0
    return answer


def _count(run: Run, answer: Answer) -> None:
    before = run.cost
    run.count(answer.usage)
    run.last_input_tokens = _tokens(answer, "input_tokens")
    if run.publishes and run.wants("model_response"):
        run.publish(
            ModelResponseEvent,
            message=Message(
                "assistant", answer.content, tuple(answer.tool_calls), content_blocks=tuple(answer.content_blocks)
            ),
            input_tokens=run.last_input_tokens,
            output_tokens=_tokens(answer, "output_tokens"),
            cost=run.cost - before,
        )


def _tokens(answer: Answer, key: str) -> int:
    count = answer.usage.get(key)
    return count if isinstance(count, int) else 0


def _chunk_reporter(run: Run) -> Callable[[StreamChunk], LoopEvent | None]:
    turn = run.turn

    def report(chunk: StreamChunk) -> LoopEvent | None:
        if chunk.text:
            return LoopEvent(LoopEventType.ASSISTANT_CHUNK, chunk.text, turn)
        return LoopEvent(LoopEventType.THINKING_CHUNK, chunk.thinking, turn) if chunk.thinking else None

    return report


def _complete_internally(run: Run, ask: CompleteInternally) -> Generator[Effect, Any, Answer]:
    """The calls that the contract exempts go to the wire as they are."""
    run.check_cancelled()
    request = ProviderRequest(str(getattr(run.provider, "model_name", "")), ask.messages, None, dict(ask.kwargs))
    response = yield WireCall(run.provider, request)
    size_of_conversation = run.last_input_tokens
    answer = _received(run, response)
    run.last_input_tokens = size_of_conversation  # of which this call says nothing
    return answer


def _compact(run: Run, context: Context) -> Generator[Effect, Any, bool]:
    """Shorten the durable conversation; a model call that the strategy asks for passes both pre-provider seams.

    Returns whether anything changed.
    """
    strategy = run.config.compaction
    before = list(context.messages)
    work = strategy.compact(list(before))
    step: Any = work.send
    answer: Any = None
    try:
        while True:
            request = step(answer)
            try:
                response = yield from provider_call_flow(run, list(request.messages), None, request.kwargs)
                answer, step = _received(run, response), work.send
            except RunStopped:
                raise
            except Exception as exc:  # a strategy may know a way without the model
                answer, step = exc, work.throw
    except StopIteration as stop:
        shortened = list(stop.value)
    finally:
        work.close()
    if shortened == before:
        return False
    context.messages[:] = shortened
    event = CompactionEvent(before=len(before), after=len(shortened), strategy=strategy.name, **run.stamp)
    if run.rules.bus is not None:
        run.rules.bus.publish(event)
    run.note(LoopEventType.COMPACT_BOUNDARY, event)
    if run.notes:
        yield run.told
    return True


def _act(run: Run, ask: Act) -> Generator[Effect, Any, Acted]:
    return run_batch(run, ask.context, ask.response)


def _finish_step(run: Run, ask: FinishStep) -> Generator[Effect, Any, None]:
    run.steps += 1
    if not run.iterated:
        return
    cost, run.reported_cost = run.cost - run.reported_cost, run.cost
    acted = ask.acted
    step = StepResult(acted.message, acted.calls, False, run.steps, acted.results, cost)
    if ask.done:
        run.held_step = step
    else:
        run.notes.append(step)
        yield run.told


def _release(run: Run, *, done: bool) -> Generator[Effect, Any, None]:
    """Report the step that was kept back until it was known whether it is the last."""
    step, run.held_step = run.held_step, None
    if step is not None:
        run.notes.append(replace(step, done=done))
        yield run.told


def _within(run: Run, ask: Within) -> Generator[Effect, Any, Outcome]:
    everything = run.tools
    run.offer([tool for tool in everything.values() if ask.offers(tool)])
    try:
        return (yield from _interpret(run, ask.program))
    finally:
        run.offer(everything)


def _consulting(run: Run, ask: Consulting) -> Generator[Effect, Any, Any]:
    run.check_cancelled()
    if run.notes:
        yield run.told
    try:
        answer = yield Consult(partial(ask.fn, run.env))
    except Exception:
        run.check_cancelled()  # what was cut short by a cancellation did not fail
        raise
    run.check_cancelled()
    return answer


def _tally(run: Run, _ask: Tally) -> Generator[Effect, Any, Counts]:
    return Counts(run.steps, run.calls, run.cost)
    yield  # a handler is a generator, and this one has nothing to ask for


def _result(run: Run, outcome: Outcome) -> AgentResult:
    return AgentResult(outcome.output, run.steps, run.calls, run.cost, outcome.success, outcome.error)


_HANDLERS = _Handlers(
    {
        Complete: _complete,
        CompleteInternally: _complete_internally,
        Act: _act,
        FinishStep: _finish_step,
        Within: _within,
        Consulting: _consulting,
        Tally: _tally,
    }
)
_QUIET = frozenset({Within, Consulting, Tally})  # asks after which a run may still be over
