"""Reloading: the source on disk decides, at one moment, in the same place; or nothing changes at all."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.errors import PluginError
from chimera.plugins import BasePlugin, PluginExtensionRegistry, PluginManager
from chimera.plugins.packs import RedactorPlugin
from chimera.plugins.registry import INTERCEPTOR_SEAMS
from tests.plugins.support import Recorder, chains, plugin_class

VERSIONED = """\
from chimera.core.interception import InterceptDecision
from chimera.plugins import BasePlugin, PluginExtensionRegistry
{imports}
class Gate(BasePlugin):
    def __init__(self, word="rm"):
        self.word = word

    @property
    def name(self):
        return "gate"

    def register_interceptors(self, registry):
        registry.register_loop("gate-loop", dict)
        for seam in {seams!r}:
            PluginExtensionRegistry.register_interceptor(seam, self.decide)

    def decide(self, *args):
        return {version!r}
"""


def source(version: object, imports: str = "", seams: tuple[str, ...] = INTERCEPTOR_SEAMS) -> str:
    return VERSIONED.format(version=version, imports=imports, seams=seams)


def versions() -> list[Any]:
    """Return what the chain of the tool_call seam says, one answer a plugin."""
    return [fn(None) for fn in PluginExtensionRegistry.get_interceptors("tool_call")]


def write_within_the_same_second(path: Path, text: str) -> None:
    """Write a file so that neither its size nor its time tells that it changed."""
    before = path.stat()
    assert len(text.encode()) == before.st_size
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.fixture
def manager(tmp_path: Path) -> PluginManager:
    (tmp_path / "gate.py").write_text(source(1))
    return PluginManager([tmp_path])


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of several modules that Python itself imports, caches and all."""
    package = tmp_path / "site" / "acme_pack"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "words.py").write_text("WORD = 'a'\n")
    (package / "other.py").write_text("STATE = []\n")
    (package / "gate.py").write_text(source("v1", "from acme_pack import words\n").replace("'v1'", "words.WORD"))
    monkeypatch.syspath_prepend(package.parent)
    yield package
    for name in [name for name in sys.modules if name.split(".")[0] == "acme_pack"]:
        del sys.modules[name]


def test_the_new_source_decides_with_the_same_options(manager: PluginManager, tmp_path: Path) -> None:
    old = manager.load("gate", word="dd")
    (tmp_path / "gate.py").write_text(source(2))
    new = manager.reload("gate")
    assert versions() == [2]
    assert new is manager.plugins["gate"]
    assert new is not old
    assert vars(new)["word"] == "dd"
    manager.unload("gate")
    assert (chains(), manager.components.loops) == ({}, {})


def test_an_edit_within_the_same_second_is_seen(manager: PluginManager, tmp_path: Path) -> None:
    manager.load("gate")
    for version in range(2, 6):
        write_within_the_same_second(tmp_path / "gate.py", source(version))
        manager.reload("gate")
        assert versions() == [version]


def test_an_installed_package_of_several_modules_is_imported_anew(acme: Path) -> None:
    kind = importlib.import_module("acme_pack.gate").Gate
    state = importlib.import_module("acme_pack.other").STATE
    manager = PluginManager()
    manager.load_plugin(kind("ls"))
    for word in "bcd":
        write_within_the_same_second(acme / "words.py", f"WORD = '{word}'\n")
        assert vars(manager.reload("gate"))["word"] == "ls"
        assert versions() == [word]
    assert importlib.import_module("acme_pack.other").STATE is state, "what the plugin does not import stays"
    assert sys.modules["acme_pack"].other.STATE is state
    assert sys.modules["acme_pack.gate"].Gate is type(manager.plugins["gate"])


def test_a_folder_of_several_files_is_imported_anew(tmp_path: Path) -> None:
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed/__init__.py").write_text("from .gate import Gate\n")
    (tmp_path / "packed/words.py").write_text("WORD = 1\n")
    (tmp_path / "packed/gate.py").write_text(source("v1", "from . import words\n").replace("'v1'", "words.WORD"))
    manager = PluginManager([tmp_path])
    manager.load("packed")
    assert versions() == [1]
    write_within_the_same_second(tmp_path / "packed/words.py", "WORD = 2\n")
    manager.reload("gate")
    assert versions() == [2]


def test_loading_again_after_unloading_reads_the_file_again(manager: PluginManager, tmp_path: Path) -> None:
    manager.load("gate")
    manager.unload("gate")
    write_within_the_same_second(tmp_path / "gate.py", source(7))
    manager.load("gate")
    assert versions() == [7]


def test_a_reloaded_plugin_stands_where_it_stood(manager: PluginManager, tmp_path: Path) -> None:
    def before(_call: Any) -> Any:
        return "before"

    def after(_call: Any) -> Any:
        return "after"

    manager.load_plugin(plugin_class("before", lambda registry: registry.register_interceptor("tool_call", before))())
    manager.load("gate")
    PluginExtensionRegistry.register_interceptor("tool_call", after)
    (tmp_path / "gate.py").write_text(source(2))
    manager.reload("gate")
    assert versions() == ["before", 2, "after"]
    assert list(manager.plugins) == ["before", "gate"]
    (tmp_path / "gate.py").write_text(source(3, seams=()))
    manager.reload("gate")
    assert versions() == ["before", "after"]
    (tmp_path / "gate.py").write_text(source(4))
    manager.reload("gate")
    assert versions() == ["before", 4, "after"]


BROKEN = {
    "syntax": ("def broken(:\n", r"gate.py, line 1: SyntaxError"),
    "import": ("import nothing_there\n", r"gate.py, line 1: ModuleNotFoundError: .*nothing_there"),
    "constructor": (
        source(2).replace("self.word = word", "raise ValueError('no')"),
        r"gate.py, line 6: ValueError: no",
    ),
    "options": (source(2).replace("word=", "verb="), r"has no option 'word'; did you mean|has no option 'word'"),
    "activation": (
        source(2).replace("'tool_result')", "'tool_resu')"),
        r"gate.py, line 15: ValueError: unknown interc",
    ),
    "async": (source(2).replace("def decide", "async def decide"), r"gate.py, line 15: TypeError: .*asynchronous"),
    "name": (source(2).replace('"gate"', '"fence"'), "its new version calls itself 'fence'"),
    "no plugin": ("x = 1\n", "must define one plugin"),
    "collision": (source(2).replace("gate-loop", "taken"), "both register the loop 'taken'"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_new_version_leaves_the_old_one_in_force(manager: PluginManager, tmp_path: Path, kind: str) -> None:
    text, error = BROKEN[kind]
    old = manager.load("gate", word="dd")
    manager.components.register_loop("taken", list)
    before, modules = chains(), dict(sys.modules)
    (tmp_path / "gate.py").write_text(text)
    with pytest.raises(PluginError, match=f"(?s)^plugin 'gate' was not reloaded: .*(?:{error})"):
        manager.reload("gate")
    assert manager.plugins == {"gate": old}
    assert chains() == before
    assert versions() == [1]
    assert set(manager.components.loops) == {"gate-loop", "taken"}
    assert {name for name in sys.modules.keys() ^ modules.keys() if name.startswith("chimera_plugin_")} == set()
    assert all(sys.modules[name] is module for name, module in modules.items())
    (tmp_path / "gate.py").write_text(source(3))
    manager.reload("gate")
    assert versions() == [3]


def test_a_broken_package_is_put_back_with_all_its_modules(acme: Path) -> None:
    manager = PluginManager()
    manager.load_plugin(importlib.import_module("acme_pack.gate").Gate())
    before = {name: module for name, module in sys.modules.items() if name.startswith("acme_pack")}
    (acme / "gate.py").write_text("from acme_pack import words\nwords.WORD = 'spoilt'\n1 / 0\n")
    with pytest.raises(PluginError, match=r"gate.py, line 3: ZeroDivisionError"):
        manager.reload("gate")
    assert {name: module for name, module in sys.modules.items() if name.startswith("acme_pack")} == before
    assert sys.modules["acme_pack"].words is before["acme_pack.words"]
    assert versions() == ["a"]


def test_an_old_version_that_does_not_let_go_stays_in_force(tmp_path: Path) -> None:
    raising = source(1) + "\n    def deactivate(self):\n        raise RuntimeError('held')\n"
    (tmp_path / "gate.py").write_text(raising)
    manager = PluginManager([tmp_path])
    old = manager.load("gate")
    (tmp_path / "gate.py").write_text(source(2))
    with pytest.raises(PluginError, match=r"gate.py, line \d+: RuntimeError: held|RuntimeError: held"):
        manager.reload("gate")
    assert manager.plugins == {"gate": old}
    assert versions() == [1]


def test_an_old_version_that_unregisters_itself_does_not_tear_a_hole(manager: PluginManager, tmp_path: Path) -> None:
    undoing = (
        source(1)
        + "\n    def deactivate(self):\n        for seam in ('context', 'tool_call'):\n"
        + "            PluginExtensionRegistry.unregister_interceptor(seam, self.decide)\n"
    )
    (tmp_path / "gate.py").write_text(undoing)
    manager.load("gate")
    (tmp_path / "gate.py").write_text(source(2))
    manager.reload("gate")
    assert {seam: len(chain) for seam, chain in chains().items()} == dict.fromkeys(INTERCEPTOR_SEAMS, 1)
    assert versions() == [2]


def test_an_interrupt_comes_through_and_the_old_version_stays(manager: PluginManager, tmp_path: Path) -> None:
    old = manager.load("gate")
    (tmp_path / "gate.py").write_text("raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        manager.reload("gate")
    assert manager.plugins == {"gate": old}
    assert versions() == [1]


def test_bundled_packs_reload_with_their_options() -> None:
    manager = PluginManager()
    manager.load("plan-gate", scope="process")
    manager.load("redactor", pattern="acme-[0-9]+")
    manager.load_plugin(plugin_class("other", lambda registry: None)())
    for _ in range(3):
        for name in ("plan-gate", "redactor"):
            new = manager.reload(name)
            assert new.name == name
    assert {seam: len(chain) for seam, chain in chains().items()} == dict.fromkeys(INTERCEPTOR_SEAMS, 1)
    assert vars(manager.plugins["plan-gate"])["scope"] == "process"
    import chimera.plugins.packs as packs

    assert packs.RedactorPlugin is RedactorPlugin, "who imported the class before still has a class that works"
    assert RedactorPlugin().name == "redactor"


@pytest.mark.parametrize("make", [lambda: plugin_class("p", lambda r: None)(), lambda: type("P", (Recorder,), {})("p")])
def test_what_cannot_be_imported_again_is_not_swapped_for_something_else(make: Callable[[], BasePlugin]) -> None:
    class Local(Recorder):
        pass

    manager = PluginManager()
    manager.load_plugin(Local("local", "context"))
    with pytest.raises(PluginError, match=r"Local from the module .* cannot be imported again"):
        manager.reload("local")
    manager.load_plugin(make())
    with pytest.raises(PluginError, match="'p' was not reloaded"):
        manager.reload("p")
    assert set(manager.plugins) == {"local", "p"}
    assert len(chains()["context"]) == 1


def test_every_read_sees_one_version_on_all_seams(manager: PluginManager, tmp_path: Path) -> None:
    manager.load("gate")
    stop, mixed = threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            bundle = PluginExtensionRegistry.get_all_interceptors()
            seen = [[fn() for fn in getattr(bundle, seam)] for seam in INTERCEPTOR_SEAMS]
            if any(answers != seen[0] or len(answers) != 1 for answers in seen):
                mixed.append(seen)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for version in range(30):
        (tmp_path / "gate.py").write_text(source(version))
        manager.reload("gate")
    stop.set()
    for thread in threads:
        thread.join()
    assert mixed == []
    assert versions() == [29]


STEPS = st.lists(
    st.tuples(st.sampled_from(["load", "unload", "reload", "edit", "break"]), st.integers(0, 3)), max_size=14
)


@given(STEPS)
def test_any_sequence_leaves_what_a_fresh_process_would_build(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    PluginExtensionRegistry._reset()
    folder = tmp_path_factory.mktemp("plugins")
    manager = PluginManager([folder])
    on_disk: dict[int, int | None] = dict.fromkeys(range(4), 0)
    loaded: dict[int, int] = {}

    def write(number: int) -> None:
        text = source((number, on_disk[number]))
        text = text.replace('"gate"', f'"p{number}"').replace("gate-loop", f"p{number}")
        (folder / f"p{number}.py").write_text("1 / 0\n" if on_disk[number] is None else text)

    for number in on_disk:
        write(number)
    for count, (kind, number) in enumerate(steps, start=1):
        if kind in ("edit", "break"):
            on_disk[number] = count if kind == "edit" else None
            write(number)
            continue
        wanted = on_disk[number]
        fails = (kind == "load") is (number in loaded) or (kind != "unload" and wanted is None)
        try:
            getattr(manager, kind)(f"p{number}")
            assert not fails
        except (PluginError, KeyError):
            assert fails
            continue
        if kind == "unload":
            del loaded[number]
        else:
            assert wanted is not None
            loaded[number] = wanted
    assert versions() == list(loaded.items())
    assert list(manager.plugins) == [f"p{number}" for number in loaded]
    assert list(manager.components.loops) == list(manager.plugins)
    assert all(len(chain) == len(loaded) for chain in chains().values())
