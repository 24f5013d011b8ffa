"""Session files: where they lie, what is in the folder, and reading one, whole or cut short."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from chimera.assembly.session_records import VERSION, read_message, read_time
from chimera.errors import ConfigError, OutsideError
from chimera.types import Message

__all__ = [
    "SUFFIX",
    "Recorded",
    "Session",
    "SessionInfo",
    "find_session",
    "latest_session",
    "list_sessions",
    "read_session",
    "replay",
    "sessions_folder",
    "whole",
]

SUFFIX = ".jsonl"
_VARIABLE = "CHIMERA_SESSION_DIR"
_CUT_SHORT = "The session ended before this call had a result; it may have taken effect."
_LINES_FOR_TITLE = 20
_LONGEST_LINE = 1 << 20


@dataclass(frozen=True, slots=True)
class Session:
    """What a file tells of a session.

    `messages` is the conversation as it stood at the end, without the system prompt. A call that the end of the process
    left without a result is answered in it by a tool message that says so: a provider accepts it as it is. `model` is
    the one used last. `turns` and `decisions` hold the records of docs/sessions.md, oldest first. `lane` names the lane
    of a race, and is empty elsewhere.
    """

    id: str
    path: Path
    project: Path
    model: str
    created: datetime
    messages: tuple[Message, ...] = ()
    turns: tuple[Mapping[str, Any], ...] = ()
    decisions: tuple[Mapping[str, Any], ...] = ()
    lane: str = ""

    @property
    def cost_usd(self) -> float:
        """What all turns that ended cost, in US dollars."""
        return sum(float(turn.get("cost_usd", 0.0)) for turn in self.turns)


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """What the beginning of a file tells. `title` is what the user said first; `updated` is the last change."""

    id: str
    path: Path
    project: Path
    model: str
    created: datetime
    updated: datetime
    title: str = ""
    lane: str = ""


class Recorded(NamedTuple):
    """All that is in a file: the session with its messages as they are recorded, and the size in bytes of what is
    whole. Behind that a process that was killed may have left a part of a line."""

    session: Session
    size: int


def sessions_folder(folder: str | Path | None = None) -> Path:
    """Return where sessions lie: `folder` when it is given, else what `CHIMERA_SESSION_DIR` says, else `sessions` in
    the user's data folder."""
    chosen = folder or os.environ.get(_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    from platformdirs import user_data_path

    return user_data_path("chimera") / "sessions"


def read_session(path: str | Path) -> Session:
    """Return what the file tells. Its last record is left out when it was not finished.

    Raises `OutsideError` for a file that cannot be read, is no session, is of a later version, or is damaged.
    """
    session = replay(Path(path)).session
    return replace(session, messages=tuple(whole(session.messages)))


def list_sessions(folder: str | Path | None = None, *, project: str | Path | None = None) -> list[SessionInfo]:
    """Return the sessions in the folder of `sessions_folder`, the one that was used last first.

    With `project`, those of this project folder alone. Files that are no sessions, and sessions in which nothing has
    been said, are left out.
    """
    place = sessions_folder(folder)
    wanted = None if project is None else Path(project).expanduser().resolve()
    found = [info for info in map(_look, sorted(place.glob(f"*{SUFFIX}"))) if info is not None]
    return sorted(
        (info for info in found if wanted is None or info.project == wanted),
        key=lambda info: (info.updated, info.created, info.id),  # file systems know times to some milliseconds only
        reverse=True,
    )


def latest_session(project: str | Path, folder: str | Path | None = None) -> SessionInfo | None:
    """Return the session of the project that was used last, lanes of races left out; None when there is none."""
    return next((info for info in list_sessions(folder, project=project) if not info.lane), None)


def find_session(session_id: str, folder: str | Path | None = None) -> Path:
    """Return the file of the one session whose id this is, or begins with it. Raises `ConfigError` otherwise."""
    place = sessions_folder(folder)
    names = sorted(path.name.removesuffix(SUFFIX) for path in place.glob(f"*{SUFFIX}"))
    if session_id in names:
        return place / f"{session_id}{SUFFIX}"
    near = [name for name in names if session_id and name.startswith(session_id)]
    if len(near) == 1:
        return place / f"{near[0]}{SUFFIX}"
    if near:
        raise ConfigError(f"{len(near)} sessions begin with {session_id!r}: {', '.join(near[:5])}")
    raise ConfigError(f"there is no session {session_id!r} in {place}; `chimera sessions list` shows what there is")


def replay(path: Path) -> Recorded:
    """Read all of a file; raises as `read_session` does."""
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise OutsideError(f"the session {path} cannot be read: {problem.strerror}") from problem
    reader, size = _Reader(path), data.rfind(b"\n") + 1
    for number, line in enumerate(data[:size].split(b"\n")[:-1], 1):
        reader.take(number, line)
    if reader.session is None:
        raise OutsideError(f"{path} is no session of Chimera: it does not begin with a record of one")
    return Recorded(reader.result(reader.session), size)


def whole(messages: Iterable[Message]) -> list[Message]:
    """Return the messages with an answer for every call that has none, where its answer belongs."""
    found: list[Message] = []
    unanswered: dict[str, None] = {}
    for message in messages:
        if message.role == "tool":
            unanswered.pop(message.call_id or "", None)
        else:
            found += _answers(unanswered)
            unanswered = dict.fromkeys(call.id for call in message.tool_calls)
        found.append(message)
    return found + _answers(unanswered)


def _answers(unanswered: Iterable[str]) -> list[Message]:
    return [Message.tool(call_id, _CUT_SHORT) for call_id in unanswered]


class _Reader:
    """Rebuilds a session record by record."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.session: Session | None = None
        self._messages: list[Message] = []
        self._turns: list[Mapping[str, Any]] = []
        self._decisions: list[Mapping[str, Any]] = []

    def result(self, session: Session) -> Session:
        turns, decisions = tuple(self._turns), tuple(self._decisions)
        return replace(session, messages=tuple(self._messages), turns=turns, decisions=decisions)

    def take(self, number: int, line: bytes) -> None:
        try:
            record = json.loads(line)
            if number == 1:
                self.session = _header(record, self._path)
            else:
                self._apply(record)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
            raise OutsideError(f"the session {self._path} is damaged in line {number}: {problem}") from problem

    def _apply(self, record: Any) -> None:
        assert self.session is not None
        kind = record["type"]
        if kind == "message":
            self._messages.append(read_message(record))
        elif kind == "conversation":
            self._messages = [read_message(message) for message in record["messages"]]
        elif kind == "turn":
            self._turns.append(record)
        elif kind == "decision":
            self._decisions.append(record)
        elif kind == "model":
            self.session = replace(self.session, model=str(record["model"]))


def _header(record: Any, path: Path) -> Session:
    if not isinstance(record, dict) or record.get("type") != "session":
        raise ValueError("it is no record of a session")
    version = record.get("version")
    if type(version) is not int or version > VERSION:
        raise OutsideError(f"the session {path} is of version {version}; this program reads up to {VERSION}")
    return _session(record, path)


def _session(record: Mapping[str, Any], path: Path) -> Session:
    session_id, project, model, created = (record[key] for key in ("id", "project", "model", "created"))
    return Session(
        str(session_id), path, Path(project), str(model), read_time(created), lane=str(record.get("lane", ""))
    )


def _look(path: Path) -> SessionInfo | None:
    """Return what the first lines of a file tell; None for what is no session, or has no message yet."""
    try:
        with path.open("rb") as file:
            records = list(_first_records(file))
        updated = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        session = _session(records[0], path) if records and records[0]["type"] == "session" else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    if session is None or len(records) < 2:
        return None
    about = (session.id, path, session.project, session.model, session.created, updated)
    return SessionInfo(*about, _said(records[-1]) or "", session.lane)


def _first_records(file: Any) -> Iterator[Mapping[str, Any]]:
    """Yield records up to the first one with what the user said; a line that is too long ends the look."""
    for line in islice(iter(lambda: file.readline(_LONGEST_LINE), b""), _LINES_FOR_TITLE):
        if not line.endswith(b"\n"):
            return
        record = json.loads(line)
        yield record
        if _said(record) is not None:
            return


def _said(record: Mapping[str, Any]) -> str | None:
    """Return what the user says first in a record; None where it is not the user's."""
    messages = record.get("messages", [record])
    return next((str(message.get("content", "")) for message in messages if message.get("role") == "user"), None)
