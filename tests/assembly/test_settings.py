from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.assembly.settings import RuleLists, Settings, config_paths, load_settings
from chimera.errors import ConfigError

HOOK = '[[hooks.PreToolUse]]\nmatcher = "bash"\n[[hooks.PreToolUse.hooks]]\ntype = "command"\ncommand = "{command}"\n'


class Place:
    """A project and a user's folder to write settings into."""

    def __init__(self, folder: Path) -> None:
        self.project, self.user = folder / "project", folder / "user"
        self.project_file, self.user_file = self.project / ".chimera" / "config.toml", self.user / "config.toml"
        self.project_file.parent.mkdir(parents=True)
        self.user.mkdir()

    def load(self, **environ: str) -> Settings:
        return load_settings(self.project, user_dir=self.user, environ=environ)

    def fault(self, **environ: str) -> str:
        with pytest.raises(ConfigError) as caught:
            self.load(**environ)
        return str(caught.value)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_without_files_nothing_is_set(place: Place) -> None:
    assert place.load() == Settings()


def test_the_users_file_is_in_the_config_folder_of_the_platform(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place.user))
    folder = config_paths(place.project)[0].parent
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('model = "mine"\n')
    assert load_settings(place.project, environ={}).model == "mine"


def test_every_key_is_read(place: Place) -> None:
    place.project_file.write_text(
        'model = "glm-5.2"\nbase_url = "http://localhost:1/v1"\npreset = "minimal"\nmax_turns = 7\n'
        'permission_mode = "accept-edits"\n[permissions]\nallow = ["Bash(git status:*)"]\nask = ["Edit(docs/**)"]\n'
        'deny = ["Read(~/.ssh/**)"]\n[plugins.redactor]\npattern = "x+"\n[plugins.plan-gate]\n'
        + HOOK.format(command="true")
    )
    settings = place.load()
    assert (settings.model, settings.base_url, settings.preset) == ("glm-5.2", "http://localhost:1/v1", "minimal")
    assert (settings.max_turns, settings.permission_mode) == (7, "accept-edits")
    assert settings.permissions == RuleLists(("Read(~/.ssh/**)",), ("Edit(docs/**)",), ("Bash(git status:*)",))
    assert settings.plugins == {"redactor": {"pattern": "x+"}, "plan-gate": {}}
    assert settings.hooks == {
        "PreToolUse": [{"matcher": "bash", "hooks": [{"type": "command", "command": "true"}]}],
    }
    assert settings.files == (place.project_file,)


def test_environment_beats_project_beats_user(place: Place) -> None:
    place.user_file.write_text('model = "user"\npreset = "explore"\nmax_turns = 1\n')
    place.project_file.write_text('model = "project"\npreset = "minimal"\n')
    settings = place.load(CHIMERA_MODEL="environment", CHIMERA_MAX_TURNS=" ")
    assert (settings.model, settings.preset, settings.max_turns) == ("environment", "minimal", 1)
    assert settings.sources["model"] == (str(place.user_file), str(place.project_file), "CHIMERA_MODEL")
    assert settings.sources["max_turns"] == (str(place.user_file),)
    assert settings.files == (place.user_file, place.project_file)


def test_the_environment_sets_every_single_value(place: Place) -> None:
    settings = place.load(
        CHIMERA_MODEL="m",
        CHIMERA_BASE_URL="https://x",
        CHIMERA_PRESET="explore",
        CHIMERA_MAX_TURNS="12",
        CHIMERA_PERMISSION_MODE="yolo",
    )
    assert settings.model == "m"
    assert settings.base_url == "https://x"
    assert settings.preset == "explore"
    assert settings.max_turns == 12
    assert settings.permission_mode == "yolo"


def test_rules_and_hooks_of_both_files_are_joined(place: Place) -> None:
    place.user_file.write_text('[permissions]\ndeny = ["Bash(rm:*)"]\n' + HOOK.format(command="first"))
    place.project_file.write_text('[permissions]\ndeny = ["WebFetch"]\n' + HOOK.format(command="second"))
    settings = place.load()
    assert settings.permissions.deny == ("Bash(rm:*)", "WebFetch")
    assert [group["hooks"][0]["command"] for group in settings.hooks["PreToolUse"]] == ["first", "second"]
    assert settings.sources["permissions.deny"] == (str(place.user_file), str(place.project_file))


def test_plugins_are_merged_by_name_and_the_projects_options_win(place: Place) -> None:
    place.user_file.write_text('[plugins.redactor]\nreplacement = "-"\npattern = "a"\n[plugins.plan-gate]\n')
    place.project_file.write_text('[plugins.redactor]\npattern = "b"\n[plugins.delegate-spawner]\n')
    assert place.load().plugins == {
        "redactor": {"replacement": "-", "pattern": "b"},
        "plan-gate": {},
        "delegate-spawner": {},
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('modle = "x"', "unknown key 'modle'; did you mean 'model'?"),
        ("[permissions]\nalow = []", "unknown key 'permissions.alow'; did you mean 'permissions.allow'?"),
        ("[permisions]\nallow = []", "unknown key 'permisions'; did you mean 'permissions'?"),
        ("zzz = 1", "unknown key 'zzz'; valid here are model, base_url, preset"),
        ("[permissions]\nq = 1", "unknown key 'permissions.q'; valid here are allow, ask, deny"),
        ('max_turns = "5"', "'max_turns': should be a valid integer"),
        ("max_turns = true", "'max_turns': should be a valid integer"),
        ("max_turns = 0", "'max_turns': should be greater than or equal to 1"),
        ("model = 5", "'model': should be a valid string"),
        ('model = ""', "'model': string should have at least 1 character"),
        ('base_url = "localhost"', "'base_url': must start with http:// or https://"),
        ('permission_mode = "yes"', "'permission_mode': should be 'ask', 'accept-edits' or 'yolo'"),
        ('preset = "explorer"', "'preset': there is no preset 'explorer'"),
        ('[permissions]\ndeny = ["Bsh(rm)"]', "'permissions.deny': permission rule 'Bsh(rm)'"),
        ('[permissions]\nallow = ["Bash(git"]', "'permissions.allow': permission rule 'Bash(git'"),
        ('[permissions]\nallow = "Bash"', "'permissions.allow': should be a valid list"),
        ("[plugins]\nredactor = true", "'plugins.redactor': should be a valid dictionary"),
        ("[[hooks.PreToolUs]]\nhooks = []", "there is no hook event 'PreToolUs'; did you mean 'PreToolUse'?"),
        ('[[hooks.Stop]]\nhooks = [{type = "command"}]', "hooks.Stop[0].hooks[0].command"),
        ("[[hooks.Stop]]\nhoks = []", "there is no hook key 'hoks'; did you mean 'hooks'?"),
    ],
)
def test_a_fault_names_the_file_the_key_and_what_would_be_right(place: Place, text: str, words: str) -> None:
    place.project_file.write_text(text + "\n")
    fault = place.fault()
    assert fault.startswith(f"{place.project_file}: ")
    assert words in fault


def test_a_key_in_the_file_is_refused_and_never_shown(place: Place) -> None:
    place.user_file.write_text('api_key = "sk-abcdefghijk"\n')
    fault = place.fault()
    assert "'api_key'" in fault
    assert "environment" in fault
    assert "abcdef" not in fault


def test_values_are_not_shown(place: Place) -> None:
    place.user_file.write_text('model = ["sk-abcdefghijk"]\n')
    assert "abcdef" not in place.fault()


def test_all_faults_of_a_file_are_told_at_once(place: Place) -> None:
    place.project_file.write_text("modle = 1\nmax_turns = -1\n")
    assert place.fault().count(str(place.project_file)) == 2


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"a = 1\nb = \n", 2),
        (b'a = 1\nb = """x\n', 2),
        (b"a = 1\n[x\n", 2),
        (b"a = 1\n\xff", 2),
        (b"a = 1\na = 2\n", 2),
    ],
)
def test_what_is_no_toml_names_file_and_line(place: Place, content: bytes, line: int) -> None:
    place.project_file.write_bytes(content)
    assert place.fault().startswith(f"{place.project_file}: line {line}: this is not ")


def test_windows_files_are_read(place: Place) -> None:
    place.project_file.write_bytes(b'\xef\xbb\xbfmodel = "x"\r\n')
    assert place.load().model == "x"


def test_a_file_that_cannot_be_read_is_told(place: Place) -> None:
    place.project_file.symlink_to(place.project_file)
    assert place.fault().startswith(f"{place.project_file}: cannot be read: ")


@pytest.mark.parametrize(
    ("name", "value", "key"),
    [
        ("CHIMERA_MAX_TURNS", "many", "max_turns"),
        ("CHIMERA_MAX_TURNS", "²", "max_turns"),
        ("CHIMERA_PERMISSION_MODE", "yollo", "permission_mode"),
        ("CHIMERA_BASE_URL", "ftp://x", "base_url"),
        ("CHIMERA_PRESET", "none", "preset"),
    ],
)
def test_a_fault_in_the_environment_names_the_variable(place: Place, name: str, value: str, key: str) -> None:
    assert place.fault(**{name: value}).startswith(f"{name}: '{key}': ")


@given(st.text())
def test_any_text_is_settings_or_a_config_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    place = Place(tmp_path_factory.mktemp("any"))
    place.project_file.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        place.load()
        fault = None
    except ConfigError as problem:
        fault = str(problem)
    assert fault is None or str(place.project_file) in fault


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def link_to_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [make_pipe, link_to_device, Path.mkdir])
def test_only_regular_files_are_read(place: Place, make: Callable[[Path], object]) -> None:
    make(place.project_file)
    assert place.fault().startswith(f"{place.project_file}: this is no regular file")


def test_a_link_to_a_file_is_followed(place: Place) -> None:
    (place.project / "shared.toml").write_text('model = "m"')
    place.project_file.symlink_to(place.project / "shared.toml")
    assert place.load().model == "m"


def test_a_file_has_a_size_that_it_may_have(place: Place) -> None:
    place.project_file.write_text('model = "m"\n' + "#" * ((1 << 20) - 12))
    assert place.load().model == "m"
    with place.project_file.open("a") as file:
        file.write("#")
    assert place.fault() == f"{place.project_file}: too big: a configuration has at most 1 MiB"
