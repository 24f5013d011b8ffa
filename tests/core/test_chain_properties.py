"""Random chains against a second, simpler account of what a chain does."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.core.interception import (
    SEAMS,
    InterceptDecision,
    Interceptors,
    ProviderRequest,
    intercept_context,
    intercept_provider_request,
    intercept_tool_call,
    intercept_tool_result,
    merge_interceptors,
)
from chimera.core.seams import Watch
from chimera.events import InterceptorEvent
from chimera.frozen import thaw
from chimera.types import Message, ToolCall, ToolResult

texts = st.text(max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, json_values, max_size=3)
names = st.sampled_from(["note", "bash", "spawn_x"])
tool_calls = st.builds(ToolCall, texts, names, objects)
messages = st.builds(
    Message, st.sampled_from(["user", "assistant"]), texts, st.lists(tool_calls, max_size=2).map(tuple)
)
conversations = st.lists(messages, max_size=4)
headers = st.none() | st.dictionaries(texts.filter(lambda t: "\n" not in t and "\r" not in t), st.just("v"), max_size=2)
requests = st.builds(ProviderRequest, texts, conversations, st.none() | st.lists(objects, max_size=2), objects, headers)
results = st.builds(ToolResult, texts, st.none() | texts, objects)
VALUES: dict[str, Any] = {
    "context": conversations,
    "provider_request": requests,
    "tool_call": tool_calls,
    "tool_result": results,
}
junk = st.sampled_from([True, False, 0, 1, "", "allow", (), object(), InterceptDecision, {"kind": "block"}])
bad_replacements = st.sampled_from([None, 3, "x", object(), [None], ToolCall("a", "", {}), ToolResult(3)])  # type: ignore[arg-type]


@dataclass
class Link:
    """One interceptor of a random chain: what it does, with what, and whether it spoils what it was handed first."""

    deed: str
    value: Any = None
    spoils: bool = False

    def __call__(self, *given: Any) -> Any:
        if self.spoils:
            spoil(given)
        if self.deed == "raise":
            raise ValueError(self.value)
        if self.deed == "junk":
            return self.value
        if self.deed == "allow":
            return self.value
        return InterceptDecision(self.deed, *((self.value,) if self.deed != "block" else (None, self.value)))  # type: ignore[arg-type]


def spoil(value: Any) -> None:
    """Edit whatever can be edited."""
    if isinstance(value, tuple):
        for item in value:
            spoil(item)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            spoil(getattr(value, name))
    elif isinstance(value, list | dict):
        spoil(tuple(value.values()) if isinstance(value, dict) else tuple(value))
        try:
            value.clear()
        except TypeError:
            return


def links(seam: str) -> st.SearchStrategy[Link]:
    spoils = st.booleans()
    allowed = st.sampled_from([None, InterceptDecision.allow(), InterceptDecision("allow")])
    return st.one_of(
        st.builds(Link, st.just("allow"), allowed, spoils),
        st.builds(Link, st.just("replace"), VALUES[seam], spoils),
        st.builds(Link, st.just("replace"), bad_replacements, spoils),
        st.builds(Link, st.just("block"), st.none() | texts | st.integers(), spoils),
        st.builds(Link, st.just("raise"), texts, spoils),
        st.builds(Link, st.just("junk"), junk, spoils),
    )


def chains(seam: str) -> st.SearchStrategy[list[Link]]:
    return st.lists(links(seam), max_size=6)


def fits(seam: str, value: Any) -> bool:
    """The oracle's own idea of a well-formed replacement; the strategies make clearly good and clearly bad ones."""
    if seam == "context":
        return isinstance(value, list) and all(isinstance(item, Message) for item in value)
    if seam == "tool_call":
        return isinstance(value, ToolCall) and value.name != ""
    if seam == "tool_result":
        return isinstance(value, ToolResult) and isinstance(value.output, str)
    return isinstance(value, ProviderRequest)


def oracle(seam: str, chain: list[Link], value: Any, call_id: str) -> tuple[Any, bool, list[str]]:
    """Return the effective value, whether the chain stopped, and what was decided, without the code under test."""
    told: list[str] = []
    for link in chain:
        if link.deed == "allow":
            continue
        if link.deed == "block":
            return value, True, [*told, "blocked"]
        if link.deed == "replace" and fits(seam, link.value):
            value = ToolCall(call_id, link.value.name, link.value.arguments) if seam == "tool_call" else link.value
            told.append("replaced")
            continue
        told.append("error")
        if seam == "tool_call":
            return value, True, told
    return value, False, told


CALL = ToolCall("c1", "note", {"n": [1]})
RUNNERS: dict[str, Callable[..., tuple[Any, str | None]]] = {
    "context": intercept_context,
    "provider_request": intercept_provider_request,
    "tool_call": intercept_tool_call,
}


def run(seam: str, chain: list[Any], value: Any) -> tuple[Any, str | None, list[str]]:
    heard: list[InterceptorEvent] = []
    watch = Watch(heard.append)
    if seam != "tool_result":
        return (*RUNNERS[seam](chain, value, watch=watch), [event.decision for event in heard])
    result = intercept_tool_result(chain, CALL, value, watch=watch)
    blocked = [event.reason for event in heard if event.decision == "blocked"]
    if blocked:
        assert result == ToolResult(f"[tool result withheld by interceptor: {blocked[0]}]")
    return result, (blocked[0] if blocked else None), [event.decision for event in heard]


every_seam = pytest.mark.parametrize("seam", SEAMS)


@every_seam
@given(data=st.data())
def test_a_chain_does_what_the_oracle_says(seam: str, data: st.DataObject) -> None:
    value = data.draw(VALUES[seam])
    chain = data.draw(chains(seam))
    plain = [Link(link.deed, thawed(link.value)) for link in chain]
    pristine = thawed(value)
    expected, stopped, told = oracle(seam, plain, pristine, getattr(value, "id", ""))
    effective, reason, decisions = run(seam, list(chain), value)
    assert decisions == told
    assert (reason is not None) is stopped
    if seam != "tool_result" or not stopped:
        assert effective == expected
    assert value == pristine, "whatever the chain did, what came in is as it was"
    if "replaced" not in told and not (seam == "tool_result" and stopped):
        assert effective is value
    if seam == "tool_call":
        assert effective.id == value.id


@every_seam
@given(data=st.data())
def test_editing_what_was_handed_out_is_as_good_as_not_editing_it(seam: str, data: st.DataObject) -> None:
    value, chain = data.draw(VALUES[seam]), data.draw(chains(seam))
    tidy = [Link(link.deed, thawed(link.value)) for link in chain]
    untidy = [Link(link.deed, thawed(link.value), spoils=True) for link in chain]
    assert run(seam, list(untidy), thawed(value)) == run(seam, list(tidy), thawed(value))


@every_seam
@given(data=st.data())
def test_editing_a_replacement_after_it_was_returned_changes_nothing(seam: str, data: st.DataObject) -> None:
    value, other = data.draw(VALUES[seam]), data.draw(VALUES[seam])
    given = thawed(other)
    effective, _, _ = run(seam, [lambda *_: InterceptDecision.replace(given), lambda *_: spoil((given,))], value)
    if seam == "tool_call":
        other = ToolCall(value.id, other.name, other.arguments)
    assert effective == other


@every_seam
@given(data=st.data())
def test_two_chains_in_a_row_are_one_chain(seam: str, data: st.DataObject) -> None:
    value, first, second = data.draw(VALUES[seam]), data.draw(chains(seam)), data.draw(chains(seam))
    middle, stopped, told = run(seam, list(first), value)
    joined = run(seam, [*first, *second], value)
    if stopped is not None:
        assert joined == (middle, stopped, told)
    else:
        last, reason, later = run(seam, list(second), middle)
        assert joined == (last, reason, [*told, *later])


@given(data=st.data())
def test_the_merge_is_associative_and_keeps_order(data: st.DataObject) -> None:
    numbers = iter(range(1000))

    def bundle() -> Interceptors | None:
        if data.draw(st.booleans()):
            return None
        fns = {seam: [Link("allow", next(numbers)) for _ in range(data.draw(st.integers(0, 2)))] for seam in SEAMS}
        return Interceptors(**fns)  # type: ignore[arg-type]

    bundles = [bundle() for _ in range(data.draw(st.integers(0, 5)))]
    cut = data.draw(st.integers(0, len(bundles)))
    at_once = merge_interceptors(*bundles)
    nested = merge_interceptors(merge_interceptors(*bundles[:cut]), merge_interceptors(*bundles[cut:]))
    assert at_once == nested
    for seam in SEAMS:
        numbered = [link.value for link in getattr(at_once, seam, ())]
        assert numbered == sorted(numbered)
        assert len(numbered) == sum(len(getattr(one, seam)) for one in bundles if one is not None)
    filled = [one for one in bundles if one]
    if len(filled) <= 1:
        assert at_once is (filled[0] if filled else None)


def thawed(value: Any) -> Any:
    """An independent copy of a value, of the kind that an interceptor could have built itself."""
    if isinstance(value, Message | ToolCall | ToolResult | ProviderRequest):
        fields = {name: thawed(getattr(value, name)) for name in value.__dataclass_fields__}
        return type(value)(**fields)
    if isinstance(value, list):
        return [thawed(item) for item in value]
    if isinstance(value, tuple):
        return tuple(thawed(item) for item in value)
    return thaw(value) if isinstance(value, dict) else copy.copy(value)
