"""The session of `chimera code`: recorded from its start, or gone on with."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chimera.assembly.settings import Settings
from chimera.cli.options import LATEST, CodeOptions
from chimera.errors import ConfigError, OutsideError

if TYPE_CHECKING:
    from chimera.assembly.journal import Journal

__all__ = ["Recording", "begin_journal", "recording"]

_log = logging.getLogger("chimera.cli")


@dataclass(frozen=True, slots=True)
class Recording:
    """The journal of a session, None where nothing is recorded, and the model by the name that it is asked for with."""

    journal: Journal | None
    model: str | None

    def note_model(self, name: str) -> None:
        """Note which model answers, where nobody asked for one."""
        if self.journal is not None and self.model is None:
            self.journal.use_model(name)


@contextmanager
def recording(options: CodeOptions, settings: Settings, project: Path) -> Iterator[Recording]:
    """Begin a session of the project, or open the one that is gone on with; it is closed at the end.

    A session that is gone on with keeps its model unless the options name one. Where sessions cannot be written, a
    warning says so and nothing is recorded. Raises `ConfigError` when there is no such session or it is of another
    project, and `OutsideError` when it cannot be read or is recorded by another process.
    """
    found = _resumed(options, project) if options.resume is not None else _begun(options, settings, project)
    try:
        yield found
    finally:
        if found.journal is not None:
            found.journal.close()


def begin_journal(options: CodeOptions, project: Path, model: str, lane: str = "") -> Journal | None:
    """Begin a session; None, with a warning, where none can be written, and where the options want none."""
    from chimera.assembly.journal import Journal

    if not options.records:
        return None
    try:
        return Journal.create(project=project, model=model, lane=lane)
    except OutsideError as problem:
        _log.warning("%s", problem)
        return None


def _begun(options: CodeOptions, settings: Settings, project: Path) -> Recording:
    model = options.model or settings.model
    return Recording(begin_journal(options, project, model or ""), model)


def _resumed(options: CodeOptions, project: Path) -> Recording:
    from chimera.assembly.journal import Journal, read_session

    if not options.records:
        raise ConfigError("--resume goes on with a recorded session, and --no-session records none: choose one")
    path = _path_of(str(options.resume), project)
    session = read_session(path)
    if session.project != project:
        raise ConfigError(
            f"the session {session.id} is of the project {session.project}: go on with it there, or with -C"
        )
    model = options.model or session.model or None
    return Recording(Journal.resume(path, model=model), model)


def _path_of(wanted: str, project: Path) -> Path:
    from chimera.assembly.journal import find_session, latest_session

    if wanted != LATEST:
        return find_session(wanted)
    latest = latest_session(project)
    if latest is None:
        raise ConfigError(f"there is no session of the project {project} yet; start one with `chimera code`")
    return latest.path
