"""Policies without rules: exact names, and the strictest of several."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest

from chimera.errors import ConfigError
from chimera.permissions import (
    AllOf,
    AllowAll,
    AllowList,
    DenyAll,
    DenyList,
    InteractivePolicy,
    PermissionAction,
    PermissionDecision,
    PermissionPolicy,
)

ALLOW, DENY, ASK = PermissionAction.ALLOW, PermissionAction.DENY, PermissionAction.ASK


class Always(PermissionPolicy):
    def __init__(self, action: PermissionAction, reason: str = "") -> None:
        self.action, self.reason = action, reason

    def evaluate(self, tool_name: str, args: Mapping[str, Any]) -> PermissionAction:
        return self.action

    def decide(self, tool_name: str, args: Mapping[str, Any]) -> PermissionDecision:
        return PermissionDecision(self.action, self.reason)


def test_allow_all_and_deny_all_judge_every_call_alike() -> None:
    assert AllowAll().evaluate("bash", {"command": "rm -rf /"}) is ALLOW
    assert DenyAll().evaluate("think", {}) is DENY
    assert DenyAll().decide("think", {}) == PermissionDecision(DENY, "no tool is allowed here")


@pytest.mark.parametrize("name", ["read_file2", "read", "Read_File", "read_file ", "mcp__read_file", ""])
def test_lists_take_names_exactly(name: str) -> None:
    assert AllowList(["read_file"]).evaluate(name, {}) is DENY
    assert DenyList(["read_file"]).evaluate(name, {}) is ALLOW


def test_lists_say_why() -> None:
    allowed, denied = AllowList(["read_file", "search"]), DenyList(["bash"])
    assert allowed.decide("search", {}) == PermissionDecision(ALLOW)
    assert allowed.decide("bash", {}).reason == "bash is not among the allowed tools (read_file, search)"
    assert denied.decide("bash", {}) == PermissionDecision(DENY, "bash is on the deny list")
    assert denied.decide("search", {}) == PermissionDecision(ALLOW)
    assert AllowList([]).decide("bash", {}).reason == "bash is not among the allowed tools (none)"


@pytest.mark.parametrize("kind", [AllowList, DenyList, InteractivePolicy])
@pytest.mark.parametrize("names", ["bash", ["bash", ""], ["bash", None], ["  "]])
def test_what_is_no_list_of_names_is_refused(kind: type[Any], names: object) -> None:
    with pytest.raises(ConfigError):
        kind(names)


@pytest.mark.parametrize("actions", list(product((ALLOW, ASK, DENY), repeat=3)))
def test_the_strictest_answer_holds(actions: tuple[PermissionAction, ...]) -> None:
    policy = AllOf([Always(action, f"policy {index}") for index, action in enumerate(actions)])
    strictest = next(action for action in (DENY, ASK, ALLOW) if action in actions)
    assert policy.evaluate("bash", {}) is strictest
    assert policy.decide("bash", {}) == PermissionDecision(strictest, f"policy {actions.index(strictest)}")


@pytest.mark.parametrize("members", [[], [None], [AllowAll(), "deny"], [AllowAll]])
def test_a_combination_needs_policies(members: list[Any]) -> None:
    with pytest.raises(ConfigError):
        AllOf(members)


def test_a_member_that_raises_is_not_passed_over() -> None:
    class Broken(AllowAll):
        def evaluate(self, tool_name: str, args: Mapping[str, Any]) -> PermissionAction:
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        AllOf([Broken(), AllowAll()]).evaluate("bash", {})
