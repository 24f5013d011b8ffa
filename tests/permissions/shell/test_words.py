"""Words as bash passes them on."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chimera.permissions.shell.findings import Findings, Word
from chimera.permissions.shell.parser import read_commands


def words(text: str) -> tuple[Word, ...]:
    found = Findings()
    read_commands(text, found)
    assert found.doubts == []
    return tuple(found.commands[-1].words)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("rm", "rm"),
        (r"r\m", "rm"),
        ("'rm'", "rm"),
        ('"rm"', "rm"),
        ("r''m", "rm"),
        ('r"m"', "rm"),
        ("$'rm'", "rm"),
        (r"$'\x72\155'", "rm"),
        (r"$'\t\\\''", "\t\\'"),
        ('$"rm"', "rm"),
        ("r\\\nm", "rm"),
        ('"r\\\nm"', "rm"),
        (r'"a\b\$\"\\"', 'a\\b$"\\'),
        (r"'a\b'", "a\\b"),
        ("a'b c'd", "ab cd"),
        ("[", "["),
        ("{}", "{}"),
        ("a$", "a$"),
        ("a$.b", "a$.b"),
        ("~/bin/rm", "~/bin/rm"),
        ("$HOME/x", "~/x"),
        ('"${HOME}/x"', "~/x"),
        ("'~/x'", "./~/x"),
        ("a=b", "a=b"),
        ("''", ""),
    ],
)
def test_known_words(text: str, value: str) -> None:
    word = words(f"x {text}")[1]
    assert (word.text, word.exact) == (value, True)


@pytest.mark.parametrize(
    "text",
    ["$x", "${x}", '"$x"', "$1", "$@", "$?", "$(y)", "`y`", "a*", "a?", "[ab]", "{a,b}", "~user", "<(y)", "$'\\u0072'",
     "$'\\0'", "x'y'*", "$((1))", "a$HOME", "${#HOME}"],
)  # fmt: skip
def test_words_that_the_text_does_not_tell(text: str) -> None:
    assert not words(f"x {text}")[1].exact


@pytest.mark.parametrize(
    ("text", "splits"), [("$x", True), ('"$x"', False), ('"$@"', True), ("$(y)", True), ("a*", False)]
)
def test_only_unquoted_values_become_several_words(text: str, splits: bool) -> None:
    assert words(f"x {text}")[1].splits is splits


def test_quotes_take_away_what_a_word_would_do() -> None:
    assert words("'if' x")[0] == Word("if", True, 0)
    assert not words("'if' x")[0].bare
    assert words("x if")[1].bare


PIECES = st.sampled_from(
    [
        "a",
        "b ",
        "'",
        '"',
        "\\",
        "$'",
        "\\x41",
        "\\101",
        "\\n",
        "=",
        "~",
        "#",
        "é",
        "\t",
        "\\\n",
        "-",
        "/",
        "0",
        ".",
        "!",
    ]
)


@settings(max_examples=60)
@given(st.lists(PIECES, min_size=1, max_size=10).map("".join))
def test_words_are_what_bash_makes_of_them(text: str) -> None:
    found = Findings()
    read_commands("printf '%s\\0' " + text, found)
    if found.doubts or len(found.commands) != 1:
        return
    parsed = found.commands[0].words[2:]
    if not all(word.exact for word in parsed) or any("~" in word.text for word in parsed):
        return
    ran = subprocess.run(
        ["bash", "-c", "printf '%s\\0' " + text], capture_output=True, env={"LC_ALL": "C.UTF-8"}, check=True
    )
    expected = ran.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
    assert [word.text for word in parsed] == (expected if parsed else [])
