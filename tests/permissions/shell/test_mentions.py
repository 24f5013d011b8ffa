"""A program named among the words of another may be started by it, in whatever way that takes words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.permissions.match import Match
from chimera.permissions.shell import read_shell
from chimera.permissions.shell.patterns import parse_pattern, runs

NO, MAYBE, YES = Match.NO, Match.MAYBE, Match.YES
UNKNOWN_WAYS = [
    "runner {}",
    "runner --opt=1 -- {}",
    "runner '{}'",
    "runner --do='{}'",
    "runner --do 'x; {}'",
    "runner \"{{'{}'}}\"",
    "runner -I'{}'",
    "runner 'system(\"{}\")'",
    "runner '!{}'",
    "sudo runner {}",
    "/lib64/ld-linux-x86-64.so.2 /bin/{}",
    "awk 'BEGIN{{system(\"{}\")}}'",
    "sed '1e {}' f",
    "vim -c '!{}'",
    "less +'!{}' f",
    "capsh -- -c '{}'",
    "docker run image {}",
    "git config alias.z '!{}'",
    "git hook run {}",
    "ssh -o ProxyCommand='{}' host",
    "bash script.sh {}",
    "crontab - <<< '* * * * * {}'",
    "make -f - <<E\na:\n\t{}\nE",
    "python3 <<'E'\nos.system('{}')\nE",
    "RUNNER='{}' runner",
    "export RUNNER='{}'",
    "cp /bin/{} copy",
    "ln -s /usr/bin/{} link",
    "cat /bin/{} > copy",
    "tee copy < /bin/{}",
    "apt -o Hook='{}' install",
]


@pytest.mark.parametrize("text", UNKNOWN_WAYS)
@pytest.mark.parametrize(("pattern", "said"), [("rm:*", "rm x"), ("rm", "rm"), ("r* x", "rm x"), ("rm -rf:*", "rm x")])
def test_a_program_that_is_not_followed_may_run_what_it_is_told(text: str, pattern: str, said: str) -> None:
    program = said.partition(" ")[0] if "/bin/" in text else said
    if "/bin/" in text and pattern == "r* x":
        pattern = "r*"
    assert runs(parse_pattern(pattern), read_shell(text.format(program))) is not NO


@given(st.lists(st.sampled_from(["'", '"', " ", ";", "$(", ")", "`", "=", "{", "}", "|", "(", "x", "-c "]), max_size=8))
def test_no_depth_of_quoting_hides_it(around: list[str]) -> None:
    middle = len(around) // 2
    said = "".join((*around[:middle], " rm ", *around[middle:])).replace("'", "'\\''")
    assert runs(parse_pattern("rm:*"), read_shell(f"runner '{said}'")) is not NO


@pytest.mark.parametrize(
    "text",
    [
        "echo rm x",
        "printf '%s' 'rm x'",
        "cat rm",
        "grep -r 'rm x' src",
        "ls rm",
        "find . -name rm",
        "which rm",
        "command -v rm",
        "git rm x",
        "git commit -m 'do not rm x'",
        "git log --grep rm",
        "docker rm x",
        "apt install rm",
        "npm install rm",
        "docker run --rm image",
        "runner rm-files warm rm.py",
        "cat <<E\nrm x\nE",
        "git commit -F - <<E\nrm x\nE",
        "MESSAGE='rm x'",
        "env ls x",
        "pytest -q",
    ],
)
def test_words_that_are_data_are_not_programs(text: str) -> None:
    assert runs(parse_pattern("rm:*"), read_shell(text)) is NO


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("git push:*", "runner git push", MAYBE),
        ("git push:*", "runner git log", NO),
        ("git push:*", "runner git $x", MAYBE),
        ("git push:*", "runner push", NO),
        ("* --force", "runner rm --forc", NO),
        ("g* push", "runner git push", MAYBE),
    ],
)
def test_the_other_words_of_a_rule_count(pattern: str, text: str, expected: Match) -> None:
    assert runs(parse_pattern(pattern), read_shell(text)) is expected
