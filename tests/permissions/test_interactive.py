"""The safe default: reading runs, writing and commands are asked for."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from chimera.permissions import InteractivePolicy, PermissionAction, PermissionDecision

ALLOW, ASK = PermissionAction.ALLOW, PermissionAction.ASK


def tool(name: str, effect: str | None = None) -> SimpleNamespace:
    return SimpleNamespace(name=name, effect=effect)


@pytest.mark.parametrize("name", ["write_file", "edit_file", "replace_in_file", "apply_patch", "bash"])
def test_bundled_tools_that_change_things_are_asked_for(name: str) -> None:
    assert InteractivePolicy().evaluate(name, {}) is ASK


@pytest.mark.parametrize("name", ["read_file", "list_files", "search", "think", "todo", "delegate", "write_file2"])
def test_other_tools_run(name: str) -> None:
    assert InteractivePolicy().decide(name, {}) == PermissionDecision(ALLOW)


def test_tools_say_themselves_what_they_do() -> None:
    tools = [tool("deploy", "command"), tool("save", "write"), tool("look", "read"), tool("quiet"), object()]
    policy = InteractivePolicy.for_tools(tools)
    asked = {name for name in ("deploy", "save", "look", "quiet", "bash") if policy.evaluate(name, {}) is ASK}
    assert asked == {"deploy", "save", "bash"}


def test_a_tool_that_says_nothing_or_came_late_is_asked_for_on_request() -> None:
    policy = InteractivePolicy.for_tools([tool("look", "read"), tool("quiet")], ask_undeclared=True)
    assert policy.evaluate("look", {}) is ALLOW
    assert policy.evaluate("read_file", {}) is ALLOW
    assert policy.decide("quiet", {}).reason == "quiet does not say what it does and needs approval"
    assert policy.evaluate("registered_later", {}) is ASK


def test_a_tool_in_the_guise_of_a_harmless_one_is_asked_for() -> None:
    policy = InteractivePolicy.for_tools([tool("think", "command")], ask_undeclared=True)
    assert policy.evaluate("think", {}) is ASK


def test_own_names_replace_the_bundled_ones() -> None:
    policy = InteractivePolicy(ask=["deploy"])
    assert policy.evaluate("bash", {}) is ALLOW
    assert policy.decide("deploy", {}).reason == "deploy can change things and needs approval"


@pytest.mark.parametrize(("name", "words"), [("bash", "runs a command"), ("edit_file", "changes files")])
def test_the_question_says_why(name: str, words: str) -> None:
    assert InteractivePolicy().decide(name, {}) == PermissionDecision(ASK, f"{name} {words} and needs approval")
