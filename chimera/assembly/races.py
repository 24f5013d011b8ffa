"""Where races keep their copies, and cleaning up after those that did not end cleanly.

Every race has a file in the common folder that names its process and is locked while the process lives, and a folder of
the same name. A file that nobody holds locked belongs to a race that is over, whatever ended it.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from chimera.assembly.git import forget_worktrees
from chimera.assembly.session_records import stamp
from chimera.core.identity import new_id
from chimera.errors import ConfigError, OutsideError

__all__ = ["RaceFolder", "races_folder", "sweep"]

_log = logging.getLogger("chimera.assembly")
_VARIABLE = "CHIMERA_RACE_DIR"
_PREFIX, _SUFFIX = "race", ".json"
_VERSION = 1
_ATTEMPTS = 5
_STALE_SECONDS = 600.0


def races_folder(folder: Path | None = None) -> Path:
    """Return where races keep their copies: `folder` when it is given, else what `CHIMERA_RACE_DIR` says, else `races`
    in the user's cache folder."""
    chosen = folder or os.environ.get(_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().resolve()
    from platformdirs import user_cache_path

    return (user_cache_path("chimera") / "races").resolve()


class RaceFolder:
    """The folder of one race. `repository` is where git keeps the work trees that are made in it, None without git.

    Raises `OutsideError` when it cannot be made, and `ConfigError` when the common folder lies in the project.
    """

    def __init__(self, project: Path, repository: Path | None, folder: Path | None = None) -> None:
        common = races_folder(folder)
        if common.is_relative_to(project):
            raise ConfigError(f"the copies of a race cannot lie in the project itself: {common}")
        try:
            common.mkdir(mode=0o700, parents=True, exist_ok=True)
            sweep(common)
            self._record, self._descriptor = _register(common, project, repository)
            self.path = self._record.with_suffix("")
            self.path.mkdir(mode=0o700)
        except OSError as problem:
            raise OutsideError(f"no race can be held in {common}: {problem}") from problem
        self._count = 0
        self._closed = False

    def new_folder(self) -> Path:
        """Return a new, empty folder inside."""
        self._count += 1
        path = self.path / str(self._count)
        path.mkdir()
        return path

    def close(self) -> None:
        """Remove the folder and all that belongs to it. Closing twice does nothing."""
        if not self._closed:
            self._closed = True
            _remove(self._record)
            os.close(self._descriptor)


def sweep(common: Path) -> list[Path]:
    """Remove what races left behind whose process has ended, and return their folders. Races that run stay."""
    for unnamed in common.glob(f".{_PREFIX}-*.new"):
        with suppress(OSError):  # another process has just swept it, or given it its name
            if time.time() - unnamed.stat().st_mtime > _STALE_SECONDS:
                unnamed.unlink()
    swept = []
    for record in sorted(common.glob(f"{_PREFIX}-*{_SUFFIX}")):
        try:
            descriptor = os.open(record, os.O_RDWR | os.O_CLOEXEC)
        except OSError:  # another process has just swept it
            continue
        try:
            if _lock(descriptor) and _remove(record):
                swept.append(record.with_suffix(""))
        finally:
            os.close(descriptor)
    return swept


def _register(common: Path, project: Path, repository: Path | None) -> tuple[Path, int]:
    """Make the file of this race. It gets its name once it is locked, so that nobody takes it for an abandoned one."""
    race = new_id(_PREFIX)
    about = {"pid": os.getpid(), "began": stamp(), "project": str(project)}
    text = json.dumps({"version": _VERSION, **about, "repository": None if repository is None else str(repository)})
    unnamed = common / f".{race}.new"
    descriptor = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        if not _lock(descriptor):
            raise OutsideError(f"{unnamed} cannot be locked, so the copies could not be told from abandoned ones")
        os.write(descriptor, text.encode())
        record = common / f"{race}{_SUFFIX}"
        unnamed.rename(record)
    except BaseException:
        os.close(descriptor)
        unnamed.unlink(missing_ok=True)
        raise
    return record, descriptor


def _lock(descriptor: int) -> bool:
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # another process has it, or the file system knows no locks: then nobody can tell who lives
        return False
    return True


def _remove(record: Path) -> bool:
    """Remove the folder of a race, what git knows of it, and at last its file, so that what fails is tried again.

    Nothing is removed for a file that is no record of a race: somebody else may have put it there. Returns whether all
    is gone.
    """
    folder = record.with_suffix("")
    try:
        repository = _repository(record)
        _remove_folder(folder)
        if repository is not None and repository.is_dir():
            forget_worktrees(repository, folder)
        record.unlink(missing_ok=True)
    except (OSError, OutsideError, ValueError, KeyError, TypeError) as problem:
        _log.warning("what a race left in %s could not be removed: %s", folder, problem)
        return False
    return True


def _repository(record: Path) -> Path | None:
    about = json.loads(record.read_text("utf-8"))
    if about["version"] != _VERSION or not isinstance(about["pid"], int):
        raise ValueError(f"{record} is no record of a race that this program knows")
    return None if about["repository"] is None else Path(about["repository"])


def _remove_folder(folder: Path) -> None:
    for attempt in range(_ATTEMPTS):
        try:
            shutil.rmtree(folder)
        except OSError:  # a process of the lane still writes, or a folder is read-only
            if not folder.exists():
                return
            if attempt == _ATTEMPTS - 1:
                raise
            _make_writable(folder)
            time.sleep(0.1 * attempt)
        else:
            return


def _make_writable(folder: Path) -> None:
    for name, names, _files in os.walk(folder):
        for place in (Path(name), *(Path(name, below) for below in names)):
            with suppress(OSError):  # gone meanwhile
                if not place.is_symlink():
                    place.chmod(0o700)
