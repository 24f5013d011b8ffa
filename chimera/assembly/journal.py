"""Sessions: every conversation in a file of its own, written as it happens. The format is in docs/sessions.md."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from threading import RLock
from typing import Any

from chimera.assembly.recorded import RecordedContext
from chimera.assembly.session_files import (
    SUFFIX,
    Session,
    SessionInfo,
    find_session,
    latest_session,
    list_sessions,
    read_session,
    replay,
    sessions_folder,
    whole,
)
from chimera.assembly.session_records import (
    conversation_record,
    decision_record,
    encode,
    header_record,
    message_record,
    stamp,
    turn_record,
)
from chimera.core.context import Context
from chimera.core.loop_events import LoopEvent, LoopEventType
from chimera.errors import ConfigError, OutsideError
from chimera.types import Message

__all__ = [
    "Journal",
    "Session",
    "SessionInfo",
    "find_session",
    "latest_session",
    "list_sessions",
    "read_session",
    "sessions_folder",
]

_log = logging.getLogger("chimera.assembly")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_OLD = os.O_WRONLY
_ALWAYS = os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_PLAIN_REASONS = frozenset({"completed", "max_turns", "aborted"})
_OF_CONVERSATION = frozenset({"message", "conversation"})


class Journal:
    """The record of one conversation, in a file that this object alone writes to.

    `context()` gives the conversation: whatever changes in it is in the file once the change is made. `append` takes
    the events of its turns. Each record is handed to the operating system at once: killing the process loses at most
    the last, unfinished one. A journal that cannot write (a full disk, say) lets the run go on, says why in `problem`,
    and writes the whole conversation as soon as it can again. It may be used from any thread.

    The file holds the conversation as it is, with results as policies left them: no system prompt, no envelope, nothing
    of what a policy took out. Reasons are scrubbed of secrets.
    """

    def __init__(self, descriptor: int, size: int, session: Session) -> None:
        """Use `create` or `resume`."""
        self.id = session.id
        self.path = session.path
        self.project = session.project
        self.model = session.model
        self.lane = session.lane
        self.problem: str | None = None
        self._descriptor: int | None = descriptor
        self._size = size
        self._lock = RLock()
        self._messages = list(session.messages)
        self._context: RecordedContext | None = None
        self._behind = False
        self._used = False
        self._scrub: Any = None

    @classmethod
    def create(
        cls,
        folder: str | Path | None = None,
        *,
        project: str | Path,
        model: str,
        session_id: str | None = None,
        lane: str = "",
    ) -> Journal:
        """Begin a session in `folder`, by default that of `sessions_folder`, which is made when it is missing.

        Raises `ConfigError` for an id that is no plain name or is taken, `OutsideError` when nothing can be written.
        """
        place = sessions_folder(folder)
        chosen = _new_id() if session_id is None else session_id
        if not _ID.fullmatch(chosen):
            raise ConfigError(f"a session id is made of letters, digits, dots, dashes and underscores, not {chosen!r}")
        path = place / f"{chosen}{SUFFIX}"
        where = Path(project).expanduser().resolve()
        header = header_record(chosen, str(where), model, lane)
        session = Session(chosen, path, where, model, datetime.fromisoformat(header["created"]), lane=lane)
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            return cls(*_begun(path, encode(header)), session)
        except OSError as problem:
            if isinstance(problem, FileExistsError) and path.is_file():
                raise ConfigError(f"the session {chosen} exists already: {path}") from None
            raise OutsideError(f"no session can be recorded in {place}: {problem.strerror}") from problem

    @classmethod
    def resume(cls, path: str | Path, *, model: str | None = None) -> Journal:
        """Go on with a session, in the same file; `context()` begins with its conversation.

        `model` is noted when it is another one. Raises `OutsideError` as `read_session` does, and when another process
        records this session.
        """
        path = Path(path)
        replay(path)  # for its errors, before anything is opened for writing
        try:
            descriptor = _locked(os.open(path, _OLD | _ALWAYS), path)
        except OSError as problem:
            raise OutsideError(f"the session {path} cannot be gone on with: {problem.strerror}") from problem
        try:
            session, size = replay(path)
            os.ftruncate(descriptor, size)
        except BaseException:
            os.close(descriptor)
            raise
        journal = cls(descriptor, size, session)
        journal._used = True
        journal._mend()
        if model is not None:
            journal.use_model(model)
        return journal

    def use_model(self, model: str) -> None:
        """Note that from now on another model answers, when it is another one."""
        if model != self.model:
            self.model = model
            self._put({"type": "model", "at": stamp(), "model": model})

    def _mend(self) -> None:
        """Answer the calls that the end of another process left unanswered."""
        recorded, self._messages = self._messages, whole(self._messages)
        if self._messages[: len(recorded)] == recorded:
            self._put(*map(message_record, self._messages[len(recorded) :]))
        else:
            self._put(conversation_record(self._messages))

    def context(self, messages: Iterable[Message] | None = None) -> Context:
        """Return the conversation, from now on the one that is recorded.

        It begins with `messages`, by default with what the session held when it was resumed.
        """
        with self._lock:
            start = self._messages if messages is None else list(messages)
            known = self._messages if self._context is None else list(self._context.messages)
            self._context = RecordedContext(self, start)
            if start != known:
                self.replaced(self._context)
            return self._context

    def append(self, event: LoopEvent) -> None:
        """Note what an event tells besides the conversation: how a turn ended, and what was decided on a seam."""
        if event.type is LoopEventType.RESULT:
            self._put(turn_record(event.data, self._fit(event.data.reason)))
        elif event.type is LoopEventType.INTERCEPTOR:
            reason = event.data.reason
            self._put(decision_record(event.data, None if reason is None else self._fit(reason)))

    def renew(self) -> Journal | None:
        """Close this session and begin another one for the same project, model and folder.

        Returns None, with a warning, where none can be begun: what is talked about is no reason to stop talking.
        """
        self.close()
        try:
            return Journal.create(self.path.parent, project=self.project, model=self.model, lane=self.lane)
        except OutsideError as problem:
            _log.warning("%s", problem)
            return None

    def close(self) -> None:
        """End the record. A session in which nothing was said leaves no file. Closing twice does nothing."""
        with self._lock:
            descriptor, self._descriptor = self._descriptor, None
            if descriptor is None:
                return
            if not self._used:
                self.path.unlink(missing_ok=True)
            os.close(descriptor)

    def added(self, context: RecordedContext, messages: Sequence[Message]) -> None:
        """For the conversation: `messages` were added to it."""
        if context is self._context:
            self._put(*map(message_record, messages))

    def replaced(self, context: RecordedContext) -> None:
        """For the conversation: it is another one now."""
        if context is self._context:
            self._put(conversation_record(context.messages))

    def _fit(self, text: str) -> str:
        """Return a reason without secrets: it may quote what a policy stopped."""
        if text in _PLAIN_REASONS:
            return text
        if self._scrub is None:
            from chimera.secrets import REDACTED, SecretDetector

            detector = SecretDetector()
            self._scrub = lambda found: detector.scrub(found, REDACTED)
        return str(self._scrub(text))

    def _put(self, *records: dict[str, Any]) -> None:
        with self._lock:
            if self._descriptor is None or not records:
                return
            if self._behind and self._context is not None:
                others = [record for record in records if record["type"] not in _OF_CONVERSATION]
                records = (conversation_record(self._context.messages), *others)
            self._used = self._used or any(record["type"] in _OF_CONVERSATION for record in records)
            self._write(b"".join(map(encode, records)))

    def _write(self, data: bytes) -> None:
        assert self._descriptor is not None
        try:
            _write_all(self._descriptor, data)
        except BaseException as problem:
            self._take_back(problem)
            if not isinstance(problem, OSError):
                raise
        else:
            self._size += len(data)
            self._behind, self.problem = False, None

    def _take_back(self, problem: BaseException) -> None:
        """Leave no half record behind, and remember that the file lacks something."""
        self._behind = True
        if self.problem is None:
            self.problem = f"the session {self.path} is not recorded: {problem}"
            _log.warning("%s", self.problem)
        if self._descriptor is not None:
            try:
                os.ftruncate(self._descriptor, self._size)
            except OSError:
                _log.warning("the session %s may hold a part of a record", self.path, exc_info=True)


def _new_id() -> str:
    """Return an id that sorts by time and that no other process makes."""
    return f"{datetime.now():%Y%m%d-%H%M%S}-{os.urandom(3).hex()}"


def _begun(path: Path, header: bytes) -> tuple[int, int]:
    """Make the file, and return its descriptor and size. It gets its name once its first record is in it, so that a
    process that is killed meanwhile leaves no session that cannot be read. Raises `OSError`."""
    unnamed = path.with_name(f".{path.name}.new")
    descriptor = _locked(os.open(unnamed, _NEW | _ALWAYS, 0o600), path)
    try:
        _write_all(descriptor, header)
        path.hardlink_to(unnamed)  # unlike a renaming, it replaces nothing
    except BaseException:
        os.close(descriptor)
        raise
    finally:
        unnamed.unlink()
    return descriptor, len(header)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _locked(descriptor: int, path: Path) -> int:
    """Return the descriptor, which alone may write to the file. Raises `OutsideError` when another one may."""
    try:
        import fcntl
    except ImportError:  # a system without such locks
        return descriptor
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        os.close(descriptor)
        raise OutsideError(f"the session {path} is being recorded by another process") from problem
    return descriptor
