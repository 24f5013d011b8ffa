from __future__ import annotations

import gc
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from chimera.core import versions
from chimera.core.decisions import Chains, InterceptDecision, Interceptors
from chimera.core.seams import intercept_tool_call
from chimera.core.versions import PolicyVersion, interceptor_version, set_interceptor_version, versions_in
from chimera.events import EventBus
from chimera.types import ToolCall

FIRST = PolicyVersion("gate", 1, "abc", 7)
SECOND = replace(FIRST, count=2, digest="def")


class Gate:
    """Equal to every other gate, and not hashable."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Gate)

    def __call__(self, *args: Any) -> InterceptDecision:
        return InterceptDecision.block("no")

    def method(self, *args: Any) -> None:
        return None


@dataclass(slots=True)
class Slotted:
    """What cannot be referenced weakly."""

    number: int = 0

    def __call__(self, *args: Any) -> None:
        return None


def fresh() -> list[Any]:
    return [Gate(), Gate().method, lambda *args: None, partial(Gate().method, 1), Slotted()]


@pytest.mark.parametrize("index", range(5))
def test_a_version_belongs_to_the_very_object(index: int) -> None:
    fn, other = fresh()[index], fresh()[index]
    set_interceptor_version(fn, FIRST)
    assert interceptor_version(fn) == FIRST
    assert interceptor_version(other) is None
    set_interceptor_version(fn, SECOND)
    assert interceptor_version(fn) == SECOND


def test_nothing_is_kept_of_what_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "_KEPT", 3)
    before = len(versions._by_id)
    for _ in range(50):
        for fn in fresh():
            set_interceptor_version(fn, FIRST)
    del fn
    gc.collect()
    assert len(versions._by_id) <= before
    assert len(versions._kept) <= 3


def test_a_new_object_in_the_place_of_an_old_one_has_no_version() -> None:
    for _ in range(200):
        fn = Gate()
        assert interceptor_version(fn) is None
        set_interceptor_version(fn, FIRST)
        del fn


def test_versions_are_written_with_what_there_is() -> None:
    assert str(FIRST) == "gate@1-abc"
    assert str(replace(FIRST, digest="")) == "gate@1"


def test_chains_name_each_version_once() -> None:
    one, two, mine = Gate(), Gate(), Gate()
    set_interceptor_version(one, SECOND)
    set_interceptor_version(two, FIRST)
    chains = Chains.of(Interceptors(context=[two, mine], tool_call=[one, two]))
    assert versions_in(chains) == (FIRST, SECOND)
    assert versions_in(Chains()) == ()


def test_events_say_the_version() -> None:
    gate, bare, bus = Gate(), Gate(), EventBus()
    set_interceptor_version(gate, FIRST)
    heard: list[Any] = []
    bus.subscribe("interceptor", heard.append)
    for fn in (gate, bare):
        intercept_tool_call([fn], ToolCall("1", "bash", {}), event_bus=bus)
    assert [event.version for event in heard] == ["gate@1-abc", ""]
