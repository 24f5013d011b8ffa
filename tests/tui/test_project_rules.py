from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from chimera.assembly.settings import load_settings
from chimera.errors import ConfigError
from chimera.tui.project_rules import allow_in_project

OLD = """# mine
model = "m"  # the model

[permissions]
deny = ["Bash(rm:*)"]
allow = [
    "Edit(src/**)",  # why
]

[plugins.redactor]
"""


def test_the_rule_is_added_and_everything_else_stays(tmp_path: Path) -> None:
    file = tmp_path / ".chimera" / "config.toml"
    file.parent.mkdir()
    file.write_text(OLD)
    file.chmod(0o640)
    assert allow_in_project(tmp_path, ["bash(make 'a b')", "Edit(src/**)"]) == file
    text = file.read_text()
    assert all(line in text for line in OLD.splitlines())
    assert load_settings(tmp_path).permissions.allow == ("Edit(src/**)", "bash(make 'a b')")
    assert load_settings(tmp_path).permissions.deny == ("Bash(rm:*)",)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert os.listdir(file.parent) == ["config.toml"]  # noqa: PTH208


def test_a_project_without_settings_gets_some(tmp_path: Path) -> None:
    file = allow_in_project(tmp_path, ["deploy"])
    assert load_settings(tmp_path).permissions.allow == ("deploy",)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["model = ", "[permissions]\nallow = 3\n", "unknown = 1\n"])
def test_broken_settings_stay_as_they_are(tmp_path: Path, text: str) -> None:
    file = tmp_path / ".chimera" / "config.toml"
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"config\.toml"):
        allow_in_project(tmp_path, ["deploy"])
    assert file.read_text() == text


def test_a_rule_that_can_never_match_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean"):
        allow_in_project(tmp_path, ["edit_fil"])
    assert not (tmp_path / ".chimera").exists()


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / ".chimera").write_text("a file")
    with pytest.raises(ConfigError):
        allow_in_project(tmp_path, ["deploy"])


def test_settings_elsewhere_are_written_where_they_are(tmp_path: Path) -> None:
    """A link to settings that are shared stays a link."""
    shared = tmp_path / "shared.toml"
    shared.write_text("model = 'm'\n")
    project = tmp_path / "shop"
    (project / ".chimera").mkdir(parents=True)
    (project / ".chimera" / "config.toml").symlink_to(shared)
    assert allow_in_project(project, ["deploy"]) == shared
    assert (project / ".chimera" / "config.toml").is_symlink()
    assert load_settings(project).permissions.allow == ("deploy",)
    assert load_settings(project).model == "m"
