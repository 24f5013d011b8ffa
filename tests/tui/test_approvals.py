"""An answer that lasts must mean just what was asked, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chimera.permissions import PermissionAction, RuleSet
from chimera.tui.approvals import Answer, Question, SessionRules, Verdict, rules_for
from chimera.types import PendingApproval, ToolCall

ROOT = Path("/srv/project")


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall("1", name, arguments)


@pytest.mark.parametrize(
    ("asked", "rules"),
    [
        (call("bash", command="make test"), ("bash(make test)",)),
        (call("bash", command="git commit -m 'a b'"), ("bash(git commit -m 'a b')",)),
        (call("bash", command="ls '*'"), ("bash(ls '*')",)),
        (call("bash", command="echo ':*'"), ("bash(echo ':*')",)),
        (call("write_file", path="src/a.py", content="x"), ("write_file(/src/a.py)",)),
        (call("edit_file", path="/srv/project/src/a.py"), ("edit_file(/src/a.py)",)),
        (call("edit_file", path="src/../b.py"), ("edit_file(/b.py)",)),
        (call("edit_file", path="/etc/hosts"), ("edit_file(//etc/hosts)",)),
        (call("write_file", path="a[1]*.py", content=""), ("write_file(/a\\[1\\]\\*.py)",)),
        (call("apply_patch", patch="--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n"), ("apply_patch(/x)",)),
        (call("deploy", to="production"), ("deploy",)),
        (call("mcp__forge__merge", number=3), ("mcp__forge__merge",)),
    ],
)
def test_the_rule_for_a_call(asked: ToolCall, rules: tuple[str, ...]) -> None:
    assert rules_for(asked, ROOT) == rules
    policy = RuleSet(allow=rules, root=ROOT)
    assert policy.evaluate(asked.name, asked.arguments) is PermissionAction.ALLOW


@pytest.mark.parametrize(
    "asked",
    [
        call("bash", command="make test && rm -rf /"),
        call("bash", command="echo $HOME"),
        call("bash", command="echo `id`"),
        call("bash", command="ls *"),
        call("bash", command="make > out.txt"),
        call("bash", command="make < in.txt"),
        call("bash", command="FOO=1 make"),
        call("bash", command="bash -c \"$X\""),
        call("bash", command=""),
        call("bash", command=3),
        call("write_file", content="x"),
        call("apply_patch", patch="nonsense"),
        call("Edit", path="x"),
        call("Bash", command="ls"),
        call("tool*", x=1),
        call("read_fiel", path="x"),
        call("two words"),
    ],
)  # fmt: skip
def test_no_lasting_answer_is_offered_where_no_rule_is_exact(asked: ToolCall) -> None:
    assert rules_for(asked, ROOT) == ()


OTHERS = [
    call("bash", command="make"),
    call("bash", command="make test --all"),
    call("bash", command="make tests"),
    call("bash", command="make test; id"),
    call("bash", command="make test && id"),
    call("bash", command="make test > /etc/passwd"),
    call("bash", command="$(make test)"),
    call("bash", command="sudo make test"),
    call("write_file", path="make test", content=""),
    call("write_file", path="src/b.py", content=""),
    call("write_file", path="src/a.py/b", content=""),
    call("write_file", path="other/src/a.py", content=""),
    call("edit_file", path="src/a.py", old_string="", new_string=""),
    call("apply_patch", patch="--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-x\n+y\n"),
    call("read_file", path="src/a.py"),
    call("deploy_all", to="x"),
    call("mcp__forge__close", number=3),
]


@pytest.mark.parametrize("other", OTHERS, ids=lambda item: f"{item.name} {dict(item.arguments)}")
def test_always_for_one_call_covers_no_other(other: ToolCall) -> None:
    session = SessionRules()
    for asked in (
        call("bash", command="make test"),
        call("write_file", path="src/a.py", content="x"),
        call("deploy", to="production"),
        call("mcp__forge__merge", number=3),
    ):
        session.add(rules_for(asked, ROOT))
        assert session.allow(asked, ROOT)
    assert session.allow(other, ROOT) is None


def test_a_session_that_allows_nothing_allows_nothing() -> None:
    assert SessionRules().allow(call("think"), ROOT) is None


def test_a_question_is_settled_once() -> None:
    asked = call("bash", command="ls")
    question = Question(PendingApproval(asked, "bash", asked.arguments, "why"))
    question.settle(Verdict(Answer.NO, "because"))
    question.settle(Verdict(Answer.ONCE))
    assert question.future.result() == Verdict(Answer.NO, "because")
