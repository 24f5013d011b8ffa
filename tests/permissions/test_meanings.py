"""What words may stand for: nothing that bash would make of a word is left out, or the word counts as unknown."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from shutil import which

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from chimera.permissions.meanings import Meanings
from chimera.permissions.shell import read_shell

BASH = which("bash")
SETTING = [
    "", "X=.env", "X=.e; Y=nv", "X=$PWD/sub", "X='.e*'", "X=*", "X='a b'", "Y=$X", "X=~/f",
    "for X in .e* sub/*; do :; done",
    "export X=sub", "declare -u X=sub", "read X <<< .env", "X=sub; X+=/f", "IFS=b; X=a.envb.env", "printf -v X .env",
    "unset X", "declare -n X=Y; Y=.env", "cd sub", "cd ..; cd -", "set -- .env", "HOME=$PWD/sub", "X=~+/f",
    ": ${X:=.env}",
    "shopt -s dotglob", "GLOBIGNORE=x", "pushd sub", "X=(sub f)", "local_() { X=.env; }; local_",
]  # fmt: skip
PIECES = [
    "$X", '"$X"', "${X}", "$Y", "sub", "/", ".env", "f", "*", ".", "..", "?", "[a-z]", "[^x]", "{a,f}", "{.env,sub/f}",
    "~", "~+",
    "'*'", '"f"', "\\*", "$(pwd)", "$PWD", "$1", "$_", "$(echo .env)", "`pwd`", "${X%x}", "nv", ".e", "$HOME",
    "$OLDPWD", "{1..3}",
    "[!.]", "{", "}", ",",
]  # fmt: skip


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    room = tmp_path_factory.mktemp("room")
    (room / "home").mkdir()
    (room / "here" / "sub").mkdir(parents=True)
    for name in (".env", "f", "sub/f", "sub/.env", "a", "*"):
        (room / "here" / name).touch()
    (room / "home" / "f").touch()
    return room


def made_of(word: str, setting: str, room: Path) -> set[str]:
    """Return the places that bash makes of a word."""
    script = f"{setting}\nprintf '%s\\0' {word} \"$PWD\""
    environment = {"HOME": str(room / "home"), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [BASH or "bash", "-c", script], cwd=room / "here", env=environment, capture_output=True, text=True, timeout=10
    )
    *paths, here = done.stdout.split("\n")[-1].split("\0")[:-1] or ["", ""]
    return {os.path.normpath(f"{here}/{path}") if path[:1] != "/" else os.path.normpath(path) for path in paths if path}


def told(word: str, setting: str, room: Path) -> set[str] | None:
    """Return the places that a word is said to stand for, None when it counts as unknown."""
    text = read_shell(f"{setting}\ncat {word}")
    commands = [command for command in text.all() if command.words[0].text == "cat"]
    meanings = Meanings(text, room / "here")
    if text.doubts or meanings.lost or len(commands) != 1:
        return None
    found: set[str] = set()
    for item in commands[0].words[1:]:
        values = meanings.values(item)
        paths = None if values is None else [meanings.paths(value) for value in values]
        if paths is None or None in paths:
            return None
        for path, _ in (pair for several in paths for pair in several or ()):
            for base in meanings.bases:
                found.add(
                    os.path.normpath(
                        base / Path(path).expanduser() if path.startswith("~/") or path == "~" else base / path
                    )
                )
    return found


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(SETTING), st.sampled_from(SETTING), st.lists(st.sampled_from(PIECES), min_size=1, max_size=4))
@example("X=.env", "", ["$X"])
@example("X=.e", "Y=nv", ["$X", "$Y"])
@example("X='.e*'", "", ["$X"])
@example("for X in .e* sub/*; do :; done", "", ["$X"])
@example("IFS=b; X=a.envb.env", "", ["$X"])
@example("HOME=$PWD/sub", "", ["~", "/", "f"])
@example("shopt -s dotglob", "", ["*"])
@example("cd sub", "", ["~+", "/", "f"])
@example("", "", ["[^x]"])
@example("X=~+/f", "", ["$X"])
def test_no_value_that_a_word_may_have_is_left_out(
    room: Path, monkeypatch: pytest.MonkeyPatch, before: str, then: str, pieces: list[str]
) -> None:
    monkeypatch.setenv("HOME", str(room / "home"))
    setting, word = f"{before}\n{then}", "".join(pieces)
    said = told(word, setting, room)
    if said is not None:
        assert made_of(word, setting, room) <= said


@pytest.mark.parametrize(
    ("setting", "word", "expected"),
    [
        ("", "f", {"f"}),
        ("", "*", {"*", "a", "f", "sub"}),
        ("", "{a,f}", {"a", "f", "{a,f}"}),
        ("X=sub", "$X/f", {"sub/f", "/f"}),
        ("for X in a f; do :; done", '"$X"', {"a", "f"}),
        ("", "$PWD/f", {"f"}),
        ("", '"$(pwd)/f"', {"f"}),
        ("", "~/f", {"../home/f"}),
        ("cd sub", "f", {"f", "sub/f"}),
    ],
)
def test_everyday_words_are_known(
    room: Path, monkeypatch: pytest.MonkeyPatch, setting: str, word: str, expected: set[str]
) -> None:
    monkeypatch.setenv("HOME", str(room / "home"))
    assert told(word, setting, room) == {os.path.normpath(room / "here" / name) for name in expected}


@pytest.mark.parametrize(
    ("text", "bases", "lost"),
    [
        ("ls", ["."], False),
        ("cd a && cd b", [".", "a", "b", "a/b"], False),
        ("cd /x; pushd ~/y", [".", "/x", "../home/y"], False),
        ("cd", [".", "../home"], False),
        ("cd $x", ["."], True),
        ("cd -", ["."], True),
        ("cd `x`", ["."], True),
        ("CDPATH=/x; cd a", [".", "a"], True),
        ("HOME=/x; cd", ["."], True),
        ("git -C sub status", [".", "sub"], False),
        ("tar -xC sub", [".", "sub"], False),
        ("tar -C/x -xf f", [".", "/x"], False),
        ("env --chdir=sub ls", [".", "sub"], False),
        ("sudo -D /x ls", [".", "/x"], False),
        ("grep -C 3 x", ["."], False),
        ("command cd sub", [".", "sub"], False),
        ('cd "$(git rev-parse --show-toplevel)"', ["."], False),
        ("git() { echo /x; }; cd $(git rev-parse --show-toplevel)", ["."], True),
    ],
)
def test_relative_paths_start_where_the_text_goes(
    room: Path, monkeypatch: pytest.MonkeyPatch, text: str, bases: list[str], lost: bool
) -> None:
    monkeypatch.setenv("HOME", str(room / "home"))
    meanings = Meanings(read_shell(text), room / "here")
    found = {os.path.normpath(base) for base in meanings.bases}
    assert found == {os.path.normpath(room / "here" / name) for name in bases}
    assert meanings.lost is lost


def test_a_text_that_goes_to_very_many_folders_is_lost(room: Path) -> None:
    meanings = Meanings(read_shell("".join(f"cd {number};" for number in range(50))), room)
    assert meanings.lost
    assert len(meanings.bases) < 100
