"""Options of packs: a mistake is an error when the pack is made, not a gate that never closes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chimera.plugins import packs
from chimera.plugins.packs._options import names

PlanGatePlugin: Any = packs.PlanGatePlugin
RedactorPlugin: Any = packs.RedactorPlugin
DelegateSpawnerPlugin: Any = packs.DelegateSpawnerPlugin


def test_names_come_without_repetitions_in_order() -> None:
    assert names(iter(["b", "a", "b"]), "x") == ("b", "a")


@pytest.mark.parametrize("wrong", ["bash", ["a", ""], [" a"], ["a "], [None], [1], [["a"]]])
@pytest.mark.parametrize(
    "make",
    [
        lambda value: PlanGatePlugin(gated_tools=value),
        lambda value: PlanGatePlugin(plan_tools=value),
        lambda value: RedactorPlugin(headers=value),
        lambda value: DelegateSpawnerPlugin(names=value),
    ],
)
def test_lists_of_names_are_checked(make: Callable[[Any], object], wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"takes a list of names|which is no name"):
        make(wrong)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: PlanGatePlugin(gated_tools=[]), "needs both"),
        (lambda: PlanGatePlugin(plan_tools=()), "needs both"),
        (lambda: PlanGatePlugin(gated_tools=["bash", "todo"]), "cannot be gated and open the gate: todo"),
        (lambda: PlanGatePlugin(scope="global"), "scope is 'conversation' or 'process', not 'global'"),
        (lambda: RedactorPlugin(pattern="("), "unterminated"),
        (lambda: RedactorPlugin(pattern="a*"), "empty text"),
        (lambda: RedactorPlugin(pattern=b"x"), "bytes"),
        (lambda: RedactorPlugin(replacement=None), "replacement is a text"),
        (lambda: DelegateSpawnerPlugin(prefix=""), "needs a prefix or names"),
        (lambda: DelegateSpawnerPlugin(prefix=None), "prefix is a text"),
        (lambda: DelegateSpawnerPlugin(delegate_tool=""), "no name"),
    ],
)
def test_options_that_cannot_work_are_refused(make: Callable[[], object], text: str) -> None:
    with pytest.raises(Exception, match=text) as caught:
        make()
    assert not isinstance(caught.value, TypeError)


@pytest.mark.parametrize("kind", [PlanGatePlugin, RedactorPlugin, DelegateSpawnerPlugin])
def test_options_go_by_name_only_and_unknown_ones_are_errors(kind: Any) -> None:
    with pytest.raises(TypeError):
        kind("x")
    with pytest.raises(TypeError, match="unexpected keyword"):
        kind(unknown=1)
    assert kind().name in ("plan-gate", "redactor", "delegate-spawner")
