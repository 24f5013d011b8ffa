"""The reader against bash itself: whatever bash would run is found, or the text is doubted.

Random texts are put together from the pieces that shells give a meaning to. Where the reader is sure that a program
does not occur, bash runs the text in an empty folder with nothing but that program on its path, and it must not start.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from shutil import which

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from chimera.permissions.match import Match
from chimera.permissions.shell import read_shell
from chimera.permissions.shell.patterns import covering, parse_pattern, runs

BASH = which("bash")
FORBIDDEN = parse_pattern("mk:*")
pytestmark = pytest.mark.skipif(BASH is None, reason="bash is not installed")

# fmt: off
PIECES = [
    "mk", "mk x", " ", " ", "\n", ";", "&", "&&", "|", "||", "(", ")", "{ ", "; }", "$(", "`", "'", '"', "\\",
    "$'", '$"', "#", " #", "<<E", "<<'E'", "<<-E", "E", "\nE\n", "<", "> f", "[[ ", " ]]", "case x in ", "x) ",
    ";; ", " esac", "if ", "; then ", "; fi", "; do ", "; done", "for i in ", "while ", "${x:-", "}", "${x#", "x",
    "x=", "a=(", "((", "))", "$((", "eval ", "! ", "time ", "coproc ", "function f ", "f() ", "\t", "[", "]",
    " in ", "$x", " <(", ">(", "echo ", "a[", "<<<", "\\\n", "*", "{a,b}", "&>f", "2>&1", "exec ", "command ",
    "trap ", "bash -c ", "bash <<E\n", "env ", "\r", "$", "@", "=", "+=", "-", "&> ", ">| ", "|& ", ";& ",
    "select i in ", "until ", "let ", "x=1 ", "${!x}", "${x@P}", "[[ x =~ ", "\x0b", "é", "\xa0",
]
# fmt: on


@pytest.fixture(scope="module")
def runs_in_bash(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], bool]:
    """Return a function that says whether bash starts the program `mk` when it runs a text."""
    folder = tmp_path_factory.mktemp("bash")
    hit, programs, room = folder / "hit", folder / "bin", folder / "room"
    programs.mkdir()
    room.mkdir()
    (programs / "mk").write_text(f"#!/bin/sh\n: > '{hit}'\nexit 1\n")
    (programs / "mk").chmod(0o755)
    for name in ("bash", "env"):
        (programs / name).symlink_to(which(name) or name)
    return lambda text: _start(text, programs, room, hit)


def _start(text: str, programs: Path, room: Path, hit: Path) -> bool:
    process = subprocess.Popen(
        [BASH or "bash", "-c", text],
        cwd=room,
        env={"PATH": str(programs)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with suppress(subprocess.TimeoutExpired):
        process.wait(2)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    started = hit.exists()
    hit.unlink(missing_ok=True)
    return started


def finds(text: str) -> bool:
    """Say whether the reader finds the program, or does not claim that it is not there."""
    read = read_shell(text)
    named = (command.words[0] for command in read.all())
    return bool(read.doubts) or any(word.text.rsplit("/", 1)[-1] == "mk" for word in named)


def test_the_harness_can_tell(runs_in_bash: Callable[[str], bool]) -> None:
    assert runs_in_bash("mk")
    assert runs_in_bash("echo $(mk)")
    assert not runs_in_bash("echo mk")


@settings(max_examples=250, suppress_health_check=[HealthCheck.too_slow])
@example("env =x mk")
@example("bash -c - mk")
@example("[[ # ]] \n a ]] ; mk")
@example("a[ # ]=1; mk")
@example("> f [[ x && mk ]]")
@example('echo "$\\\n(mk)"')
@example("cat <<E\nx\\\nE\nmk\nE")
@example("echo $(cat <<E\nE)\nmk")
@given(st.lists(st.sampled_from(PIECES), min_size=2, max_size=12).map("".join))
def test_nothing_that_bash_runs_is_overlooked(runs_in_bash: Callable[[str], bool], text: str) -> None:
    if "mk" in text and not finds(text):
        assert not runs_in_bash(text)


# fmt: off
SEPARATORS = st.sampled_from([" && ", "; ", " | ", " || ", "\n", " & ", ";", "|", " |& ", "&&"])
PREFIXES = st.sampled_from([
    "", "X=1 ", "env ", "env -u X ", "command ", "exec ", "! ", "time ", "> f ", "< f ", "nohup ", "timeout 1 ",
    "sudo ",
])
AROUND = st.sampled_from([
    "{}", "( {} )", "{{ {}; }}", "$({})", "`{}`", 'echo "$({})"', "if {}; then :; fi", "while {}; do break; done",
    "case x in *) {};; esac", "f() {{ {}; }}; f", "echo <({})", "cat <<E\n$({})\nE\n", "[[ $({}) ]]", "x=$({})",
    "for i in 1; do {}; done", "{} > f", "{} # x", "bash <<E\n{}\nE\n", "bash -c \"{}\"", 'eval "{}"', "f=$(( {} ) )",
])
HARMLESS = st.sampled_from([
    "true", ":", "echo x", "echo 'a;b'", 'echo "(x)"', "x=1", "[ 1 ]", "echo \\;", "[[ a == b ]]", "echo '#'",
    "echo {}",
])
WRITTEN = st.sampled_from(["mk", "'mk'", "m''k", "mk x", "bin/../mk", "/usr/bin/mk", "mk -a 'b c'", "MK"])
DISGUISED = st.sampled_from(["m\\k", '"mk"', "$'mk'", "$'\\x6dk'", "m\\\nk", 'm"k" "$x"'])
# fmt: on


@settings(max_examples=200)
@given(
    st.lists(HARMLESS, max_size=3), PREFIXES, WRITTEN, st.lists(HARMLESS, max_size=3), SEPARATORS, AROUND, st.booleans()
)
def test_a_command_is_forbidden_in_any_composition(
    before: list[str], prefix: str, written: str, after: list[str], separator: str, around: str, twice: bool
) -> None:
    inner = around.format(prefix + written)
    text = separator.join([*before, f"( {inner}\n)" if twice else inner, *after])
    assert runs(FORBIDDEN, read_shell(text)) is Match.YES


@given(st.lists(HARMLESS, max_size=3), PREFIXES, DISGUISED, SEPARATORS)
def test_quotes_and_escapes_disguise_nothing(before: list[str], prefix: str, written: str, separator: str) -> None:
    text = separator.join([*before, prefix + written])
    assert runs(FORBIDDEN, read_shell(text)) is Match.YES


@given(st.lists(HARMLESS, min_size=1, max_size=5), SEPARATORS)
def test_harmless_compositions_are_not_forbidden(parts: list[str], separator: str) -> None:
    assert runs(FORBIDDEN, read_shell(separator.join(parts))) is Match.NO


@given(st.lists(HARMLESS, min_size=1, max_size=3), PREFIXES, WRITTEN, SEPARATORS, AROUND)
def test_what_holds_another_command_is_never_permitted(
    before: list[str], prefix: str, written: str, separator: str, around: str
) -> None:
    permitted = [parse_pattern(f"{name}:*") for name in ("true", ":", "echo", "[", "cat", "bash", "f", "break", "eval")]
    text = separator.join([*before, around.format(prefix + written)])
    assert covering(permitted, read_shell(text)) == []
