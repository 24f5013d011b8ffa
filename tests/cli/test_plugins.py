from __future__ import annotations

from pathlib import Path

import pytest

from chimera.cli.exits import OK
from chimera.cli.plugins import list_plugins, show_plugin
from chimera.errors import PluginError
from chimera.plugins import PluginExtensionRegistry

PLUGIN = '''
from chimera.core import InterceptDecision, tool
from chimera.plugins import BasePlugin, PluginExtensionRegistry

class Closed(BasePlugin):
    """Blocks \x1b[2J everything.

    Options have
    no effect."""
    name = "closed"

    def __init__(self, hours, *rest, until=5, **more):
        self.until = until

    def register_tools(self, registry):
        registry.register_tool(_tool)

    def register_interceptors(self, registry):
        PluginExtensionRegistry.register_interceptor("context", self.block)

    def block(self, messages):
        return InterceptDecision.block("closed")

@tool(name="ring")
def _tool() -> str:
    """Rings."""
    return "ding"
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / ".chimera" / "plugins"
    folder.mkdir(parents=True)
    (folder / "closed.py").write_text(PLUGIN)
    (folder / "broken.py").write_text("this is no Python\n")
    return tmp_path


def configure(project: Path, text: str) -> None:
    (project / ".chimera" / "config.toml").write_text(text)


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def test_the_list_holds_every_plugin_and_imports_none(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure(project, "[plugins.redactor]\n")
    assert list_plugins(project) == OK
    rows = {line.split()[0]: line.split()[1] for line in shown(capsys).splitlines() if not line.startswith(" ")}
    assert rows == {
        "name": "configured",
        "broken": "no",
        "closed": "no",
        "delegate-spawner": "no",
        "plan-gate": "no",
        "redactor": "yes",
    }


def test_a_pack_is_shown_with_its_options_and_seams(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert show_plugin("redactor", project) == OK
    text = shown(capsys)
    assert text.startswith("redactor\nScrubs secrets out of provider requests")
    assert "\noptions\n  pattern = None\n  replacement = '[redacted]'\n" in text
    assert "\nseams\n  provider_request  RedactorPlugin._request\n  tool_result       RedactorPlugin._result\n" in text
    assert "chimera-harness 0.1.0 (chimera.plugins.packs.redactor:RedactorPlugin)" in text
    assert "no file: load it with --plugin" in text
    assert not PluginExtensionRegistry.get_all_interceptors()


def test_a_plugin_of_the_project_is_shown_as_it_is_configured(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(project, "[plugins.closed]\nhours = 3\n")
    assert show_plugin("closed", project) == OK
    text = shown(capsys)
    assert "Blocks ␛[2J everything.\n\nOptions have no effect.\n" in text
    assert "\noptions\n  hours required\n  until = 5\n" in text
    assert "\nseams\n  context           Closed.block\n" in text
    assert "\ntools\n  ring\n" in text
    assert "config.toml" in text.split("configured in")[1]


@pytest.mark.parametrize(
    ("name", "words"), [("redacter", "did you mean redactor"), ("broken", "SyntaxError"), ("closed", "hours")]
)
def test_a_plugin_that_cannot_be_loaded_says_why(project: Path, name: str, words: str) -> None:
    with pytest.raises(PluginError, match=words):
        show_plugin(name, project)
    assert not PluginExtensionRegistry.get_all_interceptors()
