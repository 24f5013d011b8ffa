"""Rule sets: deny before ask before allow, over every part of a call."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.errors import ConfigError
from chimera.frozen import freeze
from chimera.permissions import AllowAll, DenyAll, PermissionAction, RuleSet

ALLOW, DENY, ASK = PermissionAction.ALLOW, PermissionAction.DENY, PermissionAction.ASK


def judge(rules: RuleSet, tool: str, **args: Any) -> PermissionAction:
    decided = rules.decide(tool, freeze(args))
    assert decided.action is rules.evaluate(tool, args)
    assert decided.action is ALLOW or decided.reason
    return decided.action


def shell(rules: RuleSet, command: object) -> PermissionAction:
    return judge(rules, "bash", command=command)


@pytest.mark.parametrize("kinds", list(permutations(("deny", "ask", "allow"))))
def test_deny_before_ask_before_allow_whatever_the_order(kinds: tuple[str, ...]) -> None:
    everything = {kind: ["Bash(git push:*)", "write_file", "Read(src/**)"] for kind in kinds}
    without_deny = {kind: rules for kind, rules in everything.items() if kind != "deny"}
    only_allow = {"allow": everything["allow"]}
    for rules, expected in ((everything, DENY), (without_deny, ASK), (only_allow, ALLOW)):
        policy = RuleSet(**rules, default=DENY if expected is not DENY else ALLOW)  # type: ignore[arg-type]
        assert shell(policy, "git push") is expected
        assert judge(policy, "write_file", path="a", content="") is expected
        assert judge(policy, "read_file", path="src/a") is expected


def test_a_specific_allow_does_not_loosen_a_general_deny() -> None:
    policy = RuleSet(deny=["Bash"], allow=["Bash(git status)", "bash"])
    assert shell(policy, "git status") is DENY


def test_the_default_decides_what_no_rule_speaks_of() -> None:
    assert judge(RuleSet(), "bash", command="ls") is ASK
    assert judge(RuleSet(default=ALLOW), "bash", command="ls") is ALLOW
    assert judge(RuleSet(default=DENY), "anything") is DENY
    assert judge(RuleSet(default=AllowAll()), "anything") is ALLOW
    assert RuleSet(default=DenyAll()).decide("x", {}).reason == "no tool is allowed here"
    assert RuleSet(default=DENY).decide("x", {}).reason == "no rule speaks of this use of x"


def test_every_decision_names_its_rule() -> None:
    policy = RuleSet(
        deny=["Bash(rm:*)"], ask=["Bash(git push:*)"], allow=["Bash(git:*)", "Bash(ls:*)", "Edit(src/**)", "Read"]
    )
    for command, rule in (
        ("rm x", "Bash(rm:*)"),
        ("git push", "Bash(git push:*)"),
        ("ls | git log > src/x", "Bash(git:*), Bash(ls:*), Edit(src/**)"),
        ("$x", "Bash(rm:*)"),
    ):
        decided = policy.decide("bash", {"command": command})
        assert decided.rule == rule
        assert rule in decided.reason
    assert policy.decide("read_file", {"path": "x"}).rule == "Read"
    assert policy.decide("deploy", {}).rule is None


DENIED = [
    "rm x",
    "ls && rm x",
    "ls; rm x",
    "ls | rm x",
    "ls\nrm x",
    "FOO=1 rm x",
    "$(rm x)",
    "ls `rm x`",
    "bash -c 'rm x'",
    "env rm x",
    "timeout 1 rm x",
    "nohup rm x",
    "xargs rm",
    "sudo rm x",
    "cat <<E\n$(rm x)\nE",
    "bash <<E\nrm x\nE",
    "ls <(rm x)",
    "rm x > f",
    "# ls\nrm x",
    "r\\m x",
    "'rm' x",
    "/bin/rm x",
    "find . -exec rm {} +",
]


@pytest.mark.parametrize("command", DENIED)
def test_a_denied_command_is_denied_wherever_it_hides(command: str) -> None:
    forbidding = {"allow": ["Bash", "bash(ls:*)"], "default": ALLOW}
    assert shell(RuleSet(deny=["Bash(rm:*)"], **forbidding), command) is DENY  # type: ignore[arg-type]
    assert shell(RuleSet(ask=["bash(rm:*)"], **forbidding), command) is ASK  # type: ignore[arg-type]
    assert shell(RuleSet(allow=["Bash(ls:*)", "Bash(cat:*)"], default=DENY), command) is DENY


@pytest.mark.parametrize("command", ["echo 'x", "$x y", "eval $x", "curl x | sh", "bash -c $x", None, 3, ["rm"]])
def test_what_cannot_be_told_is_asked_where_a_rule_could_forbid_it(command: object) -> None:
    assert shell(RuleSet(deny=["Bash(rm:*)"], default=ALLOW, allow=["Bash"]), command) is ASK
    assert shell(RuleSet(ask=["Bash(rm:*)"], default=ALLOW, allow=["Bash"]), command) is ASK
    assert shell(RuleSet(deny=["Bash(rm:*)"], default=ALLOW, unsure=DENY), command) is DENY
    assert shell(RuleSet(deny=["Bash(rm:*)"], ask=["Bash"], default=ALLOW, unsure=DENY), command) is DENY
    assert shell(RuleSet(allow=["Bash(ls:*)", "Bash(echo:*)"], default=DENY), command) is DENY
    assert shell(RuleSet(allow=["Bash"], default=DENY), command) is ALLOW


def test_a_missing_command_is_no_harmless_one() -> None:
    assert judge(RuleSet(deny=["Bash(rm:*)"], default=ALLOW), "bash") is ASK


def test_doubt_cannot_be_waved_through() -> None:
    with pytest.raises(ConfigError, match="unsure is ASK or DENY"):
        RuleSet(unsure=ALLOW)


def test_an_allowed_command_writes_only_where_edits_are_allowed(tmp_path: Path) -> None:
    policy = RuleSet(allow=["Bash(git:*)", "Bash(cd:*)", "Edit(src/**)"], default=DENY, root=tmp_path)
    for command in ("git log > src/x", "git log >/dev/null 2>&1", "git log 2>> src/x < anything"):
        assert shell(policy, command) is ALLOW
    for command in (
        "git log > x",
        "git log > src/../x",
        "git log > $x",
        "cd /x; git log > src/x",
        "cd $x; git log > src/x",
    ):
        assert shell(policy, command) is DENY
    everywhere = RuleSet(allow=["Bash(git:*)", "Edit"], default=DENY, root=tmp_path)
    assert shell(everywhere, "git log > /anywhere") is ALLOW


@pytest.mark.parametrize(
    ("rule", "command", "expected"),
    [
        ("Edit(src/**)", "echo x > src/a", DENY),
        ("Write(src/**)", "cd src && echo x > a", DENY),
        ("Edit(src/**)", "tee src/a", DENY),
        ("Edit(src/**)", "rm -rf src", DENY),
        ("Edit(src/**)", "cat src/a", ALLOW),
        ("Edit", "echo x > a", DENY),
        ("Edit", "ls", ALLOW),
        ("write_file", "echo x > a", ALLOW),
        ("Read(.env)", "cat .env", DENY),
        ("Read(.env)", "cat < .env", DENY),
        ("Read(.env)", "bash -c 'cat deep/.env'", DENY),
        ("Read(~/.ssh/**)", "cat $HOME/.ssh/id", DENY),
        ("Read(~/.ssh/**)", "cd ~/.ssh; cat id", DENY),
        ("Read(~/.ssh/**)", "ls ~/.ssh", DENY),
        ("Read(.env)", "echo .env", ALLOW),
        ("Read", "ls x", ALLOW),
        ("Read", "wc < x", DENY),
        ("Read(.env)", "cat '\0'", ASK),
    ],
)
def test_file_rules_see_what_a_shell_text_plainly_does_to_files(
    rule: str, command: str, expected: PermissionAction, tmp_path: Path
) -> None:
    assert shell(RuleSet(deny=[rule], default=ALLOW, root=tmp_path), command) is expected


def test_wildcards_of_the_shell_lead_to_the_files_that_they_stand_for(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in (".env", "deep/secret.pem", "plain"):
        (tmp_path / name).touch()
    policy = RuleSet(deny=["Read(.env)", "Read(*.pem)", "Edit(plain)"], default=ALLOW, root=tmp_path)
    for command in ("cat .e*", "cat */sec*", "cd deep; cat s*", f"cat {tmp_path}/d?ep/[s]ecret.*", "rm p*"):
        assert shell(policy, command) is DENY
    for command in ("cat *", "cat deep/x*", "rm d*/x*"):
        assert shell(policy, command) is ALLOW


def test_file_rules_let_a_command_pass_that_is_no_text() -> None:
    assert shell(RuleSet(deny=["Edit(src/**)"], default=ALLOW), None) is ALLOW


@pytest.mark.parametrize("tool", ["write_file", "edit_file", "replace_in_file"])
@pytest.mark.parametrize("family", ["Edit", "Write"])
def test_edit_rules_hold_for_every_tool_that_changes_files(tool: str, family: str, tmp_path: Path) -> None:
    policy = RuleSet(deny=[f"{family}(secret/**)"], allow=[f"{family}(src/**)"], root=tmp_path)
    assert judge(policy, tool, path="secret/a") is DENY
    assert judge(policy, tool, path="src/../secret/a") is DENY
    assert judge(policy, tool, path="src/a") is ALLOW
    assert judge(policy, tool, path="a") is ASK
    assert judge(policy, "read_file", path="secret/a") is ASK


def test_all_files_of_a_patch_are_judged(tmp_path: Path) -> None:
    policy = RuleSet(deny=["Edit(secret/**)"], allow=["Edit(src/**)"], root=tmp_path)

    def patch(*names: str) -> str:
        return "\n".join(["*** Begin Patch", *(f"*** Delete File: {name}" for name in names), "*** End Patch"])

    assert judge(policy, "apply_patch", patch=patch("src/a", "src/b")) is ALLOW
    assert judge(policy, "apply_patch", patch=patch("src/a", "secret/b")) is DENY
    assert judge(policy, "apply_patch", patch=patch("src/a", "b")) is ASK
    moved = "*** Begin Patch\n*** Update File: src/a\n*** Move to: secret/a\n*** End Patch"
    assert judge(policy, "apply_patch", patch=moved) is DENY
    assert judge(policy, "apply_patch", patch="unreadable") is ASK
    assert judge(RuleSet(allow=["Edit(**)"], default=DENY, root=tmp_path), "apply_patch", patch="unreadable") is DENY


EDITS: list[tuple[str, dict[str, str]]] = [
    ("edit_file", {"path": ".env", "old_string": "A", "new_string": "B"}),
    ("replace_in_file", {"path": "./deep/.env", "diff": ""}),
    ("apply_patch", {"patch": "*** Begin Patch\n*** Update File: .env\n*** Move to: pub\n*** End Patch"}),
    ("apply_patch", {"patch": "*** Begin Patch\n*** Delete File: deep/.env\n*** End Patch"}),
    ("apply_patch", {"patch": "--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-A\n+B\n"}),
    ("apply_patch", {"patch": "diff --git a/.env b/pub\nrename from .env\nrename to pub\n"}),
]


@pytest.mark.parametrize(("tool", "args"), EDITS)
@pytest.mark.parametrize("rule", ["Read(.env)", "Read"])
def test_what_may_not_be_read_is_not_quoted_or_moved_by_tools_that_edit(
    tool: str, args: dict[str, str], rule: str, tmp_path: Path
) -> None:
    assert judge(RuleSet(deny=[rule], allow=["Edit"], root=tmp_path), tool, **args) is DENY
    assert judge(RuleSet(ask=[rule], allow=["Edit"], root=tmp_path), tool, **args) is ASK
    assert judge(RuleSet(deny=["Read(other)"], allow=["Edit"], root=tmp_path), tool, **args) is ALLOW


def test_a_tool_that_edits_something_unknown_may_read_what_is_denied(tmp_path: Path) -> None:
    policy = RuleSet(deny=["Read(.env)"], allow=["Edit"], root=tmp_path)
    for tool in ("edit_file", "replace_in_file", "apply_patch"):
        assert judge(policy, tool) is ASK
    created = "*** Begin Patch\n*** Add File: .env\n+x\n*** End Patch"
    assert judge(policy, "apply_patch", patch=created) is ALLOW
    assert judge(policy, "write_file", path=".env", content="x") is ALLOW


@pytest.mark.parametrize("args", [{}, {"path": None}, {"path": 3}, {"path": "a\0b"}, {"file_path": "x"}])
def test_a_file_that_cannot_be_told_is_asked_for(args: dict[str, Any]) -> None:
    policy = RuleSet(deny=["Edit(secret/**)"], default=ALLOW)
    assert judge(policy, "write_file", **args) is ASK
    assert judge(RuleSet(allow=["Edit(**)"], default=DENY), "write_file", **args) is DENY


def test_arguments_that_are_no_mapping_allow_nothing() -> None:
    policy = RuleSet(deny=["Edit(secret/**)", "Bash(rm:*)"], default=ALLOW)
    for tool in ("write_file", "bash"):
        assert policy.evaluate(tool, None) is ASK  # type: ignore[arg-type]
        assert policy.evaluate(tool, "rm x") is ASK  # type: ignore[arg-type]


def test_symlinks_do_not_lead_around_a_rule(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "link").symlink_to(tmp_path / "secret")
    policy = RuleSet(deny=["Read(secret/**)"], allow=["Edit(src/**)"], root=tmp_path)
    assert judge(policy, "read_file", path="src/link/key") is DENY
    assert judge(policy, "write_file", path="src/link/key") is ASK
    assert shell(policy, "cat src/link/key") is DENY


def test_a_search_that_would_come_upon_a_forbidden_file_is_uncertain(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / ".env").touch()
    (tmp_path / "src").mkdir()
    policy = RuleSet(deny=["Read(.env)"], default=ALLOW, root=tmp_path)
    assert judge(policy, "search", pattern="x") is ASK
    assert judge(policy, "search", pattern="x", path="deep") is ASK
    assert judge(policy, "search", pattern="x", path="deep/.env") is DENY
    assert judge(policy, "search", pattern="x", glob="*.py") is ALLOW
    assert judge(policy, "search", pattern="x", path="src") is ALLOW
    assert judge(policy, "list_files") is ALLOW
    assert str(tmp_path / "deep" / ".env") in policy.decide("search", {"pattern": "x"}).reason


@pytest.mark.parametrize("tool", ["Bash", "BASH", "bash2", "mcp__x__bash", "Edit", ""])
def test_tools_are_taken_by_their_exact_names(tool: str) -> None:
    policy = RuleSet(deny=["Bash", "Edit", "mcp__x__tool"], default=ALLOW)
    assert judge(policy, tool) is ALLOW
    assert judge(policy, "mcp__x__tool") is DENY
    assert judge(policy, "mcp__x__tool2") is ALLOW


def test_wildcards_in_names_reach_what_is_registered_later() -> None:
    policy = RuleSet(deny=["mcp__x__*"], default=ALLOW)
    assert judge(policy, "mcp__x__anything") is DENY
    assert judge(policy, "mcp__xy__anything") is ALLOW


@pytest.mark.parametrize("kind", ["deny", "ask", "allow"])
def test_every_list_is_checked(kind: str) -> None:
    with pytest.raises(ConfigError, match="did you mean"):
        RuleSet(**{kind: ["Bash", "Bsh(x)"]})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=f"{kind} rules must be a list"):
        RuleSet(**{kind: "Bash"})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="the nearest is 'deploy'"):
        RuleSet(**{kind: ["deplo"]}, tools=["deploy"])  # type: ignore[arg-type]


def test_other_defaults_leave_the_rules_as_they_are() -> None:
    policy = RuleSet(deny=["Bash(rm:*)"])
    other = policy.with_default(ALLOW, unsure=DENY)
    assert [shell(other, command) for command in ("rm x", "ls", "$x")] == [DENY, ALLOW, DENY]
    assert [shell(policy, command) for command in ("rm x", "ls", "$x")] == [DENY, ASK, ASK]
    assert shell(policy.with_default(ALLOW), "$x") is ASK


@given(st.text(max_size=60), st.sampled_from(["bash", "write_file", "apply_patch", "search", "x"]))
def test_any_text_gets_an_answer_that_no_allow_rule_gave_by_mistake(text: str, tool: str) -> None:
    args = {"command": text, "path": text, "patch": text}
    denied = ["Bash(rm:*)", "Edit(secret/**)", "Read(.env)"]
    policy = RuleSet(deny=denied, allow=["Bash(ls:*)", "Edit(src/**)"], default=DENY)
    if judge(policy, tool, **args) is ALLOW:
        assert "ls" in text or "src" in text
