from __future__ import annotations

from pathlib import Path

import pytest

from chimera.cli.doctor import Finding, examine, run_doctor
from chimera.cli.exits import OK, USAGE
from chimera.plugins import PluginExtensionRegistry
from tests.providers.vendors import ANTHROPIC
from tests.providers.wire_server import Reply, WireServer, json_reply

SECRET = "sk-abcdefghijklmnop"


def found(project: Path) -> dict[str, Finding]:
    findings = list(examine(project, offline=True))
    by_subject = {finding.subject: finding for finding in findings}
    assert len(by_subject) == len(findings)
    return by_subject


def configure(project: Path, text: str) -> Path:
    path = project / ".chimera" / "config.toml"
    path.parent.mkdir()
    path.write_text(text)
    return path


def test_a_fresh_machine_lacks_a_model_and_is_told_how_to_get_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_doctor(tmp_path) == USAGE
    text = capsys.readouterr().out
    assert text.rstrip().endswith("Not ready: model.")
    assert "missing  model" in text
    assert all(f"({number})" in text for number in (1, 2, 3, 4))


def use(monkeypatch: pytest.MonkeyPatch, server: WireServer) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)


def test_with_a_key_it_is_ready_once_the_model_has_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with WireServer(ANTHROPIC.whole("h")) as server:
        use(monkeypatch, server)
        assert run_doctor(tmp_path) == OK
        [asked] = server.requests
    assert asked.json["max_tokens"] == 1
    text = capsys.readouterr().out
    assert "ok       model's answer" in text
    assert "asked for was one token" in " ".join(text.split())
    assert "Ready: start with `chimera code`." in text
    assert "ANTHROPIC_API_KEY set" in text
    assert SECRET not in text


@pytest.mark.parametrize(
    ("reply", "code", "said"),
    [
        (ANTHROPIC.error(401, "authentication_error", "no such key"), USAGE, "no such key"),
        (json_reply({"hello": 1}), USAGE, "did not answer in its protocol"),
        (ANTHROPIC.error(400, "invalid", "max_tokens or model output limit was reached"), OK, "came after"),
    ],
    ids=["key refused", "another service", "a model that thinks first"],
)
def test_a_model_that_does_not_answer_is_wrong(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    reply: Reply,
    code: int,
    said: str,
) -> None:
    with WireServer(reply) as server:
        use(monkeypatch, server)
        assert run_doctor(tmp_path) == code
    text = " ".join(capsys.readouterr().out.split())
    assert said in text
    assert text.endswith("Not ready: model's answer." if code else "`chimera code`.")
    assert SECRET not in text


def test_offline_nobody_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with WireServer() as server:
        use(monkeypatch, server)
        assert run_doctor(tmp_path, offline=True) == OK
        assert not server.requests


def test_what_is_configured_is_told_with_its_place(tmp_path: Path) -> None:
    path = configure(
        tmp_path,
        'model = "glm-5.2"\nbase_url = "http://localhost:1/v1"\npermission_mode = "accept-edits"\n'
        '[permissions]\ndeny = ["Bash(rm:*)", "WebFetch"]\n[plugins.redactor]\n'
        '[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "true"\n',
    )
    findings = found(tmp_path)
    assert not any(finding.bad for finding in findings.values())
    assert findings["model"].text == f"glm-5.2 at http://localhost:1/v1 ({path})"
    assert findings["permissions"].text == "mode accept-edits; rules: 2 deny, 0 ask, 0 allow"
    assert findings["plugin redactor"].text == str(path)
    assert findings["hooks"].text == "Stop 1"
    assert findings["project settings"].state == "ok"
    assert findings["user settings"].state == "none"
    assert "plan-gate" in findings["more plugins"].text
    assert not PluginExtensionRegistry.get_all_interceptors()


def test_every_fault_of_the_settings_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure(tmp_path, "modle = 1\nmax_turns = 0\n")
    assert run_doctor(tmp_path) == USAGE
    text = capsys.readouterr().out
    assert text.count("wrong    settings") == 2
    assert text.rstrip().endswith("Not ready: settings.")
    assert "did you mean 'model'?" in " ".join(text.split())


BRINGER = """
from chimera.core import tool
from chimera.plugins import BasePlugin

@tool
def deploy(target: str) -> str:
    "Deploy."
    return target

class Bringer(BasePlugin):
    name = "bringer"
    def register_tools(self, registry):
        registry.register_tool(deploy)
"""


def test_a_rule_for_a_tool_that_nobody_brings_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = configure(
        tmp_path,
        'model = "faux"\n[permissions]\ndeny = ["deploy", "deplyo", "Bash(rm:*)", "WebFetch"]\nallow = ["shpi"]\n'
        "[plugins.bringer]\n",
    )
    (path.parent / "plugins").mkdir()
    (path.parent / "plugins" / "bringer.py").write_text(BRINGER)
    warned = [finding for finding in examine(tmp_path, offline=True) if finding.state == "warning"]
    assert [finding.subject for finding in warned] == ["deny rule", "allow rule"]
    assert "'deplyo'" in warned[0].text
    assert "the nearest is 'deploy'" in warned[0].text
    assert warned[0].text.startswith(str(path))
    assert run_doctor(tmp_path, offline=True) == OK  # a plugin of the command line may bring it
    assert capsys.readouterr().out.rstrip().endswith("Ready: start with `chimera code`.")


def test_what_is_missing_for_the_full_screen_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(tmp_path)["full screen"].state == "ok"
    monkeypatch.setattr("chimera.cli.doctor.find_spec", lambda name: None)
    assert found(tmp_path)["full screen"].state == "none"
    assert "chimera-harness[tui]" in found(tmp_path)["full screen"].text


def test_a_plugin_that_cannot_be_loaded_is_wrong(tmp_path: Path) -> None:
    path = configure(tmp_path, 'model = "faux"\n[plugins.redactor]\npatern = "x"\n[plugins.plan-gate]\n')
    findings = found(tmp_path)
    assert findings["plugin redactor"].state == "wrong"
    assert findings["plugin redactor"].text.startswith(f"{path}: ")
    assert findings["plugin plan-gate"].state == "ok"


def test_what_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert found(tmp_path)["bash"] == Finding("missing", "bash", "commands of the agent run in it; install it")
