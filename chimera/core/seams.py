"""The four seams: one way to run a chain, and what each seam hands out and takes back.

Three rules make a chain trustworthy. What an interceptor is handed is its own: editing it changes nothing. What it
returns is adopted by value: editing it afterwards changes nothing. And whatever goes wrong inside it follows the
failure policy of its seam: `tool_call` is a gate and fails closed, the other three shape data and fail open.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, NamedTuple

from chimera.core.decisions import InterceptDecision, Interceptor, ProviderRequest, interceptor_name
from chimera.core.differences import difference
from chimera.core.identity import Frame, RunIdentity, current_run, running
from chimera.core.versions import interceptor_version
from chimera.events import EventBus, InterceptorEvent
from chimera.frozen import class_name, freeze, freeze_json, safe_text, thaw
from chimera.types import Message, ToolCall, ToolResult

__all__ = [
    "Observer",
    "Watch",
    "intercept_context",
    "intercept_provider_request",
    "intercept_tool_call",
    "intercept_tool_result",
]

Observer = Callable[[InterceptorEvent], None]
_TEXT_LIMIT = 500
_REASON_LIMIT = 10_000
_log = logging.getLogger("chimera.core")


class Watch(NamedTuple):
    """Who is told of decisions, and for which run they are made. An observer that raises is logged and skipped.

    With `shows_changes` events say what a decision changed. That holds what a policy took out, so it is for the person
    at the screen and for no record.
    """

    observe: Observer | None = None
    identity: RunIdentity | None = None
    shows_changes: bool = False


@dataclass(frozen=True, slots=True)
class _Seam:
    """`ask` calls one interceptor with arguments that are its own; `adopt` checks a replacement and takes it in."""

    name: str
    fails_closed: bool
    ask: Callable[[Interceptor, Any, ToolCall | None], Any]
    adopt: Callable[[Any, Any], Any]


def intercept_context(
    chain: Sequence[Interceptor],
    messages: list[Message],
    *,
    event_bus: EventBus | None = None,
    watch: Watch | None = None,
) -> tuple[list[Message], str | None]:
    """Run the `context` chain over the messages of one call.

    Returns the effective messages (the same list when nothing was replaced) and the reason of a block, or None.
    """
    if not chain:
        return messages, None
    return _run(_CONTEXT, chain, messages, None, watch or _watch(event_bus))


def intercept_provider_request(
    chain: Sequence[Interceptor],
    request: ProviderRequest,
    *,
    event_bus: EventBus | None = None,
    watch: Watch | None = None,
) -> tuple[ProviderRequest, str | None]:
    """Run the `provider_request` chain over the envelope of one call.

    Returns the effective envelope (the same object when nothing was replaced) and the reason of a block, or None.
    """
    if not chain:
        return request, None
    return _run(_PROVIDER_REQUEST, chain, request, None, watch or _watch(event_bus))


def intercept_tool_call(
    chain: Sequence[Interceptor], call: ToolCall, *, event_bus: EventBus | None = None, watch: Watch | None = None
) -> tuple[ToolCall, str | None]:
    """Run the `tool_call` chain over a proposed call. An interceptor that fails blocks it.

    Returns the effective call (the same object when nothing was replaced; always with the original id) and the reason
    of a block, or None.
    """
    if not chain:
        return call, None
    return _run(_TOOL_CALL, chain, call, call, watch or _watch(event_bus))


def intercept_tool_result(
    chain: Sequence[Interceptor],
    call: ToolCall,
    result: ToolResult,
    *,
    event_bus: EventBus | None = None,
    watch: Watch | None = None,
) -> ToolResult:
    """Run the `tool_result` chain over the result of an executed call.

    Returns the effective result: the same object when nothing was replaced, a placeholder that names the reason when
    the result is withheld.
    """
    if not chain:
        return result
    effective, reason = _run(_TOOL_RESULT, chain, result, call, watch or _watch(event_bus))
    if reason is not None:
        return ToolResult(f"[tool result withheld by interceptor: {reason}]")
    return effective  # type: ignore[no-any-return]


def _watch(event_bus: EventBus | None) -> Watch:
    """A chain that is run by hand, inside an interceptor say, is still run for the conversation around it."""
    return Watch(None if event_bus is None else event_bus.publish, current_run())


def _run(
    seam: _Seam, chain: Sequence[Interceptor], value: Any, call: ToolCall | None, watch: Watch
) -> tuple[Any, str | None]:
    ask, observe = seam.ask, watch.observe
    frame = Frame(watch.identity, running.get())
    token = running.set(frame)
    try:
        for fn in chain:
            frame.fn = fn
            started = perf_counter_ns() if observe is not None else 0
            judged = value
            try:
                decision = ask(fn, value, call)
                if decision is None or decision is _ALLOW:
                    continue
                kind = _kind_of(decision)
                if kind == "allow":
                    continue
                verdict, reason = ("replaced", None) if kind == "replace" else ("blocked", _reason_text(decision, fn))
                if kind == "replace":
                    value = seam.adopt(value, decision.value)
            except Exception as exc:  # the one place where an interceptor's failure is judged
                verdict, reason = "error", f"interceptor error: {interceptor_name(fn)}: {_describe(exc)}"
            _tell(watch, seam, fn, verdict, reason, call, started, judged, value)
            if verdict == "blocked" or (verdict == "error" and seam.fails_closed):
                return value, reason
    finally:
        running.reset(token)
    return value, None


_ALLOW = InterceptDecision.allow()


def _kind_of(decision: Any) -> str:
    """Return the kind of a well-formed decision. Raises `TypeError` for anything else: junk is no consent."""
    kind: str | None = decision.kind if issubclass(type(decision), InterceptDecision) else None
    if kind is not None and kind in ("allow", "replace", "block"):
        return kind
    if inspect.iscoroutine(decision):
        decision.close()
    raise TypeError(f"an interceptor returns an InterceptDecision or None, not {class_name(decision)}")


def _tell(
    watch: Watch,
    seam: _Seam,
    fn: Interceptor,
    verdict: str,
    reason: str | None,
    call: ToolCall | None,
    started: int,
    judged: Any,
    value: Any,
) -> None:
    """Tell of a decision about `judged`, as the interceptor saw it, which became `value`."""
    if watch.observe is None:
        return
    spent = (perf_counter_ns() - started) / 1000
    call = judged if seam is _TOOL_CALL else call
    who = watch.identity
    try:
        before, after = _change(seam, verdict, judged, value) if watch.shows_changes else (None, None)
        event = InterceptorEvent(
            seam=seam.name,
            decision=verdict,
            reason=reason,
            tool_name=call.name if call else None,
            call_id=call.id if call else None,
            interceptor=interceptor_name(fn),
            duration_us=spent,
            version=str(interceptor_version(fn) or ""),
            run_id=who.run_id if who else "",
            conversation_id=who.conversation_id if who else "",
            lane=who.lane if who else "",
            depth=who.depth if who else 0,
            before=before,
            after=after,
        )
        watch.observe(event)
    except Exception:  # whoever watches cannot break a decision
        _log.warning("an observer of interceptor decisions raised and is skipped", exc_info=True)


def _change(seam: _Seam, verdict: str, judged: Any, value: Any) -> tuple[Any, Any]:
    """What there is to see of a change; of a refusal, only the call: a result that is withheld stays so."""
    if verdict == "replaced":
        return difference(judged, value)
    return (judged.sealed() if seam is _TOOL_CALL else None), None


def _reason_text(decision: InterceptDecision, fn: Interceptor) -> str:
    """Return the words of a block. Never raises: a block is a block, whatever its reason does when it is looked at."""
    try:
        reason = decision.reason
    except Exception:
        reason = None
    text = "" if reason is None else safe_text(reason).strip()[:_REASON_LIMIT]
    return text or f"no reason was given ({interceptor_name(fn)})"


def _describe(exc: Exception) -> str:
    text = safe_text(exc)[:_TEXT_LIMIT]
    return f"{class_name(exc)}: {text}" if text else class_name(exc)


def _ask_context(fn: Interceptor, messages: list[Message], _call: ToolCall | None) -> Any:
    return fn(list(messages))


def _adopt_context(_before: list[Message], value: Any) -> list[Message]:
    return _message_list(value)


def _message_list(value: Any) -> list[Message]:
    if not isinstance(value, list):
        raise TypeError(f"the replacement must be a list of messages, not {type(value).__name__}")
    kinds = set(map(type, value))
    for kind in kinds:
        if not issubclass(kind, Message):
            raise TypeError(f"the replaced message list holds a {kind.__name__}")
    return list(value) if kinds <= {Message} else [_plain_message(message) for message in value]


def _plain_message(message: Message) -> Message:
    """Take a message of a class of its own, which may be editable, for what it says now."""
    if type(message) is Message:
        return message
    return Message(message.role, message.content, message.tool_calls, message.call_id, message.content_blocks)


def _ask_request(fn: Interceptor, request: ProviderRequest, _call: ToolCall | None) -> Any:
    headers = None if request.headers is None else dict(request.headers)
    kwargs = thaw(request.kwargs) if request.kwargs else {}
    tools = None if request.tools is None else freeze(request.tools)
    return fn(ProviderRequest(request.model, list(request.messages), tools, kwargs, headers))


def _adopt_request(_before: ProviderRequest, value: Any) -> ProviderRequest:
    _expect(value, ProviderRequest, "replacement")
    _expect(value.model, str, "model")
    _expect(value.kwargs, dict, "kwargs")
    if value.tools is not None:
        _expect(value.tools, (list, tuple), "tools")
        for schema in value.tools:
            _expect(schema, dict, "tool schema")
    for key in value.kwargs:
        _expect(key, str, "kwargs key")
    headers = None if value.headers is None else _checked_headers(value.headers)
    tools = None if value.tools is None else freeze(value.tools)
    return ProviderRequest(value.model, _message_list(value.messages), tools, thaw(value.kwargs), headers)


def _checked_headers(headers: Any) -> dict[str, str]:
    _expect(headers, dict, "headers")
    for name, text in headers.items():
        _expect(name, str, "header name")
        _expect(text, str, "header value")
        if "\n" in name + text or "\r" in name + text:
            raise ValueError("a header holds a line break")
    return dict(headers)


def _ask_call(fn: Interceptor, call: ToolCall, _call: ToolCall | None) -> Any:
    return fn(ToolCall(call.id, call.name, thaw(call.arguments)))


def _adopt_call(before: ToolCall, value: Any) -> ToolCall:
    _expect(value, ToolCall, "replacement")
    _expect(value.name, str, "tool name")
    _expect(value.arguments, dict, "arguments")
    if not value.name.strip():
        raise ValueError("the replaced call names no tool")
    return ToolCall(before.id, value.name, freeze_json(value.arguments))


def _ask_result(fn: Interceptor, result: ToolResult, call: ToolCall | None) -> Any:
    assert call is not None
    try:
        metadata = thaw(result.metadata) if result.metadata else {}
    except Exception:  # what a tool put there must not keep an interceptor from judging its output
        metadata = {}
    mine = ToolResult(result.output, result.error, metadata)
    return fn(ToolCall(call.id, call.name, thaw(call.arguments)), mine)


def _adopt_result(_before: ToolResult, value: Any) -> ToolResult:
    _expect(value, ToolResult, "replacement")
    output, error, metadata = value.output, value.error, value.metadata
    _expect(output, str, "output")
    _expect(error, (str, type(None)), "error")
    _expect(metadata, dict, "metadata")
    return ToolResult(safe_text(output), None if error is None else safe_text(error), thaw(metadata))


def _expect(value: Any, kind: type | tuple[type, ...], what: str) -> None:
    if not isinstance(value, kind):
        wanted = kind.__name__ if isinstance(kind, type) else " or ".join(item.__name__ for item in kind)
        raise TypeError(f"the {what} must be {wanted}, not {type(value).__name__}")


_CONTEXT = _Seam("context", False, _ask_context, _adopt_context)
_PROVIDER_REQUEST = _Seam("provider_request", False, _ask_request, _adopt_request)
_TOOL_CALL = _Seam("tool_call", True, _ask_call, _adopt_call)
_TOOL_RESULT = _Seam("tool_result", False, _ask_result, _adopt_result)
