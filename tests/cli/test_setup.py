from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chimera.assembly.settings import Settings, config_paths, load_settings
from chimera.cli.holding import policy_of
from chimera.cli.options import CodeOptions, Mode
from chimera.cli.setup import Session, load_plugins, open_session, project_folder
from chimera.errors import ConfigError, PluginError
from chimera.permissions import PermissionAction
from chimera.plugins import PluginExtensionRegistry, PluginManager
from chimera.tools import default_tools
from chimera.types import PendingApproval
from tests.cli.child import script

ALLOW, ASK, DENY = PermissionAction.ALLOW, PermissionAction.ASK, PermissionAction.DENY


def configure(project: Path, text: str) -> Path:
    path = project / ".chimera" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def session_of(project: Path, **options: Any) -> Any:
    options.setdefault("model", "faux")
    return open_session(CodeOptions(project=project, **options), default_mode=Mode.ASK)


def judged(project: Path, mode: Mode, tool: str, **arguments: Any) -> PermissionAction:
    settings = load_settings(project)
    return policy_of(settings, mode, project, default_tools(project)).evaluate(tool, arguments)


EDITS = [
    ("write_file", {"path": "{}", "content": "x"}),
    ("edit_file", {"path": "{}", "old_string": "a", "new_string": "b"}),
    ("replace_in_file", {"path": "{}", "diff": "x"}),
    ("apply_patch", {"patch": "*** Begin Patch\n*** Add File: {}\n+x\n*** End Patch\n"}),
]
OWN = [".chimera/config.toml", ".git/config", "sub/.git/hooks/pre-commit", "./x/../.chimera/plugins/p.py"]


@pytest.mark.parametrize(("tool", "arguments"), EDITS)
@pytest.mark.parametrize("mode", [Mode.ASK, Mode.ACCEPT_EDITS])
@pytest.mark.parametrize("path", OWN)
def test_what_the_agent_is_held_to_is_asked_for_whatever_is_allowed(
    tmp_path: Path, tool: str, arguments: dict[str, str], mode: Mode, path: str
) -> None:
    configure(tmp_path, '[permissions]\nallow = ["Edit(**)", "Write(**)", "Edit", "Write"]\n')
    filled = {key: value.replace("{}", path) for key, value in arguments.items()}
    assert judged(tmp_path, mode, tool, **filled) is ASK
    ordinary = {key: value.replace("{}", "src/a.py") for key, value in arguments.items()}
    assert judged(tmp_path, mode, tool, **ordinary) is ALLOW


@pytest.mark.parametrize("command", ["echo x > .chimera/config.toml", "printf y >> .git/config", "tee .git/config"])
def test_a_shell_that_writes_there_is_asked_for_too(tmp_path: Path, command: str) -> None:
    configure(tmp_path, '[permissions]\nallow = ["Edit(**)", "Bash(echo:*)", "Bash(printf:*)", "Bash(tee:*)"]\n')
    assert judged(tmp_path, Mode.ACCEPT_EDITS, "bash", command=command) is ASK


def test_the_users_own_settings_are_protected(tmp_path: Path) -> None:
    configure(tmp_path, '[permissions]\nallow = ["Edit", "Bash(echo:*)"]\n')
    path = config_paths(tmp_path)[0]
    assert judged(tmp_path, Mode.ACCEPT_EDITS, "bash", command=f"echo x > {path}") is ASK


@pytest.mark.parametrize(
    ("mode", "edit", "command"), [(Mode.ASK, ASK, ASK), (Mode.ACCEPT_EDITS, ALLOW, ASK), (Mode.YOLO, ALLOW, ALLOW)]
)
def test_modes(tmp_path: Path, mode: Mode, edit: PermissionAction, command: PermissionAction) -> None:
    assert judged(tmp_path, mode, "write_file", path="a.py", content="") is edit
    assert judged(tmp_path, mode, "bash", command="ls") is command
    assert judged(tmp_path, mode, "read_file", path="a.py") is ALLOW


@pytest.mark.parametrize("mode", Mode)
def test_deny_rules_hold_in_every_mode(tmp_path: Path, mode: Mode) -> None:
    configure(tmp_path, '[permissions]\nallow = ["Bash"]\ndeny = ["Bash(git push:*)", "Edit(secret/**)"]\n')
    assert judged(tmp_path, mode, "bash", command="cd x && git push") is DENY
    assert judged(tmp_path, mode, "write_file", path="secret/a", content="") is DENY
    assert judged(tmp_path, mode, "bash", command="ls") is ALLOW


def test_a_tool_that_does_not_say_what_it_does_is_asked_for(tmp_path: Path) -> None:
    assert judged(tmp_path, Mode.ACCEPT_EDITS, "from_a_plugin") is ASK


def test_options_beat_settings_and_settings_beat_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(tmp_path, 'model = "faux"\npreset = "explore"\nmax_turns = 3\npermission_mode = "accept-edits"\n')
    with session_of(tmp_path, model=None) as session:
        agent = session.agent.agent
        assert (session.mode, agent.preset.name, agent.max_turns) == (Mode.ACCEPT_EDITS, "explore", 3)
    monkeypatch.setenv("CHIMERA_PRESET", "minimal")
    with session_of(tmp_path, model=None, max_turns=9, mode=Mode.YOLO) as session:
        agent = session.agent.agent
        assert (session.mode, agent.preset.name, agent.max_turns) == (Mode.YOLO, "minimal", 9)
    with session_of(tmp_path, preset="coding_agent") as session:
        assert session.agent.agent.preset.name == "coding_agent"


def test_plugins_are_loaded_with_their_options_and_unloaded_at_the_end(tmp_path: Path) -> None:
    configure(tmp_path, '[plugins.redactor]\nreplacement = "-"\n[plugins.plan-gate]\n')
    with session_of(tmp_path, plugins=("delegate-spawner", "redactor")) as session:
        assert list(session.manager.plugins) == ["redactor", "plan-gate", "delegate-spawner"]
        assert session.manager.plugins["redactor"]._replacement == "-"
        assert PluginExtensionRegistry.get_all_interceptors()
    assert not PluginExtensionRegistry.get_all_interceptors()


def test_plugins_are_unloaded_when_the_session_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No model"), session_of(tmp_path, model=None, plugins=("redactor",)):
        pytest.fail("there is no model")
    with pytest.raises(PluginError, match="redacter"), session_of(tmp_path, plugins=("redactor", "redacter")):
        pytest.fail("there is no such plugin")
    assert not PluginExtensionRegistry.get_all_interceptors()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[plugins.redacter]\n", "'plugins.redacter': there is no plugin 'redacter'; did you mean redactor?"),
        ('[plugins.redactor]\npatern = "x"\n', "'plugins.redactor': "),
        ('[plugins.redactor]\npattern = "("\n', "'plugins.redactor': "),
    ],
)
def test_a_plugin_that_cannot_be_loaded_names_the_file(tmp_path: Path, text: str, words: str) -> None:
    path = configure(tmp_path, text)
    with pytest.raises(PluginError) as caught, session_of(tmp_path):
        pytest.fail("it cannot be loaded")
    assert str(caught.value).startswith(f"{path}: {words}")


def test_a_spawner_comes_with_the_tool_that_it_needs(tmp_path: Path) -> None:
    with session_of(tmp_path) as session:
        assert "delegate" not in [tool.name for tool in session.agent.tools]
    with session_of(tmp_path, plugins=("delegate-spawner",)) as session:
        assert "delegate" in [tool.name for tool in session.agent.tools]


def spawned(session: Session) -> list[str]:
    session.agent.run("go")
    return [message.content for message in session.agent.history if message.role == "tool"]


SPAWN = [
    {"tool_calls": [{"name": "spawn_x", "arguments": {"task": "write"}}]},
    {"tool_calls": [{"name": "bash", "arguments": {"command": "echo x > y"}}]},
    {"text": "I could not."},
    {"text": "So be it."},
]


def test_a_sub_agent_is_held_to_the_session_s_permissions(tmp_path: Path) -> None:
    with session_of(tmp_path, model=script(tmp_path, SPAWN), plugins=("delegate-spawner",)) as session:
        assert spawned(session) == ["I could not."]
        (rewritten, denied) = session.log.entries
    assert (rewritten.decision, rewritten.depth) == ("replaced", 0)
    assert (denied.seam, denied.decision, denied.tool, denied.depth) == ("permission", "denied", "bash", 1)
    assert not (tmp_path / "y").exists()


@pytest.mark.parametrize(
    ("mode", "reply", "ran"),
    [(Mode.YOLO, '{"hookSpecificOutput": {"permissionDecision": "ask"}}', True), (Mode.YOLO, "deny", False)],
)
def test_hooks_run_in_the_project_and_yolo_silences_only_their_questions(
    tmp_path: Path, mode: Mode, reply: str, ran: bool
) -> None:
    (tmp_path / "reply").write_text(reply)
    command = "cat reply" if ran else "echo no >&2; exit 2"
    configure(
        tmp_path,
        '[[hooks.PreToolUse]]\nmatcher = "Bash"\n[[hooks.PreToolUse.hooks]]\ntype = "command"\n'
        f'command = "{command}"\n',
    )
    steps = [{"tool_calls": [{"name": "bash", "arguments": {"command": "touch ran"}}]}, "ok"]
    with session_of(tmp_path, model=script(tmp_path, steps), mode=mode) as session:
        session.agent.run("go")
    assert (tmp_path / "ran").exists() is ran


def test_folders_and_loops_that_do_not_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        project_folder(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="there is no loop 'sideways'"), session_of(tmp_path, loop="sideways"):
        pytest.fail("there is no such loop")


def test_a_plugin_of_the_command_line_is_named_without_a_file() -> None:
    with pytest.raises(PluginError) as caught:
        load_plugins(PluginManager(), {"redacter": {}}, Settings())
    assert str(caught.value).startswith("there is no plugin 'redacter'")


def test_questions_of_the_default_loop_reach_whoever_asks(tmp_path: Path) -> None:
    asked: list[str] = []

    def ask(approval: PendingApproval) -> None:
        asked.append(approval.tool_name)
        approval.approve()

    steps = [{"tool_calls": [{"name": "bash", "arguments": {"command": "touch ran"}}]}, "ok"]
    options = CodeOptions(model=script(tmp_path, steps), project=tmp_path)
    with open_session(options, default_mode=Mode.ASK, ask=ask) as session:
        session.agent.run("go")
    assert asked == ["bash"]
    assert (tmp_path / "ran").exists()


def test_a_plugin_that_does_not_go_quietly_is_unloaded_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plugins = tmp_path / ".chimera" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "loud.py").write_text(
        "from chimera.plugins import BasePlugin\nclass Loud(BasePlugin):\n    name = 'loud'\n"
        "    def deactivate(self):\n        raise OSError('no')\n"
    )
    with session_of(tmp_path, plugins=("redactor", "loud")) as session:
        manager = session.manager
    assert not manager.plugins
    assert "'loud' is unloaded, but its deactivate raised" in caplog.text
    assert not PluginExtensionRegistry.get_all_interceptors()
