"""All calls of one step: judged together, run in groups, answered in order."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from chimera.core.context import Context
from chimera.core.effects import ROUND, Acted, Effect, RunVetted, VettedCall
from chimera.core.flows import Answered, ToolFlow, answer_call, tool_call_flow
from chimera.core.loop_events import LoopEventType
from chimera.core.run import Run
from chimera.providers.base import Response
from chimera.types import Message, ToolCall, ToolResult

__all__ = ["message_text", "run_batch", "run_single"]


def run_batch(run: Run, context: Context, response: Response) -> Generator[Effect, Any, Acted]:
    """Record the answer in `context` and run its calls.

    Every `tool_call` chain runs before the message is recorded, every permission answer is in before the first tool
    starts. Whatever happens in between, each recorded call gets exactly one tool message, in call order.
    """
    cut: BaseException | None = None
    if run.home is not None:
        try:
            yield ROUND
        except BaseException as exc:
            cut = exc  # what was answered is recorded all the same
    problems = getattr(response, "problems", None) or _NONE
    flows = [tool_call_flow(run, call, problems.get(call.id)) for call in response.tool_calls]
    blocks = tuple(response.content_blocks)
    message = Message("assistant", response.content, tuple(map(_judge, flows)), None, blocks)
    batch = _Batch(run, context, message, flows)
    try:
        context.add(message)
        if run.heard:
            run.note(LoopEventType.ASSISTANT, message)
        if cut is not None:
            raise cut
        if run.notes:
            yield run.told
        if flows:
            run.calls += len(flows)
            run.message = message
            yield from batch.work()
    finally:
        batch.settle()
    if batch.refusals and batch.refusals == len(flows):
        run.refused_in_a_row += 1
        run.last_refusal = batch.results[-1].error or ""
    else:
        run.refused_in_a_row = 0
    return Acted(message, batch.calls, batch.results)


def run_single(run: Run, call: ToolCall) -> Generator[Effect, Any, ToolResult]:
    """Run one call outside the conversation: what a tool asks for through its environment."""
    flow = tool_call_flow(run, call)
    try:
        _judge(flow)
        step = yield from _pass_on(flow, _advance(flow, None))
        while isinstance(step, VettedCall):
            if run.cancellation.cancelled:  # the tool that asks may be a thread that outlived its run
                return answer_call(run, step.call, ToolResult("", _NOT_STARTED), "cancelled").result
            results = yield RunVetted((step,))
            step = yield from _pass_on(flow, _advance(flow, results[0]))
    finally:
        flow.close()
    return step.result


def message_text(result: ToolResult) -> str:
    """Return what the model reads of a result."""
    if result.error is None:
        return result.output
    return f"{result.output}\n{result.error}" if result.output else result.error


_NONE: Mapping[str, str] = {}
_NOT_STARTED = "The run was cancelled before this call was started."
_UNDER_WAY = "The run was cancelled while this call was under way; it may have taken effect."


class _Batch:
    """The calls of one message. `calls` and `results` are those that are recorded; `started` is the last one begun."""

    __slots__ = ("answers", "calls", "context", "flows", "message", "refusals", "results", "run", "started")

    def __init__(self, run: Run, context: Context, message: Message, flows: list[ToolFlow]) -> None:
        self.run, self.context, self.message, self.flows = run, context, message, flows
        self.answers: list[Answered | None] = [None] * len(flows)
        self.calls: list[ToolCall] = []
        self.results: list[ToolResult] = []
        self.refusals = 0
        self.started = -1

    def work(self) -> Generator[Effect, Any, None]:
        run, flows, answers = self.run, self.flows, self.answers
        vetted, places = yield from self.permit()
        if not vetted:
            self.record()
        stop = 0
        while stop < len(vetted):
            run.check_cancelled()
            start, stop = stop, _end_of_group(vetted, stop)
            self.started = places[stop - 1]
            results = yield RunVetted(vetted[start:stop])
            for place, result in zip(places[start:stop], results, strict=True):
                step = _advance(flows[place], result)
                if type(step) not in _SETTLED:
                    step = yield from _pass_on(flows[place], step)
                answers[place] = step
            self.record()
            if run.notes:
                yield run.told

    def permit(self) -> Generator[Effect, Any, tuple[list[VettedCall], list[int]]]:
        """Bring every call to its answer or to the leave to run it; return what may run, and which calls these are."""
        run, vetted, places = self.run, [], []
        for place, flow in enumerate(self.flows):
            step = _advance(flow, None)
            if type(step) not in _SETTLED:
                step = yield from _pass_on(flow, step)
            if type(step) is VettedCall:
                vetted.append(step)
                places.append(place)
            else:
                self.answers[place] = step
            if run.notes:
                yield run.told
        return vetted, places

    def record(self) -> None:
        """Add the tool messages of all leading calls that are answered."""
        for index in range(len(self.calls), len(self.answers)):
            answer = self.answers[index]
            if answer is None:
                return
            call, result = answer.call, answer.result
            self.context.add(Message("tool", message_text(result), (), call.id))
            self.calls.append(call)
            self.results.append(result)
            if answer.refused:
                self.refusals += 1

    def settle(self) -> None:
        """Close what is still open and answer what is not answered: the run was cut short."""
        if len(self.calls) == len(self.answers):
            return
        for flow in self.flows:
            flow.close()
        if not self._is_recorded():
            return
        for index, answer in enumerate(self.answers):
            if answer is None:
                cut = ToolResult("", _UNDER_WAY if index <= self.started else _NOT_STARTED)
                self.answers[index] = answer_call(self.run, self.message.tool_calls[index], cut, "cancelled")
        self.record()

    def _is_recorded(self) -> bool:
        """Tell whether the message with the calls is in the conversation: an interrupt may come just before that."""
        return any(message is self.message for message in self.context.messages[-len(self.flows) - 1 :])


def _judge(flow: ToolFlow) -> ToolCall:
    call = next(flow)
    assert isinstance(call, ToolCall)
    return call


_SETTLED = frozenset({VettedCall, Answered})


def _advance(flow: ToolFlow, answer: Any) -> Any:
    """Go on with a flow: returns leave to run its tool, its answer, or an effect that comes before."""
    try:
        return flow.send(answer)
    except StopIteration as stop:
        return stop.value


def _pass_on(flow: ToolFlow, step: Any) -> Generator[Effect, Any, VettedCall | Answered]:
    """Pass effects on until a flow may run its tool or has its answer."""
    while type(step) not in _SETTLED:
        assert not isinstance(step, ToolCall)
        try:
            reply = yield step
        except Exception as exc:
            step = _thrown(flow, exc)
        else:
            step = _advance(flow, reply)
    return step  # type: ignore[no-any-return]


def _thrown(flow: ToolFlow, exc: Exception) -> Any:
    try:
        return flow.throw(exc)
    except StopIteration as stop:
        return stop.value


def _end_of_group(vetted: Sequence[VettedCall], start: int) -> int:
    """Neighbours that are safe side by side form a group; every other call stands alone."""
    end, count = start + 1, len(vetted)
    if end < count and _is_safe(vetted[start]):
        while end < count and _is_safe(vetted[end]):
            end += 1
    return end


def _is_safe(call: VettedCall) -> bool:
    return bool(getattr(call.tool, "is_concurrency_safe", False))
