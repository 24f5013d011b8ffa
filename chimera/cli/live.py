"""Plugins that change while a session lives: on demand, and as their files change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

from chimera.assembly.settings import load_settings

if TYPE_CHECKING:
    from chimera.cli.setup import Session

__all__ = ["Remarks", "resync_session", "watching_plugins"]


class Remarks:
    """Shows lines that come from other threads: at once, or while a turn prints, after it."""

    def __init__(self, show: Callable[[str], object]) -> None:
        self._show = show
        self._lock = Lock()
        self._held: list[str] | None = None

    def say(self, line: str) -> None:
        """Show `line`, in this thread or later in the one that holds lines back."""
        with self._lock:
            if self._held is None:
                self._show(line)
            else:
                self._held.append(line)

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Keep lines until the block ends, and show them then."""
        with self._lock:
            self._held = []
        try:
            yield
        finally:
            with self._lock:
                held, self._held = self._held, None
                for line in held:
                    self._show(line)


def resync_session(session: Session) -> list[str]:
    """Read the settings again, load, reload and unload plugins as they and the options say now, and return what was
    done, in lines.

    Raises `MisuseError` while a turn runs and `ConfigError` for broken settings; nothing is changed then.
    """
    from chimera.assembly.resync import resync_agent

    asked: dict[str, Mapping[str, Any]] = {name: {} for name in session.options.plugins}
    return resync_agent(session.agent, {**asked, **load_settings(session.project).plugins}).lines()


@contextmanager
def watching_plugins(session: Session, report: Callable[[str], object]) -> Iterator[None]:
    """Reload plugins as their files change while inside, where the options say so; `report` is told in a line, from
    another thread."""
    if not session.options.watches_plugins:
        yield
        return
    with session.manager.watch(report):
        yield
