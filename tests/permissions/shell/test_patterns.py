"""A pattern that forbids is read loosely, one that permits strictly."""

from __future__ import annotations

import pytest

from chimera.permissions.match import Match
from chimera.permissions.shell import read_shell
from chimera.permissions.shell.patterns import covering, parse_pattern, runs

NO, MAYBE, YES = Match.NO, Match.MAYBE, Match.YES


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("rm:*", "rm", YES),
        ("rm:*", "rm -rf x", YES),
        ("rm *", "rm", YES),
        ("rm:*", "/bin/rm x", YES),
        ("rm:*", "./rm x", YES),
        ("rm:*", "RM x", YES),
        ("/bin/rm:*", "rm x", YES),
        ("rm:*", "rmdir x", NO),
        ("rm:*", "git rm x", NO),
        ("rm:*", "echo rm x", NO),
        ("rm:*", "$x y", MAYBE),
        ("rm:*", "ls $x", NO),
        ("rm:*", "echo 'x", MAYBE),
        ("git push:*", "git push", YES),
        ("git push:*", "git -C x --no-pager push origin", YES),
        ("git push:*", "git -c a=b push", YES),
        ("git push:*", "git commit -m push", NO),
        ("git push:*", "git pushx", NO),
        ("git push:*", "git $x", MAYBE),
        ("git push:*", "git $x push", YES),
        ("git push:*", "git log $x", NO),
        ("git push:*", "xargs git", MAYBE),
        ("git push:*", "xargs git log", NO),
        ("rm -rf:*", "rm -rf x", YES),
        ("rm -rf:*", "rm -fr x", YES),
        ("rm -rf:*", "rm x -r -f", YES),
        ("rm -rf:*", "rm -vrif x", YES),
        ("rm -rf:*", "rm -r x", NO),
        ("rm -rf:*", "rm -r $x", MAYBE),
        ("git push --force:*", "git push --force-with-lease", NO),
        ("git push --force:*", "git push origin --forc", YES),
        ("git push --force:*", "git push --force=x", YES),
        ("find -delete:*", "find . -delete", YES),
        ("npm run test", "npm run test", YES),
        ("npm run test", "npm run test x", NO),
        ("npm run test", "npm run", NO),
        ("npm run test", "npm run $x", MAYBE),
        ("npm run test", "npm run other $x", NO),
        ("npm run test", "xargs npm run", MAYBE),
        ("npm run test", "npm run test $x", MAYBE),
        ("git * main", "git push origin main", YES),
        ("git * main", "/usr/bin/git push main", YES),
        ("git * main", "git push", NO),
        ("git * main", "git push $x", MAYBE),
        ("* --force", "anything --force", YES),
        ("* --force *", "anything --force x", YES),
        ("rm*", "rm -rf x", YES),
        ("rm*", "rmdir", YES),
        ("echo '*'", "echo x", NO),
        ("echo '*'", "echo '*'", YES),
        ("e'x'ho a.b*", "exho a.bc", YES),
        ("e'x'ho a.b*", "exho axbc", NO),
    ],
)
def test_what_a_pattern_forbids(pattern: str, text: str, expected: Match) -> None:
    assert runs(parse_pattern(pattern), read_shell(text)) is expected


@pytest.mark.parametrize(
    ("patterns", "text"),
    [
        (["git status:*"], "git status"),
        (["git status:*"], "git status -s $x"),
        (["git status:*"], "git status && git status; git status | git status"),
        (["git status:*"], "/usr/bin/git status"),
        (["git status:*"], "timeout 5 nice git status"),
        (["git status:*"], "bash -c 'git status'"),
        (["git status:*"], "if git status; then git status; fi"),
        (["git status:*"], "LC_ALL=C git status"),
        (["git status", "ls:*"], "git status && ls -l $(ls)"),
        (["git * main"], "git push origin main"),
        (["git log*"], "git log -p"),
        (["sudo apt:*"], "sudo apt install x"),
        (["sudo:*", "apt:*"], "sudo apt install x"),
        (["find:*"], "find . -name x"),
        (["find:*", "grep:*"], "find . -exec grep x {} +"),
        (["find . -exec grep:*"], "find . -exec grep x {} +"),
        (["bash script.sh"], "bash script.sh"),
        (["bash -c 'ls; rm x'"], "bash -c 'ls; rm x'"),
        (["grep:*"], "xargs grep x"),
        (["uv run pytest:*"], "uv run pytest -q"),
        (["ls:*"], "for f in *; do ls $f; done"),
    ],
)
def test_what_patterns_permit(patterns: list[str], text: str) -> None:
    assert covering([parse_pattern(pattern) for pattern in patterns], read_shell(text))


@pytest.mark.parametrize(
    ("patterns", "text"),
    [
        (["git status:*"], "git statusx"),
        (["git status:*"], "git -C /x status"),
        (["git status:*"], "git"),
        (["git status:*"], "GIT status"),
        (["git status:*"], "./git status"),
        (["git status:*"], "/tmp/git status"),
        (["git status:*"], "git $x"),
        (["git status:*"], "git status && ls"),
        (["git status:*"], "git status; $x"),
        (["git status:*"], "git status $(rm x)"),
        (["git status:*"], "git status `rm x`"),
        (["git status:*"], "git status <(rm x)"),
        (["git status:*"], "git status\nrm x"),
        (["git status:*"], "git status & rm x"),
        (["git status:*"], "PATH=/x git status"),
        (["git status:*"], "export PATH=/x; git status"),
        (["git status:*"], "git status 'x"),
        (["git status:*"], "sudo git status"),
        (["git status:*"], "# git status"),
        (["git status:*"], "x=1"),
        (["git status:*"], "eval git $x"),
        (["git status"], "git status -s"),
        (["git status"], "xargs git status"),
        (["git * main"], "git push $x main"),
        (["git * main"], "/tmp/git push main"),
        (["sudo:*"], "sudo rm x"),
        (["xargs:*"], "xargs rm"),
        (["bash -c:*"], "bash -c 'rm x'"),
        (["env:*"], "env rm x"),
        (["find:*"], "find . -exec rm {} +"),
        (["find . -exec grep:*"], "find . -exec grep x {} + -exec rm {} +"),
        (["sudo * x"], "sudo rm x"),
        (["uv run pytest:*"], "uv run python"),
        (["ls:*"], "ls < /dev/tcp/host/80"),
        ([], "ls"),
    ],
)
def test_what_patterns_do_not_permit(patterns: list[str], text: str) -> None:
    assert not covering([parse_pattern(pattern) for pattern in patterns], read_shell(text))


def test_the_patterns_that_were_used_are_named() -> None:
    git, ls, rm = (parse_pattern(text) for text in ("git:*", "ls:*", "rm:*"))
    assert covering([rm, git, ls], read_shell("git log | ls")) == [git, ls]
