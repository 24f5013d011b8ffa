"""Braces expand as in bash."""

from __future__ import annotations

import subprocess
from shutil import which

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chimera.permissions.shell.braces import expand

BASH = which("bash")
PIECES = ["{", "}", ",", "a", "b", "..", "1", "3", "03", "x", "{a,b}", "{1..3}", "{b..d}", "{,x}", "-"]


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
@settings(max_examples=60)
@given(st.lists(st.sampled_from(PIECES), max_size=7).map("".join))
@example("{a,{b,c}}d{e,f}")
@example("{a{b,c}")
@example("{a,b}}{c")
@example("{a,b{c}")
@example("{..{a,b}}")
@example("{1..{a,b}}")
@example("{{a,b}..c}")
def test_nothing_that_bash_makes_of_braces_is_left_out(text: str) -> None:
    done = subprocess.run(
        [BASH or "bash", "-c", f"set -f; printf '%s\\n' x{text}"], capture_output=True, text=True, check=True
    )
    found = expand(f"x{text}")
    assert found is None or set(done.stdout.splitlines()) <= {*found, f"x{text}"}


@pytest.mark.parametrize("text", ["{1..9999}", "{a,b}" * 12, "{1..20}{1..20}", "{a,b}" * 60, "{" * 500])
def test_what_stands_for_very_many_words_is_not_written_out(text: str) -> None:
    assert expand(text) is None
