"""The life of one provider call and of one tool call, each written once.

Both are generators that touch nothing: they yield effects and are sent the answers. Every loop, in sync and async,
passes through them, so a seam stands at exactly one line of the code base.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from chimera.core import effects
from chimera.core.arguments import argument_problem
from chimera.core.decisions import ProviderRequest
from chimera.core.effects import Consult, Effect, VettedCall, WireCall
from chimera.core.loop_events import LoopEventType
from chimera.core.rules import Asked, Asker
from chimera.core.run import Run
from chimera.core.seams import (
    intercept_context,
    intercept_provider_request,
    intercept_tool_call,
    intercept_tool_result,
)
from chimera.core.wire import own_headers
from chimera.errors import MisuseError, ProviderCallBlocked, RunStopped
from chimera.events import ModelRequestEvent, PermissionEvent, ToolCallEvent, ToolResultEvent
from chimera.frozen import freeze, thaw
from chimera.permissions.base import PermissionAction
from chimera.providers.base import Response, StreamChunk
from chimera.types import Message, PendingApproval, ToolCall, ToolResult

__all__ = ["Answered", "answer_call", "provider_call_flow", "tool_call_flow"]

_log = logging.getLogger("chimera.core")


def provider_call_flow(
    run: Run,
    messages: list[Message],
    tools: Any,
    kwargs: Mapping[str, Any],
    *,
    on_chunk: Callable[[StreamChunk], Any] | None = None,
) -> Generator[Effect, Any, Response]:
    """One provider call: `context` seam, `provider_request` seam, one wire call.

    Raises `ProviderCallBlocked` when a seam says no; nothing is sent then.
    """
    chains, provider = run.rules.chains, run.provider
    messages, blocked = intercept_context(chains.context, messages, watch=run.watch)
    if blocked is not None:
        raise ProviderCallBlocked(blocked, "context")
    own = own_headers(provider)
    request = ProviderRequest(str(getattr(provider, "model_name", "") or ""), messages, tools, dict(kwargs), own)
    effective, blocked = intercept_provider_request(chains.provider_request, request, watch=run.watch)
    if blocked is not None:
        raise ProviderCallBlocked(blocked, "provider_request")
    if run.heard:
        run.note(LoopEventType.STREAM_START, effective.model)
        if run.notes:
            yield run.told
        if run.publishes:
            run.publish(ModelRequestEvent, model=effective.model, messages=len(effective.messages))
    headers = model = None
    if effective is not request:
        headers = effective.headers if own is not None and effective.headers != own else None
        model = effective.model if effective.model != request.model else None
    response: Response = yield WireCall(provider, effective, headers, model, on_chunk)
    return response


class Answered(NamedTuple):
    """How a call ended. `outcome` is `ran`, `blocked`, `denied`, `unknown`, `invalid` or `cancelled`."""

    call: ToolCall
    result: ToolResult
    outcome: str

    @property
    def refused(self) -> bool:
        return self.outcome in ("blocked", "denied")


ToolFlow = Generator["ToolCall | Effect | VettedCall", Any, Answered]


def tool_call_flow(run: Run, call: ToolCall, problem: str | None = None) -> ToolFlow:
    """One tool call: seam, hooks, permission, resolve, one tool run, seam, truncation, hooks, events.

    Yields first the effective call, once the seam has passed: a batch goes on when all its calls stand there. `call` is
    sealed. A call that arrives with a `problem` (arguments that could not be read) is refused at once.
    """
    if problem is not None:
        yield call
        return _refuse(run, call, problem, "invalid")
    rules = run.rules
    call, blocked = intercept_tool_call(rules.chains.tool_call, call, watch=run.watch)
    call = call.sealed()
    yield call
    if blocked is not None:
        return _refuse(run, call, f"Blocked by interceptor: {blocked}", "blocked")
    arguments = thaw(call.arguments)  # what runs is what was judged, whatever becomes of it while somebody is asked
    grant: Answered | list[Asked] | bool = (yield from _before_hooks(run, call)) if rules.hooks else []
    if isinstance(grant, list):
        grant = _permission(run, call, grant)
    if isinstance(grant, list):
        grant = (yield from _ask_all(run, call, grant)) if grant else False
    if isinstance(grant, Answered):
        return grant
    detached = grant
    if run.heard:
        _announce(run, call)
    result: ToolResult = yield VettedCall(run, call, run.tools[call.name], arguments, proof=effects._PROOF)
    if not detached:
        result = intercept_tool_result(rules.chains.tool_result, call, result, watch=run.watch)
    if rules.truncation is not None:
        result = rules.truncation.apply(result)
    if rules.hooks and not detached:
        result = yield from _after_hooks(run, call, result)
    return answer_call(run, call, result, "ran")


def _permission(run: Run, call: ToolCall, doubts: list[Asked]) -> Answered | list[Asked]:
    """Policy and the tool itself; the strictest answer holds. Returns the refusal, or the questions that are left."""
    decision, questions = run.rules.permit(call)
    if decision.action is PermissionAction.DENY:
        _record(run, call, "deny", decision.reason, decision.rule)
        return _refuse(run, call, _denial(decision.reason or f"{call.name} is not allowed"), "denied")
    unusable = _unusable(run, call, run.tools.get(call.name))
    if unusable is not None:
        return unusable
    if doubts:
        questions += doubts
    if not questions and run.publishes:
        _record(run, call, "allow", decision.reason, decision.rule)
    return questions if len(questions) < 2 else _one_each(questions)


def _one_each(questions: list[Asked]) -> list[Asked]:
    """Ask each asker once: with the words of a policy, or of a hook where the policy has none."""
    asked: dict[Asker, Asked] = {}
    for question in questions:
        first = asked.setdefault(question.asker, question)
        if not first.reason and question.reason:
            asked[question.asker] = first._replace(reason=question.reason)
    return list(asked.values())


def _announce(run: Run, call: ToolCall) -> None:
    if run.publishes:
        run.publish(ToolCallEvent, call=call)
    run.note(LoopEventType.TOOL_USE, call)


def _unusable(run: Run, call: ToolCall, tool: Any) -> Answered | None:
    if tool is None:
        return _refuse(run, call, f"Unknown tool: {call.name}", "unknown")
    try:
        problem = argument_problem(run.validator(tool), call.arguments)
    except MisuseError as exc:
        return _refuse(run, call, str(exc), "invalid")
    if problem is None:
        return None
    return _refuse(run, call, f"Invalid arguments for {call.name}: {problem}", "invalid")


def _ask_all(run: Run, call: ToolCall, questions: list[Asked]) -> Generator[Effect, Any, Answered | bool]:
    detached = False
    for question in questions:
        answer = yield from _ask(run, call, question)
        if isinstance(answer, Answered):
            return answer
        detached = answer
    return detached


def _ask(run: Run, call: ToolCall, question: Asked) -> Generator[Effect, Any, Answered | bool]:
    """Put the effective call to whoever answers: the callback where there is one, else whoever iterates.

    Returns the refusal, or whether the call that was approved runs detached: only whoever iterates over the outermost
    run may let it, since the runs around have seams of their own to keep.
    """
    _record(run, call, "ask", question.reason, question.rule, source=question.source)
    shown: dict[str, Any] = freeze(thaw(call.arguments))
    reason = question.reason or f"{call.name} needs approval"
    approval = PendingApproval(ToolCall(call.id, call.name, shown), call.name, shown, reason)
    callback, failure = question.asker.callback, None
    if callback is not None:
        failure = yield from _ask_callback(run, callback, approval)
    elif question.asker.iterates and run.iterated:
        run.notes.append(run.pending(approval))
        yield run.told
    run.check_cancelled()
    if approval.approved and failure is None:
        _record(run, call, "allow", approval.reason, source="user")
        return callback is None and run.outer is None and not run.rules.enforces_resumed
    denied = approval.decided and not approval.approved
    if denied:
        text = f"the user denied it: {approval.message}" if approval.message else "the user denied it"
    else:
        text = f"{approval.reason}, and {failure or 'nobody is there to be asked'}"
    _record(run, call, "deny", text, source="user" if denied else "nobody")
    return _refuse(run, call, _denial(text), "denied")


def _ask_callback(run: Run, callback: Any, approval: PendingApproval) -> Generator[Effect, Any, str | None]:
    """Ask, and return why there is no answer that counts, or None. Only a plain yes is one: a callback that fails or
    contradicts itself has not approved anything."""
    if run.notes:
        yield run.told
    try:
        answer = yield Consult(partial(callback, approval))
    except Exception as exc:
        return f"asking failed: {type(exc).__name__}"
    if not approval.decided and isinstance(answer, bool):
        approval.approve() if answer else approval.deny()
    if not approval.decided:
        return "the one who was asked did not decide"
    return "the answer contradicts itself" if approval.approved and answer is False else None


def _before_hooks(run: Run, call: ToolCall) -> Generator[Effect, Any, Answered | list[Asked]]:
    """Return the refusal, or what hooks want a person asked."""
    questions: list[Asked] = []
    for hooks, quiet, asker in run.rules.hooks:
        if not hooks.has("PreToolUse"):
            continue
        try:
            verdict = yield Consult(partial(hooks.pre_tool_use, call, run.identity))
            decision, why = verdict.decision, verdict.reason
        except RunStopped:
            raise
        except Exception as exc:  # a gate that crashes stays shut
            decision, why = "deny", f"the hook failed: {type(exc).__name__}"
        if decision not in ("allow", "ask"):
            _record(run, call, "deny", why, source="hook")
            return _refuse(run, call, f"Blocked by hook: {why}", "denied")
        if decision == "ask" and not quiet:
            questions.append(Asked(asker, "hook", why))
    return questions


def _after_hooks(run: Run, call: ToolCall, result: ToolResult) -> Generator[Effect, Any, ToolResult]:
    for hooks, *_ in run.rules.hooks:
        if not hooks.has("PostToolUse"):
            continue
        try:
            feedback = yield Consult(partial(hooks.post_tool_use, call, result, run.identity))
        except RunStopped:
            raise
        except Exception:  # the tool has run: what it did belongs in the conversation whatever its observers do
            _log.warning("a hook after the tool %s raised and is skipped", call.name, exc_info=True)
            continue
        if feedback:
            result = replace(result, output=f"{result.output}\n{feedback}".strip())
    return result


def _refuse(run: Run, call: ToolCall, text: str, outcome: str) -> Answered:
    return answer_call(run, call, ToolResult("", text), outcome)


def answer_call(run: Run, call: ToolCall, result: ToolResult, outcome: str) -> Answered:
    """Tell everybody how a call ended."""
    if run.heard:
        if run.publishes and run.wants("tool_result"):
            run.publish(ToolResultEvent, call=call, result=result.sealed(), outcome=outcome)
        run.note(LoopEventType.TOOL_RESULT, (call, result))
    return Answered(call, result, outcome)


def _record(
    run: Run, call: ToolCall, action: str, reason: str, rule: str | None = None, *, source: str = "policy"
) -> None:
    run.publish(PermissionEvent, call=call, action=action, reason=reason, rule=rule, source=source)


def _denial(text: str) -> str:
    return f"Permission denied: {text}"
