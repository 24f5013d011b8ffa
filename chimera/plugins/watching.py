"""Reloading plugins as their sources change.

What changed is decided by the content of the files, and folders are what is watched: so it does not matter whether an
editor writes in place, or through a temporary file that takes the name of the old one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from stat import S_ISDIR
from threading import Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Self

from chimera.errors import MissingExtraError, PluginError

if TYPE_CHECKING:
    from chimera.plugins.manager import PluginManager

__all__ = ["PluginWatch"]

Folders = dict[Path, tuple[int, int]]
"""Folders by what they are called, with what they are: another one may take the name of one that is watched."""

_log = logging.getLogger("chimera.plugins")
_PAUSE_MS = 1000
_LONGEST_MS = 5000


class PluginWatch:
    """Watches from when it is made until `stop`, or as a context manager. Use `PluginManager.watch`."""

    def __init__(self, manager: PluginManager, report: Callable[[str], object], quiet: float) -> None:
        _require_watchfiles()
        self._manager = manager
        self._report = report
        self._quiet_ms = max(1, round(quiet * 1000))
        self._stop = Event()
        self._refused: dict[str, dict[Path, str]] = {}
        self._said: dict[str, str] = {}
        self._thread = Thread(target=self._run, name="chimera-plugin-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the watch and wait until a reload that is under way is done. Stopping twice does nothing."""
        self._stop.set()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._watch(self._folders())
            except Exception as exc:  # a folder that went away, say: begin again with those that are there
                _log.warning("watching plugins was interrupted: %s", exc)
                self._stop.wait(_PAUSE_MS / 1000)

    def _watch(self, folders: Folders) -> None:
        """Look after every change, and once after the start, until other folders are to be watched.

        Never at once: a file that has just appeared may be half written.
        """
        fresh = True
        for changes in self._changes(folders):
            if changes or fresh:  # what changed before the watch stood is seen in its first pause
                self._look(changes)
            fresh = False
            if self._folders() != folders:
                return

    def _changes(self, folders: Iterable[Path]) -> Iterator[set[Path]]:
        """Yield the files that changed, once they are at rest, and an empty set about every second without any."""
        if not folders:
            while not self._stop.wait(_PAUSE_MS / 1000):
                yield set()
            return
        from watchfiles import watch

        batches = watch(
            *folders,
            watch_filter=None,
            recursive=False,
            step=self._quiet_ms,
            debounce=max(self._quiet_ms, _LONGEST_MS),
            rust_timeout=_PAUSE_MS,
            yield_on_timeout=True,
            stop_event=self._stop,
            raise_interrupt=False,
        )
        for batch in batches:
            yield {Path(path) for _, path in batch}

    def _folders(self) -> Folders:
        files = [path for sources in self._manager.files().values() for path in sources]
        found: Folders = {}
        for folder in {folder for path in files for folder in (path.parent, path.resolve().parent)}:
            with suppress(OSError):
                status = folder.stat()
                if S_ISDIR(status.st_mode):
                    found[folder] = (status.st_dev, status.st_ino)
        return found

    def _look(self, changed: Iterable[Path] = ()) -> None:
        """Reload what is outdated, but for what was refused as it is; what stands beside a change is tried again."""
        folders = {path.parent for path in changed if path.suffix == ".py"}
        outdated = self._manager.outdated()
        for name, files in self._manager.files().items():
            if name not in outdated:
                self._refused.pop(name, None)
            elif self._refused.get(name) != files or not folders.isdisjoint(path.parent for path in files):
                self._reload(name, files)

    def _reload(self, name: str, files: dict[Path, str]) -> None:
        try:
            swap = self._manager.swap(name)
        except KeyError:
            return  # unloaded meanwhile
        except PluginError as exc:
            self._refused[name] = files
            self._say(name, f"{exc}; the version before it stays in force")
        else:
            self._refused.pop(name, None)
            self._say(name, "; ".join((f"plugin {name!r} was reloaded: {swap.version}", *swap.notes)))

    def _say(self, name: str, line: str) -> None:
        if self._said.get(name) == line:
            return
        self._said[name] = line
        try:
            self._report(" ".join(line.split()))
        except Exception:  # whoever is told cannot end the watch
            _log.warning("a report of a reloaded plugin could not be delivered: %s", line, exc_info=True)


def _require_watchfiles() -> None:
    try:
        import watchfiles  # noqa: F401
    except ImportError as exc:
        raise MissingExtraError("watching plugins", "watch") from exc
