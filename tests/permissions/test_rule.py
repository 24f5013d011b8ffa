"""Reading rules: both ways to name a tool, and no rule that can never match."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.errors import ConfigError
from chimera.permissions.families import FILE_CHANGING, READING
from chimera.permissions.rule import parse_rule

ROOT = Path("/project")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Bash", {"bash"}),
        ("bash", {"bash"}),
        ("Edit", FILE_CHANGING),
        ("Write", FILE_CHANGING),
        ("Read", READING),
        ("write_file", {"write_file"}),
        ("mcp__server__tool", {"mcp__server__tool"}),
        ("WebFetch", {"WebFetch", "web_fetch"}),
        ("  deploy ", {"deploy"}),
        ("Bash(*)", {"bash"}),
        ("Bash(:*)", {"bash"}),
    ],
)
def test_a_rule_over_whole_tools(text: str, names: set[str]) -> None:
    rule = parse_rule(text, root=ROOT)
    assert rule.names == names
    assert rule.whole


def test_patterns_belong_to_commands_or_to_files() -> None:
    command, path = parse_rule("bash(git status:*)", root=ROOT), parse_rule("write_file(src/**)", root=ROOT)
    assert command.shell is not None
    assert command.path is None
    assert path.path is not None
    assert path.names == {"write_file"}
    assert not command.whole
    assert not path.whole


@pytest.mark.parametrize("name", ["readfile2", "read_file2", "xread_file", "read"])
def test_an_exact_name_has_no_wildcard_behind_it(name: str) -> None:
    assert not parse_rule("read_file", root=ROOT).names_tool(name)


def test_a_wildcard_that_is_written_is_one() -> None:
    rule = parse_rule("mcp__git__*", root=ROOT)
    assert rule.names_tool("mcp__git__log")
    assert not rule.names_tool("mcp__github__log")
    assert parse_rule("spawn_*", root=ROOT).names_tool("spawn_worker")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Bsh(git status)", "did you mean 'Bash'"),
        ("Shell(git status)", "takes no pattern"),
        ("write_fle", "did you mean 'write_file'"),
        ("writeFile", "did you mean 'write_file'"),
        ("Bash(git push", "parenthesis is never closed"),
        ("Bash git push)", "neither a tool name"),
        ("Bash(git push) x", "neither a tool name"),
        ("Bash, Edit", "one rule names one tool"),
        ("Bash,Edit", "one rule names one tool"),
        ("Bash()", "parentheses are empty"),
        ("Bash( )", "parentheses are empty"),
        ("", "neither a tool name"),
        ("Bash(git add && git push)", "one command"),
        ("Bash(git log | head)", "one command"),
        ("Bash(# all)", "comment"),
        ("Bash(FOO=1 make)", "without assignments"),
        ("Bash(make > log)", "without redirections"),
        ("Bash(make <<< x)", "without redirections"),
        ("Bash($EDITOR)", "variables"),
        ("Bash(echo 'x)", "cannot be read"),
        ("think(x)", "takes no pattern"),
        ("WebFetch(domain:example.com)", "takes no pattern"),
        ("deploy(prod)", "takes no pattern"),
        ("mcp__server", "mcp__server__\\*"),
        ("mcp__", "mcp__server__\\*"),
        ("Edit(!src/**)", "starts with !"),
        ("Edit(src/*/../x)", "can match no file"),
    ],
)
def test_a_rule_that_can_never_match_is_an_error_that_names_it(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        parse_rule(text, root=ROOT)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("junk", [None, 3, ["Bash"], {"Bash": 1}])
def test_what_is_no_text_is_no_rule(junk: object) -> None:
    with pytest.raises(ConfigError, match="a rule is a text"):
        parse_rule(junk, root=ROOT)  # type: ignore[arg-type]


def test_a_rule_that_allows_names_the_program() -> None:
    parse_rule("Bash(* --force)", root=ROOT)
    with pytest.raises(ConfigError, match="names the program"):
        parse_rule("Bash(* --version)", root=ROOT, permits=True)


def test_with_the_tools_at_hand_unknown_names_are_errors() -> None:
    assert parse_rule("deploy", root=ROOT, tools=["deploy"]).names_tool("deploy")
    with pytest.raises(ConfigError, match="the nearest is 'deploy'"):
        parse_rule("deploi", root=ROOT, tools=["deploy"])


@given(st.text(max_size=30))
def test_any_text_is_a_rule_or_a_config_error(text: str) -> None:
    try:
        assert parse_rule(text, root=ROOT).names
    except ConfigError as error:
        shown = str(error)
        assert shown.startswith(f"permission rule {text!r}: ")
