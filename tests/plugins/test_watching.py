"""Watching: edits take effect by themselves, whichever way they are written, and broken ones do not."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chimera.errors import MissingExtraError
from chimera.plugins import PluginExtensionRegistry, PluginManager
from tests.plugins.support import interceptor
from tests.plugins.test_reload import source, versions

QUIET = 0.05


@pytest.fixture
def manager(tmp_path: Path) -> PluginManager:
    (tmp_path / "gate.py").write_text(source(1))
    manager = PluginManager([tmp_path])
    manager.load("gate")
    return manager


@pytest.fixture
def told(manager: PluginManager) -> Iterator[queue.Queue[str]]:
    lines: queue.Queue[str] = queue.Queue()
    with manager.watch(lines.put, quiet=QUIET):
        yield lines


def heard(lines: queue.Queue[str]) -> str:
    return lines.get(timeout=20)


def by_renaming(path: Path, text: str) -> None:
    """Write a file as careful editors do."""
    other = path.with_suffix(".tmp~")
    other.write_text(text)
    other.replace(path)


def with_a_backup(path: Path, text: str) -> None:
    """Write a file as editors do that keep the one before: for a moment it is not there."""
    path.rename(path.with_suffix(".py~"))
    path.write_text(text)


@pytest.mark.parametrize("write", [Path.write_text, by_renaming, with_a_backup])
def test_an_edit_takes_effect_by_itself(
    manager: PluginManager, told: queue.Queue[str], tmp_path: Path, write: Callable[[Path, str], object]
) -> None:
    for version in (2, 3):
        write(tmp_path / "gate.py", source(version))
        assert heard(told) == f"plugin 'gate' was reloaded: {manager.versions['gate']}"
        assert versions() == [version]
    assert told.empty()


def test_a_broken_edit_is_told_once_and_the_old_version_stays(
    manager: PluginManager, told: queue.Queue[str], tmp_path: Path
) -> None:
    old = manager.plugins["gate"]
    (tmp_path / "gate.py").write_text("def broken(:\n")
    line = heard(told)
    assert f"{tmp_path}/gate.py, line 1: SyntaxError" in line
    assert line.endswith("the version before it stays in force")
    assert "\n" not in line
    (tmp_path / "neighbour.py").write_text("x = 1\n")  # tries again, and has nothing new to say
    (tmp_path / "gate.py").write_text(source(1))
    (tmp_path / "gate.py").write_text(source(2))
    assert "was reloaded: gate@" in heard(told)
    assert versions() == [2]
    assert old is not manager.plugins["gate"]


def test_what_a_broken_version_lacked_is_noticed_when_it_comes(told: queue.Queue[str], tmp_path: Path) -> None:
    (tmp_path / "gate.py").write_text(source("v", "import words_of_gate\n").replace("'v'", "words_of_gate.WORD"))
    assert "No module named 'words_of_gate'" in heard(told)
    sys.path.insert(0, str(tmp_path))
    try:
        (tmp_path / "words_of_gate.py").write_text("WORD = 5\n")
        assert "was reloaded" in heard(told)
        assert versions() == [5]
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("words_of_gate", None)


def test_a_module_of_a_folder_and_a_plugin_loaded_later_are_watched(
    manager: PluginManager, told: queue.Queue[str], tmp_path: Path
) -> None:
    folder = tmp_path / "packed"
    folder.mkdir()
    (folder / "__init__.py").write_text("from .gate import Gate\n")
    (folder / "gate.py").write_text(source(7).replace('"gate"', '"packed"').replace("gate-loop", "packed"))
    manager.load("packed")
    (folder / "gate.py").write_text(source(8).replace('"gate"', '"packed"').replace("gate-loop", "packed"))
    assert heard(told).startswith("plugin 'packed' was reloaded: packed@2-")
    assert versions() == [1, 8]
    manager.unload("packed")
    (folder / "gate.py").write_text("1 / 0\n")
    (tmp_path / "gate.py").write_text(source(2))
    assert heard(told).startswith("plugin 'gate' was reloaded")


def test_a_linked_file_is_watched_where_it_lies(tmp_path: Path) -> None:
    real, plugins = tmp_path / "real", tmp_path / "plugins"
    real.mkdir()
    plugins.mkdir()
    (real / "policy.py").write_text(source(1))
    (plugins / "gate.py").symlink_to(real / "policy.py")
    manager = PluginManager([plugins])
    manager.load("gate")
    lines: queue.Queue[str] = queue.Queue()
    with manager.watch(lines.put, quiet=QUIET):
        by_renaming(real / "policy.py", source(2))
        assert "was reloaded" in heard(lines)
    assert versions() == [2]


def test_a_reporter_that_raises_does_not_end_the_watch(manager: PluginManager, tmp_path: Path) -> None:
    lines: queue.Queue[str] = queue.Queue()

    def report(line: str) -> None:
        lines.put(line)
        raise RuntimeError("no screen")

    with manager.watch(report, quiet=QUIET):
        for version in (2, 3):
            (tmp_path / "gate.py").write_text(source(version))
            heard(lines)
            assert versions() == [version]


def test_a_lost_file_leaves_the_policy_in_force(manager: PluginManager, told: queue.Queue[str], tmp_path: Path) -> None:
    (tmp_path / "gate.py").unlink()
    assert "FileNotFoundError" in heard(told)
    assert versions() == [1]
    (tmp_path / "gate.py").write_text(source(4))
    assert "was reloaded" in heard(told)
    assert versions() == [4]


def test_stopping_ends_the_thread_also_with_nothing_to_watch(tmp_path: Path) -> None:
    PluginExtensionRegistry.register_interceptor("context", interceptor)
    manager = PluginManager([tmp_path])
    watch = manager.watch()
    watch.stop()
    watch.stop()
    assert not watch._thread.is_alive()
    (tmp_path / "gate.py").write_text(source(1))
    manager.load("gate")
    (tmp_path / "gate.py").write_text(source(2))
    assert versions() == [1]
    assert manager.outdated() == ["gate"]


def test_without_watchfiles_it_says_what_to_install(manager: PluginManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with pytest.raises(MissingExtraError, match=r"chimera-harness\[watch\]"):
        manager.watch()


def test_a_folder_that_goes_away_and_comes_back_is_watched_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "gate.py").write_text(source(1))
    manager = PluginManager([folder])
    manager.load("gate")
    lines: queue.Queue[str] = queue.Queue()
    with manager.watch(lines.put, quiet=QUIET):
        folder.rename(tmp_path / "moved")
        assert "FileNotFoundError" in heard(lines)
        assert versions() == [1]
        folder.mkdir()
        by_renaming(folder / "gate.py", source(2))
        assert "was reloaded" in heard(lines)
        by_renaming(folder / "gate.py", source(3))
        assert "was reloaded" in heard(lines)
    assert versions() == [3]


def test_a_folder_that_takes_the_place_of_another_one_is_watched_instead(tmp_path: Path) -> None:
    """As a checkout of another branch does it: at no moment does a look find the folder missing."""
    folder, other = tmp_path / "plugins", tmp_path / "other"
    for number, place in enumerate((folder, other), 1):
        place.mkdir()
        (place / "gate.py").write_text(source(number))
    manager = PluginManager([folder])
    manager.load("gate")
    lines: queue.Queue[str] = queue.Queue()
    with manager.watch(lines.put, quiet=QUIET):
        (folder / "gate.py").write_text(source(3))
        assert "was reloaded" in heard(lines)
        folder.rename(tmp_path / "moved")
        other.rename(folder)
        assert "was reloaded" in heard(lines)
        by_renaming(folder / "gate.py", source(4))
        assert "was reloaded" in heard(lines)
    assert versions() == [4]


def test_what_fails_in_the_watch_is_logged_and_begun_again(
    manager: PluginManager, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [OSError("no more watches")]

    def outdated() -> list[str]:
        if failures:
            raise failures.pop()
        return PluginManager.outdated(manager)

    monkeypatch.setattr(manager, "outdated", outdated)
    lines: queue.Queue[str] = queue.Queue()
    (tmp_path / "gate.py").write_text(source(2))
    with manager.watch(lines.put, quiet=QUIET):
        assert "was reloaded" in heard(lines)
    assert "no more watches" in caplog.text


def test_a_plugin_that_is_unloaded_meanwhile_is_left_alone(
    manager: PluginManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch found it outdated, and by the time it would swap it, it is gone."""
    gone = manager.files()
    manager.unload("gate")
    looked = threading.Event()

    def outdated() -> list[str]:
        looked.set()
        return ["gate"]

    monkeypatch.setattr(manager, "outdated", outdated)
    monkeypatch.setattr(manager, "files", lambda: gone)
    lines: queue.Queue[str] = queue.Queue()
    with manager.watch(lines.put, quiet=QUIET):
        assert looked.wait(20)
    assert lines.empty()
