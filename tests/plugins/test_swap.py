"""What a swap checks before it takes place, what it hands over, and what it says of versions."""

from __future__ import annotations

import logging
import re
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from chimera.core.context import Context
from chimera.core.interception import InterceptorEvent, intercept_tool_call
from chimera.core.loop import ReAct
from chimera.core.loop_config import LoopConfig
from chimera.errors import PluginError
from chimera.events import EventBus
from chimera.plugins import BasePlugin, PluginExtensionRegistry, PluginManager
from chimera.plugins.packs import PlanGatePlugin
from chimera.providers.faux import FauxProvider
from chimera.testing import default_test_tools
from chimera.types import Message, ToolCall
from tests.plugins.support import chains
from tests.plugins.test_reload import source, versions

ENDED = threading.Event()
"""Lets threads go that a test left hanging."""


@pytest.fixture
def manager(tmp_path: Path) -> PluginManager:
    (tmp_path / "gate.py").write_text(source(1))
    return PluginManager([tmp_path], patience=5)


def method(text: str) -> str:
    """Return the source of a method, to be put at the end of the plugin's class."""
    return "\n" + "".join(f"    {line}\n" for line in text.splitlines())


REFUSALS = {
    "return False": r"gate.py, line 20: self_check says no$",
    "return 'no key'": r"gate.py, line 20: self_check says no: no key$",
    "return []": r"self_check says no: \[\]$",
    "raise RuntimeError('no key')": r"gate.py, line 21: RuntimeError: no key$",
    "import sys; sys.exit(3)": r"gate.py, line 21: SystemExit: 3$",
}


@pytest.mark.parametrize("body", REFUSALS)
def test_a_self_check_that_says_no_keeps_a_version_out(manager: PluginManager, tmp_path: Path, body: str) -> None:
    old, before = manager.load("gate"), chains()
    (tmp_path / "gate.py").write_text(source(2) + method(f"def self_check(self):\n    {body}"))
    with pytest.raises(PluginError, match=f"^plugin 'gate' was not reloaded: .*{REFUSALS[body]}"):
        manager.reload("gate")
    assert (manager.plugins, chains(), versions()) == ({"gate": old}, before, [1])
    manager.unload("gate")
    with pytest.raises(PluginError, match=f"^plugin 'gate' was not loaded.*{REFUSALS[body]}"):
        manager.load("gate")
    assert (manager.plugins, chains(), manager.components.loops) == ({}, {}, {})


def test_a_self_check_sees_the_plugin_at_work(manager: PluginManager, tmp_path: Path) -> None:
    check = "def self_check(self):\n    return PluginExtensionRegistry.get_interceptors('tool_call') == [self.decide]"
    (tmp_path / "gate.py").write_text(source(1) + method(check))
    manager.load("gate")
    manager.reload("gate")
    assert versions() == [1]


def test_a_version_that_is_kept_out_lets_go_of_what_it_took(
    manager: PluginManager, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manager.load("gate")
    letting_go = method("def self_check(self):\n    return False\ndef deactivate(self):\n    STATE.append(self)")
    marker: list[Any] = []
    sys.modules["taken"] = marker  # type: ignore[assignment]
    try:
        (tmp_path / "gate.py").write_text(source(2) + letting_go + "import sys\nSTATE = sys.modules['taken']\n")
        with pytest.raises(PluginError, match="says no"):
            manager.reload("gate")
        assert len(marker) == 1
        (tmp_path / "gate.py").write_text(source(2) + letting_go)
        with pytest.raises(PluginError, match="says no"):
            manager.reload("gate")
    finally:
        del sys.modules["taken"]
    assert "did not let go" in caplog.text
    assert "NameError" in caplog.text
    assert versions() == [1]


@pytest.mark.parametrize("hangs", ["deactivate", "self_check"])
def test_what_hangs_changes_nothing(tmp_path: Path, hangs: str) -> None:
    ENDED.clear()
    manager = PluginManager([tmp_path], patience=0.5)
    waiting = method(f"def {hangs}(self):\n    from tests.plugins.test_swap import ENDED\n    ENDED.wait(60)")
    (tmp_path / "gate.py").write_text(source(1) + (waiting if hangs == "deactivate" else ""))
    old, before = manager.load("gate"), chains()
    (tmp_path / "gate.py").write_text(source(2) + (waiting if hangs == "self_check" else ""))
    try:
        with pytest.raises(PluginError, match=rf"gate.py, line 22: {hangs} has not returned after 0.5 s"):
            manager.reload("gate")
        assert (manager.plugins, chains(), versions()) == ({"gate": old}, before, [1])
        if hangs == "deactivate":
            with pytest.raises(PluginError, match=r"'gate' is unloaded, but its deactivate .*has not returned"):
                manager.unload("gate")
            assert (manager.plugins, chains()) == ({}, {})
    finally:
        ENDED.set()


def test_what_unregisters_after_its_time_changes_nothing(tmp_path: Path) -> None:
    ENDED.clear()
    manager = PluginManager([tmp_path], patience=0.05)
    late = (
        "def deactivate(self):\n    from tests.plugins.test_swap import ENDED\n    ENDED.wait(60)\n"
        "    PluginExtensionRegistry.unregister_interceptor('tool_call', self.decide)\n    DONE.set()"
    )
    text = source(1) + method(late) + "import threading\nDONE = threading.Event()\n"
    (tmp_path / "gate.py").write_text(text)
    old = manager.load("gate")
    with pytest.raises(PluginError, match="has not returned"):
        manager.reload("gate")
    ENDED.set()
    assert sys.modules[type(old).__module__].DONE.wait(20)
    assert versions() == [1]


@pytest.mark.parametrize("name", ["deactivate", "self_check", "export_state", "activate", "register_tools"])
def test_methods_that_would_have_to_be_awaited_are_refused(manager: PluginManager, tmp_path: Path, name: str) -> None:
    (tmp_path / "gate.py").write_text(source(1) + method(f"async def {name}(self, *args):\n    pass"))
    with pytest.raises(PluginError, match=rf"gate.py, line 20: {name} is asynchronous"):
        manager.load("gate")
    assert chains() == {}


def test_a_module_that_ends_the_process_is_a_broken_one(manager: PluginManager, tmp_path: Path) -> None:
    manager.load("gate")
    (tmp_path / "gate.py").write_text("import sys\nsys.exit('bye')\n")
    with pytest.raises(PluginError, match=r"gate.py, line 2: SystemExit: bye"):
        manager.reload("gate")
    assert versions() == [1]


STATE = """
def export_state(self):
    return {"opened": self.opened}
def import_state(self, state):
    self.opened = state["opened"] + 1
"""


def test_state_goes_from_version_to_version(manager: PluginManager, tmp_path: Path) -> None:
    text = source(1).replace("self.word = word", "self.word, self.opened = word, 0") + method(STATE)
    (tmp_path / "gate.py").write_text(text)
    manager.load("gate", word="dd")
    for count in (1, 2, 3):
        assert manager.swap("gate").notes == ()
        assert vars(manager.plugins["gate"]) == {"word": "dd", "opened": count, "_init": ((), {"word": "dd"})}


REFUSED_STATES = {
    "def import_state(self, state):\n    self.opened = 9\n    raise ValueError('what is this')": (
        r"the new version refused the state and starts afresh: .*gate.py, line 22: ValueError: what is this"
    ),
    "def import_state(self, state):\n    self.opened = 9\n    return False": "import_state says no",
    "def import_state(self, state):\n    from tests.plugins.test_swap import ENDED\n    ENDED.wait(60)": (
        "has not returned"
    ),
    "pass": "the new version takes no state and starts afresh",
}


@pytest.mark.parametrize("body", REFUSED_STATES)
def test_a_refused_state_leaves_a_fresh_plugin_and_a_warning(
    tmp_path: Path, body: str, caplog: pytest.LogCaptureFixture
) -> None:
    ENDED.clear()
    manager = PluginManager([tmp_path], patience=1 if "ENDED" in body else 5)
    text = source(1).replace("self.word = word", "self.word, self.opened = word, 0")
    export = method("def export_state(self):\n    return 1")
    (tmp_path / "gate.py").write_text(text + export)
    manager.load("gate", word="dd")
    (tmp_path / "gate.py").write_text(text.replace("1", "2") + method(body) + export)
    with caplog.at_level(logging.WARNING, "chimera.plugins"):
        plugin = manager.reload("gate")
    ENDED.set()
    assert vars(plugin)["opened"] == 0
    assert vars(plugin)["word"] == "dd"
    assert versions() == [2]
    assert chains()["tool_call"][0].__self__ is plugin
    (record,) = caplog.records
    assert_matches(record.getMessage(), REFUSED_STATES[body])


def assert_matches(text: str, pattern: str) -> None:
    assert re.search(pattern, text), text


def test_a_state_that_cannot_be_exported_leaves_a_fresh_plugin(manager: PluginManager, tmp_path: Path) -> None:
    exporting = method("def export_state(self):\n    return self.nothing\ndef import_state(self, state):\n    1 / 0")
    (tmp_path / "gate.py").write_text(source(1) + exporting)
    manager.load("gate")
    (note,) = manager.swap("gate").notes
    assert_matches(note, r"gave no state, .*: .*gate.py, line 21: AttributeError")


def plan_gate_run(context: Context, steps: list[Any], folder: Path) -> list[str]:
    """Go on with a conversation under the chains that are registered now; returns what became of the tool calls."""
    config = LoopConfig(interceptors=PluginExtensionRegistry.get_all_interceptors(), yolo_mode=True)
    before = len(context.messages)
    ReAct(len(steps), config).run(FauxProvider(steps), default_test_tools(folder), context, folder)
    return [message.content for message in context.messages[before:] if message.role == "tool"]


@pytest.mark.parametrize("scope", ["conversation", "process"])
def test_an_open_plan_gate_stays_open_over_a_swap_and_closes_after_it(tmp_path: Path, scope: str) -> None:
    think = {"tool_calls": [{"name": "think", "arguments": {"thought": "first this"}}]}
    bash = {"tool_calls": [{"name": "bash", "arguments": {"command": "echo ran"}}]}
    manager = PluginManager()
    manager.load("plan-gate", scope=scope)
    context = Context(messages=[Message.user("go")])
    assert "Blocked" in plan_gate_run(context, [bash], tmp_path)[0]
    plan_gate_run(context, [think], tmp_path)
    assert manager.swap("plan-gate").notes == ()
    assert "ran" in plan_gate_run(context, [bash], tmp_path)[0]
    context.add(Message.user("now this"))
    assert "Blocked" in plan_gate_run(context, [bash], tmp_path)[0]


def test_a_plan_made_under_the_old_version_opens_the_gate_of_the_new_one(tmp_path: Path) -> None:
    think = {"tool_calls": [{"name": "think", "arguments": {"thought": "first this"}}]}
    bash = {"tool_calls": [{"name": "bash", "arguments": {"command": "echo ran"}}]}
    manager = PluginManager()
    manager.load("plan-gate")
    context = Context(messages=[Message.user("go")])
    old = LoopConfig(interceptors=PluginExtensionRegistry.get_all_interceptors(), yolo_mode=True)
    manager.reload("plan-gate")
    ReAct(1, old).run(FauxProvider([think]), default_test_tools(tmp_path), context, tmp_path)
    assert "ran" in plan_gate_run(context, [bash], tmp_path)[0]


def test_gates_of_another_scope_are_not_gone_on_with() -> None:
    manager = PluginManager()
    manager.load("plan-gate", scope="process")
    (note,) = manager.swap("plan-gate", {"scope": "conversation"}).notes
    assert "the gates were kept per process, and now they are kept per conversation" in note
    assert vars(manager.plugins["plan-gate"])["scope"] == "conversation"
    assert manager.named == {"plan-gate": {"scope": "conversation"}}


def test_other_options_are_for_plugins_that_were_loaded_by_name(manager: PluginManager, tmp_path: Path) -> None:
    manager.load("gate", word="dd")
    manager.swap("gate", {"word": "ls"})
    assert vars(manager.plugins["gate"])["word"] == "ls"
    with pytest.raises(PluginError, match="has no option 'verb'"):
        manager.swap("gate", {"verb": "ls"})
    assert manager.named == {"gate": {"word": "ls"}}
    manager.load_plugin(PlanGatePlugin())
    with pytest.raises(PluginError, match="was not loaded by name"):
        manager.swap("plan-gate", {})


def told(fn: Any) -> InterceptorEvent:
    heard: list[Any] = []
    bus = EventBus()
    bus.subscribe("interceptor", heard.append)
    intercept_tool_call([fn], ToolCall("1", "bash", {}), event_bus=bus)
    event: InterceptorEvent
    (event,) = heard
    return event


def test_managers_that_have_the_same_plugin_swap_it_one_after_the_other() -> None:
    managers, failures = [PluginManager() for _ in range(3)], list[Exception]()
    for manager in managers:
        manager.load("plan-gate")

    def swap(manager: PluginManager) -> None:
        try:
            for _ in range(8):
                manager.reload("plan-gate")
        except Exception as exc:
            failures.append(exc)

    threads = [threading.Thread(target=swap, args=(manager,)) for manager in managers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [manager.versions["plan-gate"].partition("@")[2][:2] for manager in managers] == ["9-"] * 3
    assert {seam: len(chain) for seam, chain in chains().items()} == {"context": 3, "tool_call": 3}


def test_versions_count_and_name_the_content(manager: PluginManager, tmp_path: Path) -> None:
    manager.load("gate")
    (first,) = PluginExtensionRegistry.get_interceptors("tool_call")
    name, _, digest = manager.versions["gate"].partition("-")
    assert (name, len(digest)) == ("gate@1", 12)
    same = manager.swap("gate")
    assert (same.before, same.version) == (f"gate@1-{digest}", f"gate@2-{digest}")
    (tmp_path / "gate.py").write_text("1 / 0\n")
    with pytest.raises(PluginError):
        manager.reload("gate")
    (tmp_path / "gate.py").write_text(source(2))
    other = manager.swap("gate").version
    assert other.startswith("gate@3-")
    assert digest not in other
    (second,) = PluginExtensionRegistry.get_interceptors("tool_call")
    assert [told(fn).version for fn in (first, second)] == [f"gate@1-{digest}", other], "each run has its own version"
    manager.unload("gate")
    (tmp_path / "gate.py").write_text(source(1))
    manager.load("gate")
    assert manager.versions == {"gate": f"gate@4-{digest}"}


def test_the_digest_covers_all_modules_of_a_plugin_and_no_others(tmp_path: Path) -> None:
    folder = tmp_path / "packed"
    folder.mkdir()
    (folder / "__init__.py").write_text("from .gate import Gate\n")
    (folder / "gate.py").write_text(source("v", "from . import words\n"))
    (folder / "words.py").write_text("WORD = 1\n")
    (folder / "test_gate.py").write_text("")
    manager = PluginManager([tmp_path])
    manager.load("packed")
    seen = {manager.versions["gate"].partition("-")[2]}
    (folder / "test_gate.py").write_text("x = 1\n")
    assert manager.outdated() == []
    assert manager.swap("gate").version.partition("-")[2] in seen
    for name in ("words.py", "gate.py", "__init__.py"):
        with (folder / name).open("a") as file:
            file.write("# more\n")
        assert manager.outdated() == ["gate"]
        digest = manager.swap("packed").version.partition("-")[2]
        assert digest not in seen
        assert manager.outdated() == []
        seen.add(digest)


def test_a_module_that_is_imported_late_is_part_of_the_plugin(tmp_path: Path) -> None:
    folder = tmp_path / "packed"
    folder.mkdir()
    late = source("v").replace("return 'v'", "from . import words\n        return words.WORD")
    (folder / "__init__.py").write_text(late)
    (folder / "words.py").write_text("WORD = 1\n")
    manager = PluginManager([tmp_path])
    manager.load("packed")
    assert versions() == [1]
    (folder / "words.py").write_text("WORD = 2\n")
    manager.reload("gate")
    assert versions() == [2]
    assert manager.outdated() == []
    (folder / "words.py").write_text("WORD = \n")
    with pytest.raises(PluginError, match=r"words.py, line 1: SyntaxError"):
        manager.reload("gate")
    assert versions() == [2]
    (folder / "words.py").unlink()
    manager.reload("gate")
    with pytest.raises(ImportError):
        versions()


def test_a_late_module_that_lacks_something_is_broken(tmp_path: Path) -> None:
    folder = tmp_path / "packed"
    folder.mkdir()
    late = source("v").replace("return 'v'", "from . import words\n        return words.WORD")
    (folder / "__init__.py").write_text(late)
    (folder / "words.py").write_text("WORD = 1\n")
    manager = PluginManager([tmp_path])
    manager.load("packed")
    assert versions() == [1]
    (folder / "words.py").write_text("import nothing_there\n")
    with pytest.raises(PluginError, match=r"words.py, line 1: ModuleNotFoundError"):
        manager.reload("gate")
    assert versions() == [1]


def test_a_plugin_without_a_file_has_a_version_too() -> None:
    kind = type(
        "Bare",
        (BasePlugin,),
        {"name": "bare", "__module__": "no_such_module", "register_interceptors": _block},
    )
    manager = PluginManager()
    manager.load_plugin(kind())
    assert manager.versions == {"bare": "bare@1"}
    assert told(PluginExtensionRegistry.get_interceptors("tool_call")[0]).version == "bare@1"
    assert manager.outdated() == []


def _block(self: Any, registry: Any) -> None:
    registry.register_interceptor("tool_call", lambda call: 7)
