"""The pure functions of the seams: decisions, bundles, the merge, and what a chain does with whatever comes back."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from chimera.core.interception import (
    SEAMS,
    InterceptDecision,
    Interceptors,
    ProviderRequest,
    intercept_context,
    intercept_provider_request,
    intercept_tool_call,
    intercept_tool_result,
    interceptor_name,
    merge_interceptors,
)
from chimera.core.loop_config import LoopConfig
from chimera.errors import MisuseError
from chimera.types import Message, ToolCall, ToolResult
from tests.core.driving import call

allow, replace, block = InterceptDecision.allow, InterceptDecision.replace, InterceptDecision.block
MESSAGES = [Message.user("hi")]
REQUEST = ProviderRequest("m", MESSAGES, [{"type": "function"}], {"temperature": 0.5}, {"Authorization": "key"})
CALL = call("note", {"n": [1, {"deep": True}]})
RESULT = ToolResult("out", "err", {"k": [1]})


def run(seam: str, *chain: Any) -> tuple[Any, Any, str | None]:
    """Return what the chain was given, what came out, and the reason of a block."""
    if seam == "context":
        return (MESSAGES, *intercept_context(chain, MESSAGES))
    if seam == "provider_request":
        return (REQUEST, *intercept_provider_request(chain, REQUEST))
    if seam == "tool_call":
        return (CALL, *intercept_tool_call(chain, CALL))
    result = intercept_tool_result(chain, CALL, RESULT)
    withheld = result.output.removeprefix("[tool result withheld by interceptor: ").removesuffix("]")
    return RESULT, result, withheld if withheld != result.output else None


GOOD: dict[str, Any] = {
    "context": [Message.user("other")],
    "provider_request": ProviderRequest("n", [Message.user("other")]),
    "tool_call": ToolCall("c1", "other", {"m": 2}),
    "tool_result": ToolResult("other"),
}
BAD: dict[str, list[Any]] = {
    "context": [None, (Message.user("x"),), ["text"], [Message.user("x"), None], "text", Message.user("x"), {}],
    "provider_request": [
        None,
        [Message.user("x")],
        ProviderRequest(None, MESSAGES),  # type: ignore[arg-type]
        ProviderRequest("m", tuple(MESSAGES)),  # type: ignore[arg-type]
        ProviderRequest("m", ["text"]),  # type: ignore[list-item]
        ProviderRequest("m", MESSAGES, "tools"),  # type: ignore[arg-type]
        ProviderRequest("m", MESSAGES, ["tool"]),  # type: ignore[list-item]
        ProviderRequest("m", MESSAGES, None, None),  # type: ignore[arg-type]
        ProviderRequest("m", MESSAGES, None, {1: 2}),  # type: ignore[dict-item]
        ProviderRequest("m", MESSAGES, None, {}, [("a", "b")]),  # type: ignore[arg-type]
        ProviderRequest("m", MESSAGES, None, {}, {"a": 1}),  # type: ignore[dict-item]
        ProviderRequest("m", MESSAGES, None, {}, {1: "a"}),  # type: ignore[dict-item]
        ProviderRequest("m", MESSAGES, None, {}, {"a": "b\r\nx: y"}),
    ],
    "tool_call": [
        None,
        {"name": "note", "arguments": {}},
        ToolCall("c1", "", {}),
        ToolCall("c1", "  ", {}),
        ToolCall("c1", None, {}),  # type: ignore[arg-type]
        ToolCall("c1", "note", None),  # type: ignore[arg-type]
        ToolCall("c1", "note", [1]),  # type: ignore[arg-type]
        ToolCall("c1", "note", {1: "a"}),  # type: ignore[dict-item]
        ToolCall("c1", "note", {"deep": [{2: "a"}]}),
        ToolCall("c1", "note", {"a": object()}),
        ToolCall("c1", "note", {"a": float("nan")}),
        ToolCall("c1", "note", {"a": {1, 2}}),
        RESULT,
    ],
    "tool_result": [
        None,
        "text",
        ToolResult(None),  # type: ignore[arg-type]
        ToolResult("x", 3),  # type: ignore[arg-type]
        ToolResult("x", None, None),  # type: ignore[arg-type]
        CALL,
        ToolResult,
    ],
}
CASES = [(seam, value) for seam, values in BAD.items() for value in values]
every_seam = pytest.mark.parametrize("seam", SEAMS)


def test_the_seams_are_the_fields_in_their_order() -> None:
    assert SEAMS == ("context", "provider_request", "tool_call", "tool_result")


def test_decisions_are_values() -> None:
    assert (allow().kind, replace(3).kind, block("no").kind) == ("allow", "replace", "block")
    assert (replace(3).value, block("no").reason) == (3, "no")
    assert allow() == InterceptDecision("allow")


@every_seam
@pytest.mark.parametrize("verdict", [None, allow(), InterceptDecision("allow")], ids=["none", "allow", "made by hand"])
def test_when_nothing_replaces_the_same_object_comes_back(seam: str, verdict: Any) -> None:
    before, after, reason = run(seam, lambda *_: verdict, lambda *_: verdict)
    assert after is before
    assert reason is None
    before, after, _ = run(seam)
    assert after is before


@every_seam
def test_a_good_replacement_is_adopted_by_value(seam: str) -> None:
    _, after, reason = run(seam, lambda *_: replace(GOOD[seam]))
    assert after == GOOD[seam]
    assert after is not GOOD[seam]
    assert reason is None


@pytest.mark.parametrize(("seam", "value"), CASES)
def test_a_replacement_of_the_wrong_shape_is_an_error_of_its_seam(seam: str, value: Any) -> None:
    later: list[Any] = []
    before, after, reason = run(seam, lambda *_: replace(value), lambda *given: later.append(given))
    assert after is before
    if seam == "tool_call":
        assert reason is not None
        assert reason.startswith("interceptor error: ")
        assert later == []
    else:
        assert reason is None
        assert len(later) == 1


@every_seam
def test_an_exception_follows_the_policy_of_its_seam(seam: str) -> None:
    def crash(*_: Any) -> InterceptDecision:
        raise ValueError("broken")

    before, after, reason = run(seam, lambda *_: replace(GOOD[seam]), crash, lambda *_: None)
    assert after == GOOD[seam]
    if seam == "tool_call":
        assert reason == f"interceptor error: {interceptor_name(crash)}: ValueError: broken"
    else:
        assert reason is None
    assert before is not after


@every_seam
def test_a_block_stops_the_chain_and_nothing_can_undo_it(seam: str) -> None:
    later: list[Any] = []
    _, _, reason = run(seam, lambda *_: block("first"), lambda *_: later.append(1), lambda *_: block("second"))
    assert (reason, later) == ("first", [])


@every_seam
@pytest.mark.parametrize("reason", [None, "", "   ", 0, False, [], {}, ValueError("why"), object()])
def test_a_block_is_a_block_whatever_its_reason_holds(seam: str, reason: Any) -> None:
    def gate(*_: Any) -> InterceptDecision:
        return block(reason)

    _, _, told = run(seam, gate)
    assert told
    assert told.strip()
    if reason is None or (isinstance(reason, str) and not reason.strip()):
        assert interceptor_name(gate) in told


@every_seam
def test_a_reason_that_cannot_be_printed_is_still_a_block(seam: str) -> None:
    class Hostile:
        def __str__(self) -> str:
            raise RuntimeError

    assert run(seam, lambda *_: block(Hostile()))[2] == "<unprintable Hostile>"
    assert len(run(seam, lambda *_: block("x" * 1_000_000))[2] or "") == 10_000
    assert InterceptDecision.block().reason is None


@pytest.mark.parametrize("new_id", ["", "other", None, 7])
def test_the_original_id_is_restored_and_later_interceptors_see_it(new_id: Any) -> None:
    seen: list[Any] = []
    after, _ = intercept_tool_call(
        [lambda c: replace(ToolCall(new_id, c.name, c.arguments)), lambda c: seen.append(c.id)], CALL
    )
    assert (after.id, seen) == ("c1", ["c1"])


def test_adopted_arguments_are_plain_json() -> None:
    class Text(str):
        pass

    class Fields(dict[str, Any]):
        pass

    value = ToolCall("c1", "note", Fields({Text("a"): Text("b"), "t": (1, 2), "n": True}))
    after, _ = intercept_tool_call([lambda _: replace(value)], CALL)
    assert after.arguments == {"a": "b", "t": [1, 2], "n": True}
    assert [type(item) for pair in after.arguments.items() for item in pair][:2] == [str, str]
    with pytest.raises(TypeError, match="read-only"):
        after.arguments["x"] = 1


def test_true_in_the_place_of_one_is_a_replacement() -> None:
    """Nothing is judged with `==`: values that compare equal may still differ."""
    after, _ = intercept_tool_call([lambda c: replace(ToolCall(c.id, c.name, {"n": True}))], call("note", {"n": 1}))
    assert after.arguments["n"] is True


def test_placeholders_are_successful_results_without_the_old_fields() -> None:
    result = intercept_tool_result([lambda *_: block("why")], CALL, RESULT)
    assert result == ToolResult("[tool result withheld by interceptor: why]")
    assert result.success


@pytest.mark.parametrize("chain", [lambda _: None, 3, "text", [3], ["ab"], [None], [object()]])
def test_a_chain_holds_callables(chain: Any) -> None:
    with pytest.raises(TypeError):
        Interceptors(tool_call=chain)


async def a_coroutine_function(_call: ToolCall) -> None: ...


class _AsyncCallable:
    async def __call__(self, _call: ToolCall) -> None: ...

    async def method(self, _call: ToolCall) -> None: ...

    async def generate(self, _call: ToolCall) -> Any:
        yield


@every_seam
@pytest.mark.parametrize(
    "fn",
    [
        a_coroutine_function,
        functools.partial(a_coroutine_function),
        _AsyncCallable(),
        functools.partial(_AsyncCallable()),
        staticmethod(a_coroutine_function),
        _AsyncCallable().method,
        _AsyncCallable().generate,
    ],
)
def test_asynchronous_interceptors_are_refused_when_configured(seam: str, fn: Any) -> None:
    with pytest.raises(TypeError, match="asynchronous"):
        Interceptors(**{seam: [fn]})


def test_any_iterable_makes_a_chain_and_none_is_an_empty_one() -> None:
    fns = (lambda _: None, lambda _: None)
    assert Interceptors(tool_call=fns, context=iter(fns)) == Interceptors(tool_call=[*fns], context=[*fns])  # type: ignore[arg-type]
    assert Interceptors(tool_call=None) == Interceptors()  # type: ignore[arg-type]


def test_a_bundle_is_true_when_any_chain_is() -> None:
    assert not Interceptors()
    chain: list[Any] = [lambda *_: None]
    for seam in SEAMS:
        assert Interceptors(**{seam: chain})


class TestMerge:
    @staticmethod
    def bundle(tag: str) -> Interceptors:
        def named(seam: str) -> Any:
            def fn(*_: Any) -> None: ...

            fn.__qualname__ = f"{tag}.{seam}"
            return fn

        return Interceptors(**{seam: [named(seam)] for seam in SEAMS})

    def test_nothing_merges_to_none(self) -> None:
        assert merge_interceptors() is None
        assert merge_interceptors(None, Interceptors(), None) is None

    def test_one_bundle_passes_through_untouched(self) -> None:
        host = self.bundle("host")
        assert merge_interceptors(host) is host
        assert merge_interceptors(None, Interceptors(), host, None) is host

    def test_several_are_joined_seam_by_seam_in_order(self) -> None:
        first, second, third = (self.bundle(tag) for tag in ("a", "b", "c"))
        merged = merge_interceptors(first, second, None, third)
        assert merged is not None
        for seam in SEAMS:
            assert [interceptor_name(fn) for fn in getattr(merged, seam)] == [f"{tag}.{seam}" for tag in "abc"]

    def test_the_merge_leaves_its_bundles_alone(self) -> None:
        first, second = self.bundle("a"), self.bundle("b")
        merged = merge_interceptors(first, second)
        assert merged is not None
        merged.tool_call.clear()
        assert len(first.tool_call) == len(second.tool_call) == 1

    def test_an_interceptor_that_stands_twice_runs_twice(self) -> None:
        met: list[int] = []

        def count(_call: ToolCall) -> None:
            met.append(1)

        merged = merge_interceptors(Interceptors(tool_call=[count]), Interceptors(tool_call=[count]))
        assert merged is not None
        intercept_tool_call(merged.tool_call, CALL)
        assert met == [1, 1]

    @pytest.mark.parametrize("junk", [{}, [], "text", {"tool_call": []}])
    def test_only_bundles_merge(self, junk: Any) -> None:
        with pytest.raises(TypeError, match="only Interceptors"):
            merge_interceptors(junk)


@pytest.mark.parametrize("junk", [{}, [], [lambda _: None], "text"])
def test_a_configuration_takes_a_bundle_and_nothing_like_one(junk: Any) -> None:
    with pytest.raises(MisuseError, match="interceptors must be Interceptors"):
        LoopConfig(interceptors=junk)


def test_names_of_every_kind_of_callable() -> None:
    class Policy:
        def __call__(self, *_: Any) -> None: ...

        def method(self, *_: Any) -> None: ...

    class Closed:
        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError("not for you")

    assert interceptor_name(run) == "run"
    assert interceptor_name(Policy()).endswith("Policy")
    assert interceptor_name(Policy().method).endswith("Policy.method")
    assert interceptor_name(functools.partial(run, "context")) == "run"
    assert interceptor_name(lambda: None).endswith("<lambda>")
    assert interceptor_name(Closed()).endswith("Closed")
