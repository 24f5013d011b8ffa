"""Reading an answer from bytes: whole, or as a stream of events. No I/O, no vendor: both drivers feed these."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from chimera.errors import ProviderConnectionError, ProviderProtocolError
from chimera.providers.base import Response, StreamChunk
from chimera.providers.failures import WireError
from chimera.providers.sse import Event, EventDecoder

__all__ = ["Assembler", "BodyReader", "EventReader", "ReadWhole", "Reader"]

ReadWhole = Callable[[Mapping[str, Any]], Response]
_LONGEST_FALLBACK = 1 << 20


class Reader(Protocol):
    """Takes the bytes of one answer and gives its chunks; `done` once the rest of the body does not matter.

    Both methods raise `WireError` when the answer is a failure.
    """

    done: bool

    def feed(self, data: bytes) -> Iterator[StreamChunk]: ...

    def finish(self) -> Iterator[StreamChunk]: ...


class Assembler(Protocol):
    """Builds a response from the events of one protocol.

    `ended`: the service said how the answer ends. `finished`: it said that nothing follows.
    """

    ended: bool
    finished: bool

    def add(self, payload: Mapping[str, Any]) -> StreamChunk | None: ...

    def response(self) -> Response: ...


class BodyReader:
    """Reads an answer that is one JSON object."""

    def __init__(self, read_whole: ReadWhole) -> None:
        self.done = False
        self._read_whole = read_whole
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> Iterator[StreamChunk]:
        self._parts.append(data)
        yield from ()

    def finish(self) -> Iterator[StreamChunk]:
        payload = _parse(b"".join(self._parts))
        yield StreamChunk(response=_read(payload, self._read_whole))


class EventReader:
    """Reads a stream of events; also the plain JSON object that some services send where a stream was asked for."""

    def __init__(self, assembler: Assembler, read_whole: ReadWhole) -> None:
        self.done = False
        self._assembler, self._read_whole = assembler, read_whole
        self._decoder = EventDecoder()
        self._seen_events = False
        self._raw = bytearray()

    def feed(self, data: bytes) -> Iterator[StreamChunk]:
        if not self._seen_events and len(self._raw) < _LONGEST_FALLBACK:
            self._raw += data
        for event in self._decoder.feed(data):
            yield from self._take(event)
            if self.done:
                return

    def finish(self) -> Iterator[StreamChunk]:
        if not self.done:
            for event in self._decoder.finish():
                yield from self._take(event)
        if not self._seen_events:
            yield StreamChunk(response=_read(_parse(bytes(self._raw)), self._read_whole))
            return
        if not self.done and not self._assembler.ended:
            raise WireError("", ProviderConnectionError)
        yield StreamChunk(response=self._assembler.response())

    def _take(self, event: Event) -> Iterator[StreamChunk]:
        self._seen_events = True
        if event.data.strip() == "[DONE]":
            self.done = True
            return
        if event.kind == "error":
            raise WireError.from_body(event.data)
        chunk = self._assembler.add(_object(_parse(event.data)))
        self.done = self._assembler.finished
        if chunk is not None:
            yield chunk


def _parse(data: bytes | str) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        start = data[:200]
        text = start.decode("utf-8", "replace") if isinstance(start, bytes) else start
        said = "the answer is an HTML page" if text.lstrip().startswith("<") else f"the answer is no JSON ({text!r})"
        raise WireError(said, ProviderProtocolError) from None


def _object(payload: object) -> Mapping[str, Any]:
    if not isinstance(payload, Mapping):
        raise WireError("the answer is no JSON object", ProviderProtocolError)
    if payload.get("error"):
        raise WireError.from_body(payload)
    return payload


def _read(payload: object, read_whole: ReadWhole) -> Response:
    return read_whole(_object(payload))
