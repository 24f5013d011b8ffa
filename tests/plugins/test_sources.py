"""Where plugins come from: files, folders and entry points; broken ones are listed and say what is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from textwrap import dedent

import pytest

from chimera.errors import PluginError
from chimera.plugins import PluginManager
from tests.plugins.support import chains

GATE = """\
from chimera.core.interception import InterceptDecision
from chimera.plugins import BasePlugin, PluginExtensionRegistry

class Gate(BasePlugin):
    def __init__(self, word="rm"):
        self.word = word

    @property
    def name(self):
        return "{name}"

    def register_interceptors(self, registry):
        PluginExtensionRegistry.register_interceptor("tool_call", self.gate)

    def gate(self, call):
        return InterceptDecision.block("{name}") if self.word in str(call.arguments) else None
"""


def test_a_plugin_is_loaded_from_any_place(tmp_path: Path) -> None:
    (tmp_path / "no-delete.py").write_text(GATE.format(name="no-delete"))
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed/__init__.py").write_text(GATE.format(name="redactor"))
    manager = PluginManager()
    assert vars(manager.load_file(tmp_path / "no-delete.py", word="dd"))["word"] == "dd"
    manager.load_file(str(tmp_path / "packed"))
    assert manager.named == {"no-delete": {"word": "dd"}, "packed": {}}
    assert list(manager.plugins) == ["no-delete", "redactor"]
    (tmp_path / "packed/__init__.py").write_text("1 / 0\n")
    with pytest.raises(PluginError, match=r"packed/__init__.py, line 1: ZeroDivisionError"):
        manager.reload("packed")
    for place in ("missing.py", "missing", "notes.txt"):
        (tmp_path / "notes.txt").write_text("")
        with pytest.raises(PluginError, match=f"{place} is no plugin"):
            manager.load_file(tmp_path / place)
    with pytest.raises(PluginError, match="is loaded under that name"):
        manager.load_file(tmp_path / "no-delete.py")


def test_files_and_folders_are_plugins(tmp_path: Path) -> None:
    (tmp_path / "no-delete.py").write_text(GATE.format(name="no-delete"))
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed/__init__.py").write_text("from .gate import Gate\n")
    (tmp_path / "packed/gate.py").write_text(GATE.format(name="packed"))
    for other in ("_private.py", "notes.txt", ".hidden.py", "2 words.py"):
        (tmp_path / other).write_text("raise SystemExit")
    (tmp_path / "no_plugin").mkdir()
    manager = PluginManager([tmp_path, tmp_path / "missing"])
    assert {"no-delete", "packed", "plan-gate"} <= set(manager.discover())
    assert not {"_private", "notes", ".hidden", "2 words", "no_plugin"} & set(manager.discover())
    manager.load("no-delete", word="dd")
    manager.load("packed")
    assert [gate.__self__.word for gate in chains()["tool_call"]] == ["dd", "rm"]
    manager.unload("no-delete")
    assert [gate.__self__.name for gate in chains()["tool_call"]] == ["packed"]


def test_files_of_one_name_in_two_folders_are_two_modules(tmp_path: Path) -> None:
    managers = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "gate.py").write_text(GATE.format(name=f"gate-{folder}"))
        managers.append(PluginManager([tmp_path / folder]))
        managers[-1].load("gate")
    assert [list(manager.plugins) for manager in managers] == [["gate-one"], ["gate-two"]]
    with pytest.raises(PluginError, match=rf"'gate' is in several places, the file {tmp_path}/one.*{tmp_path}/two"):
        PluginManager([tmp_path / "one", tmp_path / "two"]).load("gate")


def test_a_plugin_may_call_itself_otherwise_than_its_file(tmp_path: Path) -> None:
    (tmp_path / "file_name.py").write_text(GATE.format(name="own-name"))
    manager = PluginManager([tmp_path])
    manager.load("file_name")
    assert list(manager.plugins) == ["own-name"]
    with pytest.raises(PluginError, match="is loaded under that name"):
        manager.load("file_name")
    assert "plan-gate" in manager.load_all()
    assert "own-name" in manager.plugins
    manager.reload("file_name")
    manager.unload("file_name")
    assert "own-name" not in manager.plugins


def test_a_variable_may_say_which_thing_is_the_plugin(tmp_path: Path) -> None:
    two = GATE.format(name="a") + "\nclass Other(Gate):\n    name = 'b'\n"
    (tmp_path / "ambiguous.py").write_text(two)
    (tmp_path / "klass.py").write_text(f"{two}\nplugin = Other\n")
    (tmp_path / "instance.py").write_text(GATE.format(name="c") + "\nplugin = Gate('x')\n")
    (tmp_path / "factory.py").write_text(GATE.format(name="d") + "\ndef plugin(size=1):\n    return Gate('y' * size)\n")
    manager = PluginManager([tmp_path])
    with pytest.raises(PluginError, match=r"must define one plugin .* it defines: Gate, Other"):
        manager.load("ambiguous")
    manager.load("klass")
    manager.load("instance")
    manager.load("factory", size=3)
    assert [gate.__self__.word for gate in chains()["tool_call"]] == ["rm", "x", "yyy"]
    manager.unload("instance")
    with pytest.raises(PluginError, match="is made already and takes no options"):
        manager.load("instance", word="z")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("def broken(:\n", r"bad.py, line 1: SyntaxError"),
        ("x = 1\nimport does_not_exist_anywhere\n", r"bad.py, line 2: ModuleNotFoundError: .*does_not_exist_anywhere"),
        ("1 / 0\n", r"bad.py, line 1: ZeroDivisionError"),
        ("x = 1\n", "it defines: none"),
        ("plugin = 3\n", "int, which is no plugin"),
        ("plugin = dict\n", "makes dict, which is no BasePlugin"),
        ("def plugin():\n    raise ValueError('no luck')\n", r"bad.py, line 2: ValueError: no luck"),
    ],
)
def test_a_broken_plugin_is_listed_and_its_error_is_told(tmp_path: Path, source: str, text: str) -> None:
    (tmp_path / "bad.py").write_text(source)
    (tmp_path / "good.py").write_text(GATE.format(name="good"))
    manager = PluginManager([tmp_path])
    assert {"bad", "good"} <= set(manager.discover())
    with pytest.raises(PluginError, match=rf"plugin 'bad' was not loaded.*{text}"):
        manager.load("bad")
    with pytest.raises(PluginError, match=text):
        manager.load_all()
    assert "good" in manager.plugins
    assert "bad" not in manager.plugins
    (tmp_path / "bad.py").write_text(GATE.format(name="bad"))
    manager.load("bad")


def test_a_failed_import_of_a_folder_leaves_no_module_behind(tmp_path: Path) -> None:
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed/__init__.py").write_text("from .gate import Gate\n1 / 0\n")
    (tmp_path / "packed/gate.py").write_text(GATE.format(name="old"))
    manager = PluginManager([tmp_path])
    before = set(sys.modules)
    with pytest.raises(PluginError, match="ZeroDivisionError"):
        manager.load("packed")
    assert {name for name in set(sys.modules) - before if name.startswith("chimera_plugin_")} == set()
    (tmp_path / "packed/__init__.py").write_text("from .gate import Gate\n")
    (tmp_path / "packed/gate.py").write_text(GATE.format(name="new"))
    assert manager.load("packed").name == "new"


def test_files_write_no_bytecode_next_to_the_users_source(tmp_path: Path) -> None:
    (tmp_path / "gate.py").write_text(GATE.format(name="gate"))
    PluginManager([tmp_path]).load("gate")
    assert [path.name for path in tmp_path.iterdir()] == ["gate.py"]


def install(target: Path, name: str, modules: dict[str, str], entry_points: str) -> None:
    """Lay a third party's package out the way an installer does."""
    package = target / name
    package.mkdir(parents=True)
    for file, source in modules.items():
        (package / file).write_text(source)
    info = target / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[chimera.plugins]\n{dedent(entry_points)}")


def test_an_entry_point_that_cannot_be_imported_does_not_hide_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = "acme-gate = acme_gates.gate:Gate\nacme-broken = acme_gates.broken:Gate\nacme-gone = acme_nowhere:Gate\n"
    modules = {"__init__.py": "", "gate.py": GATE.format(name="acme-gate"), "broken.py": "import nothing_there\n"}
    install(tmp_path, "acme_gates", modules, entries)
    monkeypatch.syspath_prepend(tmp_path)
    manager = PluginManager()
    assert {"acme-gate", "acme-broken", "acme-gone", "redactor"} <= set(manager.discover())
    with pytest.raises(PluginError, match=r"'acme-broken' was not loaded .*broken.py, line 1: ModuleNotFoundError"):
        manager.load("acme-broken")
    with pytest.raises(PluginError, match=r"package 'acme-gates'\): ModuleNotFoundError: .*acme_nowhere"):
        manager.load("acme-gone")
    assert manager.load("acme-gate").name == "acme-gate"
    assert [gate.__self__.name for gate in chains()["tool_call"]] == ["acme-gate"]


def test_a_name_of_two_packages_is_refused_and_both_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("acme_one", "acme_two"):
        install(tmp_path / name, name, {"__init__.py": GATE.format(name="twin")}, f"twin = {name}:Gate\n")
        monkeypatch.syspath_prepend(tmp_path / name)
    manager = PluginManager()
    assert manager.discover().count("twin") == 1
    with pytest.raises(PluginError, match=r"several places, .*'acme-(one|two)' and .*'acme-(one|two)'"):
        manager.load("twin")


def test_the_same_entry_point_listed_twice_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from chimera.plugins import sources

    point = EntryPoint("x", "chimera.plugins.packs:RedactorPlugin", sources.GROUP)
    monkeypatch.setattr(sources, "entry_points", lambda group: [point, EntryPoint("x", point.value, sources.GROUP)])
    assert [source.place for source in sources.find_sources([])["x"]] == [
        "the entry point 'chimera.plugins.packs:RedactorPlugin' of the package '?'"
    ]


PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "acme-policy"
version = "0.1"
[project.entry-points."chimera.plugins"]
acme-policy = "acme_policy.gate:Gate"
"""

SCRIPT = """\
from chimera.core.interception import intercept_tool_call, merge_interceptors
from chimera.plugins import PluginExtensionRegistry, PluginManager
from chimera.types import ToolCall

manager = PluginManager()
assert "acme-policy" in manager.discover(), manager.discover()
plugin = manager.load("acme-policy", word="drop")
chain = merge_interceptors(PluginExtensionRegistry.get_all_interceptors()).tool_call
print(intercept_tool_call(chain, ToolCall("1", "sql", {"q": "drop table"}))[1])
print(intercept_tool_call(chain, ToolCall("2", "sql", {"q": "select"}))[1])
manager.unload("acme-policy")
print(PluginExtensionRegistry.get_interceptors("tool_call"))
print(plugin.__class__.__module__, __import__("acme_policy").__file__)
"""


def test_a_third_partys_package_is_installed_and_used_by_a_new_process(tmp_path: Path) -> None:
    project, target = tmp_path / "project", tmp_path / "site"
    (project / "acme_policy").mkdir(parents=True)
    (project / "pyproject.toml").write_text(PROJECT)
    (project / "acme_policy/__init__.py").write_text("")
    (project / "acme_policy/gate.py").write_text(GATE.format(name="acme-policy"))
    options = ["--no-build-isolation", "--no-deps", "--no-index", "--quiet", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(project)]
    subprocess.run(pip, check=True, capture_output=True, timeout=100)
    environment = {**os.environ, "PYTHONPATH": str(target)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    blocked, allowed, after, module = done.stdout.splitlines()
    assert (blocked, allowed, after) == ("acme-policy", "None", "[]")
    assert module == f"acme_policy.gate {target / 'acme_policy/__init__.py'}"
