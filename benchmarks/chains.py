"""What a chain of interceptors costs at each seam, against a bare Python loop that calls the same functions.

The bare loop does what a chain must do in any case: call each function with what it judges and compare the kind of its
answer. A chain also gives each interceptor values of its own to edit (a list, a call, a result, an envelope), for which
1.5 µs are allowed, checks what comes back, and says for whom it is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks._kit import Row, in_turns, report, seconds
from chimera.core.interception import (
    SEAMS,
    InterceptDecision,
    ProviderRequest,
    intercept_context,
    intercept_provider_request,
    intercept_tool_call,
    intercept_tool_result,
)
from chimera.core.seams import Watch
from chimera.types import Message, ToolCall, ToolResult

_LENGTHS = (0, 1, 3, 10)
_REPEATS = 2000
_MESSAGES = [Message.user("Go."), Message.assistant("Yes.")]
_CALL = ToolCall("c1", "write_file", {"path": "a.txt", "content": "text"}).sealed()
_RESULT = ToolResult("done")
_REQUEST = ProviderRequest("model", _MESSAGES)
_WATCH = Watch()

RUNS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "context": lambda chain: intercept_context(chain, _MESSAGES, watch=_WATCH),
    "provider_request": lambda chain: intercept_provider_request(chain, _REQUEST, watch=_WATCH),
    "tool_call": lambda chain: intercept_tool_call(chain, _CALL, watch=_WATCH),
    "tool_result": lambda chain: intercept_tool_result(chain, _CALL, _RESULT, watch=_WATCH),
}
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "context": (_MESSAGES,),
    "provider_request": (_REQUEST,),
    "tool_call": (_CALL,),
    "tool_result": (_CALL, _RESULT),
}


def decisions(seam: str) -> dict[str, InterceptDecision | None]:
    value = ARGUMENTS[seam][-1]
    return {
        "allow": None,
        "replace": InterceptDecision.replace(list(value) if isinstance(value, list) else value),
        "block": InterceptDecision.block("no"),
    }


def bare(chain: Sequence[Any], arguments: tuple[Any, ...]) -> Any:
    value = arguments[-1]
    for fn in chain:
        decision = fn(*arguments)
        if decision is None or decision.kind == "allow":
            continue
        if decision.kind == "block":
            return value, decision.reason
        value = decision.value
    return value, None


def rows() -> Iterator[Row]:
    for seam in SEAMS:
        run, arguments = RUNS[seam], ARGUMENTS[seam]
        for kind, decision in decisions(seam).items():
            for length in _LENGTHS:
                if length or kind == "allow":
                    yield _row(seam, kind, length, run, arguments, decision)


def _row(seam: str, kind: str, length: int, run: Any, arguments: tuple[Any, ...], decision: Any) -> Row:
    def answers(*_arguments: Any) -> Any:
        return decision

    chain = tuple([answers] * length)
    ours, plain, nothing = in_turns(
        _timed(lambda: run(chain)), _timed(lambda: bare(chain, arguments)), _timed(lambda: None), rounds=9
    )
    ours, plain = (ours - nothing) * 1e6, (plain - nothing) * 1e6
    if kind != "allow":
        return Row(f"{seam}, {kind} × {length}", f"{ours:.2f} µs (bare {plain:.2f})")
    limit = 1.5 * plain + 0.3 + 1.5 * length if length else 0.1
    return Row(f"{seam}, allow × {length}", f"{ours:.2f} µs (bare {plain:.2f})", f"{limit:.2f} µs", ours <= limit)


def _timed(work: Callable[[], Any]) -> Callable[[], float]:
    def repeat() -> None:
        for _ in range(_REPEATS):
            work()

    return lambda: seconds(repeat) / _REPEATS


def main() -> None:
    report("Chain cost", rows())


if __name__ == "__main__":
    main()
