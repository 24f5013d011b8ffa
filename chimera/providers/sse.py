"""Server-sent events, read from bytes as they come. The format is that of the HTML standard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Event", "EventDecoder"]


class Event(NamedTuple):
    """One event: its type, empty where the service gave none, and its data, lines joined by newlines."""

    kind: str
    data: str


class EventDecoder:
    """Turns chunks of bytes, cut anywhere, into events.

    Takes all three line endings, a byte order mark, comments and fields that it does not know. Bytes that are no UTF-8
    become replacement characters. `feed` takes a chunk; `finish` gives an event that the end of the stream cut short
    of its blank line, since some services leave that out.
    """

    def __init__(self) -> None:
        self._partial: list[bytes] = []
        self._after_return = False
        self._at_start = True
        self._kind = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[Event]:
        for line in self._lines(chunk):
            event = self._take(line)
            if event is not None:
                yield event

    def finish(self) -> Iterator[Event]:
        for line in (b"".join(self._partial), b""):
            event = self._take(line)
            if event is not None:
                yield event
        self._partial.clear()

    def _lines(self, chunk: bytes) -> Iterator[bytes]:
        if self._after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        if not chunk:
            return
        self._after_return = chunk.endswith(b"\r")
        for piece in chunk.splitlines(keepends=True):
            self._partial.append(piece)
            if piece.endswith((b"\n", b"\r")):
                line = b"".join(self._partial).rstrip(b"\r\n")
                self._partial.clear()
                yield line

    def _take(self, raw: bytes) -> Event | None:
        line = raw.decode("utf-8", "replace")
        if self._at_start:
            line = line.removeprefix("\ufeff")
            self._at_start = False
        if not line:
            return self._dispatch()
        field, _, value = line.partition(":")
        self._store(field, value.removeprefix(" "))
        return None

    def _store(self, field: str, value: str) -> None:
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._kind = value
        elif field == "error":
            # Not in the standard: a llama.cpp server writes its errors so.
            self._kind = "error"
            self._data.append(value)

    def _dispatch(self) -> Event | None:
        kind, data = self._kind, self._data
        self._kind, self._data = "", []
        return Event(kind, "\n".join(data)) if data else None
