"""The names that rules and matchers may use."""

from __future__ import annotations

import pytest

from chimera.errors import ConfigError
from chimera.permissions.families import BUNDLED, FAMILIES, aliases_of, check_known, nearest


def test_a_tool_goes_by_its_name_and_its_families() -> None:
    assert aliases_of("bash") == ("bash", "Bash")
    assert aliases_of("write_file") == ("write_file", "Edit", "Write")
    assert aliases_of("mcp__git__log") == ("mcp__git__log",)


def test_families_hold_tools_that_exist_or_are_outside_tools_of_their_own_name() -> None:
    for family, members in FAMILIES.items():
        assert members <= BUNDLED or family in members


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("BASH", "Bash"),
        ("writefile", "write_file"),
        ("write-file", "write_file"),
        ("Writ", "Write"),
        ("serch", "search"),
    ],
)
def test_a_slip_is_refused_with_the_name_that_was_meant(name: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"did you mean '{meant}'"):
        check_known(name)


@pytest.mark.parametrize("name", ["bash", "Edit", "deploy", "spawn_worker", "MultiEdit"])
def test_a_name_that_may_well_exist_passes(name: str) -> None:
    check_known(name)


def test_with_the_tools_at_hand_every_other_name_is_refused() -> None:
    check_known("deploy", ["deploy"])
    check_known("bash", ["deploy"])
    with pytest.raises(ConfigError, match="no tool 'deplyo'; the nearest is 'deploy'"):
        check_known("deplyo", ["deploy"])
    with pytest.raises(ConfigError, match=r"no tool 'zzz'\Z"):
        check_known("zzz", ["deploy"])


def test_nothing_near_is_none() -> None:
    assert nearest("qqqq", ["bash"]) is None
    assert nearest("bsah", ["bash", "search"]) == "bash"
