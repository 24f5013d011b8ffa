"""The three modes, each with the rules in front."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from chimera.errors import ConfigError
from chimera.permissions import (
    MODES,
    AcceptEdits,
    AllowAll,
    DenyAll,
    InteractivePolicy,
    NoPrompts,
    PermissionAction,
    RuleSet,
    policy_for_mode,
)

ALLOW, DENY, ASK = PermissionAction.ALLOW, PermissionAction.DENY, PermissionAction.ASK
CALLS: dict[str, tuple[str, dict[str, str]]] = {
    "read": ("read_file", {"path": "a"}),
    "edit": ("edit_file", {"path": "src/a"}),
    "patch": ("apply_patch", {"patch": "*** Begin Patch\n*** Delete File: a\n*** End Patch"}),
    "outside": ("write_file", {"path": "../a"}),
    "hook": ("write_file", {"path": ".git/hooks/pre-commit"}),
    "settings": ("write_file", {"path": ".CHIMERA/config.toml"}),
    "unreadable": ("apply_patch", {"patch": "?"}),
    "command": ("bash", {"command": "make"}),
    "deploy": ("deploy", {}),
    "unknown": ("unknown", {}),
    "denied": ("bash", {"command": "ls; rm x"}),
    "doubtful": ("bash", {"command": "$x"}),
    "asked": ("bash", {"command": "git push"}),
    "allowed": ("bash", {"command": "git log"}),
}
EXPECTED = {
    "ask": "aAAAAAAAAadAAa",
    "accept-edits": "aaaAAAAAAadAAa",
    "yolo": "aaaaaaaaaaddaa",
}
LETTERS = {"a": ALLOW, "A": ASK, "d": DENY}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("call", CALLS)
def test_modes(mode: str, call: str, tmp_path: Path) -> None:
    rules = RuleSet(deny=["Bash(rm:*)"], ask=["Bash(git push:*)"], allow=["Bash(git log)"], root=tmp_path)
    policy = policy_for_mode(mode, rules, tools=[SimpleNamespace(name="deploy", effect="command")])
    expected = LETTERS[EXPECTED[mode][list(CALLS).index(call)]]
    name, args = CALLS[call]
    assert policy.evaluate(name, args) is expected
    assert policy.decide(name, args).action is expected


def test_a_mode_needs_no_rules(tmp_path: Path) -> None:
    assert policy_for_mode("ask").evaluate("bash", {"command": "ls"}) is ASK
    assert policy_for_mode("yolo").evaluate("bash", {"command": "$x"}) is ALLOW
    assert policy_for_mode("accept-edits", root=tmp_path).evaluate("write_file", {"path": str(tmp_path / "a")}) is ALLOW
    assert policy_for_mode("accept-edits", root=tmp_path).evaluate("write_file", {"path": "/elsewhere"}) is ASK


def test_tools_that_say_nothing_are_asked_for_on_request() -> None:
    assert policy_for_mode("ask", ask_undeclared=True).evaluate("unknown", {}) is ASK


@pytest.mark.parametrize("mode", ["", "Ask", "accept_edits", "yollo", None])
def test_another_mode_is_an_error(mode: str) -> None:
    with pytest.raises(ConfigError, match="one of ask, accept-edits, yolo"):
        policy_for_mode(mode)


def test_the_nearest_mode_is_named() -> None:
    with pytest.raises(ConfigError, match="did you mean 'accept-edits'"):
        policy_for_mode("accept_edits")


def test_a_rule_of_the_user_holds_for_edits_that_are_accepted(tmp_path: Path) -> None:
    policy = policy_for_mode("accept-edits", RuleSet(deny=["Edit(src/**)"], root=tmp_path))
    assert policy.evaluate("write_file", {"path": "src/a"}) is DENY
    assert policy.evaluate("write_file", {"path": "a"}) is ALLOW


def test_accepted_edits_leave_all_else_to_the_other_policy(tmp_path: Path) -> None:
    policy = AcceptEdits(tmp_path, DenyAll())
    assert policy.evaluate("write_file", {"path": "a"}) is ALLOW
    assert policy.evaluate("write_file", {"path": ".git"}) is DENY
    assert policy.evaluate("bash", {"command": "ls > a"}) is DENY


def test_a_project_inside_a_protected_name_is_a_project(tmp_path: Path) -> None:
    root = tmp_path / ".chimera" / "work"
    root.mkdir(parents=True)
    assert AcceptEdits(root, DenyAll()).evaluate("write_file", {"path": "a"}) is ALLOW


def test_prompts_that_are_off_change_questions_only() -> None:
    assert NoPrompts(DenyAll()).evaluate("bash", {}) is DENY
    assert NoPrompts(AllowAll()).evaluate("bash", {}) is ALLOW
    assert NoPrompts(InteractivePolicy()).decide("bash", {}).reason == "prompts are switched off"
    rules = RuleSet(ask=["Bash"])
    assert NoPrompts(rules).decide("bash", {}).rule == "Bash"


def test_the_package_knows_its_names() -> None:
    import chimera.permissions as package

    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = package.nothing
