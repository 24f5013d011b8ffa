"""A server on loopback that records what it receives and answers as it is told, well or badly."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat
from threading import Event, Lock, Thread
from typing import Any, Literal, Self

__all__ = ["Ending", "Received", "Reply", "WireServer", "events", "json_reply", "stream_reply"]

Ending = Literal["whole", "cut", "stall", "silent", "hang_up", "endless"]


@dataclass(frozen=True, slots=True)
class Received:
    """One request: header names in lower case, each with all its values."""

    path: str
    headers: Mapping[str, tuple[str, ...]]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        """Return the one value of a header, None where it was not sent; two values are an error."""
        values = self.headers.get(name.lower(), ())
        assert len(values) <= 1, f"{name} was sent {len(values)} times"
        return values[0] if values else None


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. A body of several chunks is sent chunk by chunk.

    `ending`: `cut` breaks the connection off after the chunks, `stall` says nothing more until the server stops,
    `silent` says nothing at all until then, `hang_up` breaks off before anything was said, `endless` repeats the last
    chunk until the client leaves.
    """

    chunks: Sequence[bytes] = (b"",)
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    ending: Ending = "whole"


def json_reply(
    payload: object, status: int = 200, headers: Mapping[str, str] | None = None, *, zipped: bool = False
) -> Reply:
    body = json.dumps(payload).encode()
    if zipped:
        return Reply((gzip.compress(body),), status, headers={**(headers or {}), "Content-Encoding": "gzip"})
    return Reply((body,), status, headers=headers or {})


def events(*payloads: object, named: bool = False) -> bytes:
    """Write server-sent events. `named` adds each payload's `type` as the event's name.

    Texts are sent as they are: as data, or as a comment when they begin with a colon.
    """
    written = []
    for payload in payloads:
        if isinstance(payload, str):
            written.append(f"{payload}\n\n" if payload.startswith(":") else f"data: {payload}\n\n")
            continue
        name = f"event: {payload['type']}\n" if named and isinstance(payload, dict) and "type" in payload else ""
        written.append(f"{name}data: {json.dumps(payload, ensure_ascii=False)}\n\n")
    return "".join(written).encode()


def stream_reply(*chunks: bytes, ending: Ending = "whole", zipped: bool = False) -> Reply:
    headers = {"Content-Encoding": "gzip"} if zipped else {}
    body = (gzip.compress(b"".join(chunks)),) if zipped else chunks
    return Reply(body, content_type="text/event-stream", headers=headers, ending=ending)


Answering = Reply | Callable[[Received], Reply]


class WireServer:
    """Use it as a context manager. Answers come in the order given; the last one is given again and again.

    An answer may be a function of the request. `client_left` is set when a client leaves an `endless` answer.
    """

    def __init__(self, *answers: Answering) -> None:
        self.requests: list[Received] = []
        self.client_left = Event()
        self._stopping = Event()
        self._lock = Lock()
        self._connections: set[socket.socket] = set()
        self.answer_with(*answers)
        self._server = _Server(("127.0.0.1", 0), self)
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def open_connections(self) -> int:
        with self._lock:
            return len(self._connections)

    def answer_with(self, *answers: Answering) -> None:
        self._answers = chain(answers, repeat(answers[-1])) if answers else repeat(Reply(status=500))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._thread.join()
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._server.server_close()

    def opened(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.discard(connection)

    def serve(self, received: Received, handler: BaseHTTPRequestHandler) -> None:
        with self._lock:
            self.requests.append(received)
            answer = next(self._answers)
        reply = answer if isinstance(answer, Reply) else answer(received)
        if reply.ending in ("hang_up", "silent"):
            if reply.ending == "silent":
                self._stopping.wait()
            handler.close_connection = True
            return
        with suppress(ConnectionError):
            _send_head(handler, reply)
            self._send_body(handler, reply)

    def _send_body(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        for chunk in reply.chunks:
            _send_chunk(handler, chunk)
        if reply.ending == "endless":
            self._send_until_alone(handler, reply.chunks[-1])
        if reply.ending == "stall":
            self._stopping.wait()
        if reply.ending == "whole":
            handler.wfile.write(b"0\r\n\r\n")
        else:
            handler.close_connection = True

    def _send_until_alone(self, handler: BaseHTTPRequestHandler, chunk: bytes) -> None:
        try:
            while not self._stopping.wait(0.002):
                _send_chunk(handler, chunk)
        except ConnectionError:
            self.client_left.set()
            raise


def _send_head(handler: BaseHTTPRequestHandler, reply: Reply) -> None:
    handler.send_response(reply.status)
    handler.send_header("Content-Type", reply.content_type)
    handler.send_header("Transfer-Encoding", "chunked")
    for name, value in reply.headers.items():
        handler.send_header(name, value)
    handler.end_headers()


def _send_chunk(handler: BaseHTTPRequestHandler, chunk: bytes) -> None:
    if chunk:
        handler.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        handler.wfile.flush()


class _Server(ThreadingHTTPServer):
    request_queue_size = 512
    daemon_threads = False

    def __init__(self, address: tuple[str, int], owner: WireServer) -> None:
        self.owner = owner
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.server.owner.opened(self.connection)

    def finish(self) -> None:
        self.server.owner.closed(self.connection)
        with suppress(OSError):
            super().finish()

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except ConnectionError:
            self.close_connection = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.owner.serve(Received(self.path, _grouped(self.headers.items()), body), self)

    do_GET = do_POST

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the record of requests is the log."""


def _grouped(items: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    grouped: dict[str, tuple[str, ...]] = {}
    for name, value in items:
        grouped[name.lower()] = (*grouped.get(name.lower(), ()), value)
    return grouped
