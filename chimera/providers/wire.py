"""What both vendors' providers share: headers, the SDK's clients, retries, and reading an answer while it arrives.

The SDKs do the HTTP; the protocol modules turn conversations into bodies, and bytes into answers. An SDK client holds
no credential here: each call brings its whole set of headers, so no call can see another one's.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
import weakref
from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass
from functools import cached_property, partial
from operator import methodcaller
from threading import Lock
from typing import Any, ClassVar
from urllib.parse import urlsplit

from chimera.errors import ConfigError, MisuseError
from chimera.providers.answers import Reader
from chimera.providers.base import Provider, Response, StreamChunk
from chimera.providers.failures import Failure, FailureReader
from chimera.providers.headers import checked_headers, secrets_in
from chimera.providers.loop_clients import LoopClients
from chimera.providers.pricing import context_window_of, cost_usd
from chimera.providers.retry import Backoff
from chimera.providers.vendor import Vendor
from chimera.types import Message

__all__ = ["Ask", "Tools", "WireCall", "WireProvider"]

_log = logging.getLogger("chimera.providers")
_DEFAULT_WINDOW = 128_000
_CREDENTIALS = ("authorization", "x-api-key", "api-key")

Tools = Sequence[Mapping[str, Any]] | None


@dataclass(frozen=True, slots=True)
class Ask:
    """What every provider is asked, whatever its protocol."""

    messages: Sequence[Message]
    tools: Tools
    temperature: float
    max_tokens: int | None


@dataclass(frozen=True, slots=True)
class WireCall:
    """One request, ready to be sent as often as it takes: the same bytes and headers each time."""

    content: bytes
    headers: Mapping[str, str]
    timeout: float
    failures: FailureReader
    new_reader: Callable[[], Reader]


class WireProvider(Provider):
    """Base of the providers that speak HTTP through a vendor's SDK. Safe to share between threads and event loops.

    `base_url` is where the API is (None for the vendor's own); `headers` go with every call, next to the key.
    `timeout` is the longest silence in seconds; `max_retries` and `retry_delay` (seconds, doubled each time) say what
    happens when the service is busy or the connection fails before anything was answered. Keyword arguments of a call
    that are none of the protocol's own go into the request body; None leaves a field out.

    Raises `MissingExtraError` when the SDK is not installed and `ConfigError` for a bad address or header.
    """

    accepts_call_headers = True
    accepts_call_model = True
    vendor: ClassVar[Vendor]

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 600.0,
        max_retries: int = 2,
        retry_delay: float = 0.5,
        context_window: int | None = None,
    ) -> None:
        self.vendor.check()
        self._model = model
        self._base_url = _checked_url(base_url or self.vendor.base_url)
        self._headers = checked_headers(headers or {})
        self._timeout = timeout
        self._backoff = Backoff(max_retries, retry_delay)
        self._given_window = context_window
        self._lock = Lock()
        self._client: Any = None
        self._close_client: Callable[[], object] | None = None
        self._clients = self._new_loop_clients()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model!r}, base_url={self._base_url!r})"

    @property
    def model_name(self) -> str:
        return self._model

    @property
    def base_url(self) -> str:
        """The address that requests go to."""
        return self._base_url

    @property
    def request_headers(self) -> dict[str, str]:
        """A copy of the headers that go with every call, the key's among them. Assign a new set to change them."""
        return dict(self._headers)

    @request_headers.setter
    def request_headers(self, headers: Mapping[str, str]) -> None:
        self._headers = checked_headers(headers)

    @property
    def context_window(self) -> int:
        return self._given_window or self._known_window

    @cached_property
    def _known_window(self) -> int:
        return context_window_of(self._model, self._base_url) or _DEFAULT_WINDOW

    def cost_usd(self, usage: Mapping[str, int]) -> float:
        return cost_usd(self._model, usage, self._base_url)

    def complete(
        self,
        messages: Sequence[Message],
        tools: Tools = None,
        temperature: float = 0.0,
        max_tokens: int | None = None,
        **kwargs: Any,
    ) -> Response:
        call = self._prepare(Ask(messages, tools, temperature, max_tokens), kwargs, stream=False)
        with closing(self._pieces(call)) as pieces:
            return _answer(list(pieces))

    def stream(
        self,
        messages: Sequence[Message],
        tools: Tools = None,
        temperature: float = 0.0,
        max_tokens: int | None = None,
        **kwargs: Any,
    ) -> Generator[StreamChunk, None, None]:
        call = self._prepare(Ask(messages, tools, temperature, max_tokens), kwargs, stream=True)
        return self._pieces(call)

    async def async_complete(
        self,
        messages: Sequence[Message],
        tools: Tools = None,
        temperature: float = 0.0,
        max_tokens: int | None = None,
        **kwargs: Any,
    ) -> Response:
        call = self._prepare(Ask(messages, tools, temperature, max_tokens), kwargs, stream=False)
        async with aclosing(self._async_pieces(call)) as pieces:
            return _answer([piece async for piece in pieces])

    def async_stream(
        self,
        messages: Sequence[Message],
        tools: Tools = None,
        temperature: float = 0.0,
        max_tokens: int | None = None,
        **kwargs: Any,
    ) -> AsyncGenerator[StreamChunk, None]:
        call = self._prepare(Ask(messages, tools, temperature, max_tokens), kwargs, stream=True)
        return self._async_pieces(call)

    def close(self) -> None:
        """Close the connections; those of event loops close on their loops. The next call opens new ones."""
        with self._lock:
            close, self._client, self._close_client = self._close_client, None, None
            self._clients = self._new_loop_clients()
        if close is not None:
            close()

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._clients.aclose()

    @abstractmethod
    def _body(self, model: str, ask: Ask) -> dict[str, Any]:
        """Return the body of a request, without what the keyword arguments of the call add."""

    @abstractmethod
    def _new_reader(self, stream: bool, ask: Ask) -> Reader:
        """Return what reads one answer."""

    def _amend(self, body: dict[str, Any], stream: bool) -> None:
        """Change a body that is otherwise ready."""
        if stream:
            body["stream"] = True

    def _prepare(self, ask: Ask, kwargs: Mapping[str, Any], *, stream: bool) -> WireCall:
        options = dict(kwargs)
        model = options.pop("model", None) or self._model
        own = self._headers
        given = options.pop("extra_headers", None)
        headers = own if given is None else checked_headers(given)
        timeout = options.pop("timeout", None) or self._timeout
        more = options.pop("extra_body", None) or {}
        body = self._body(model, ask) | options | dict(more)
        body.pop("stream", None)
        self._amend(body, stream)
        content = _encode({name: value for name, value in body.items() if value is not None})
        failures = FailureReader(
            service=f"the model service at {_origin(self._base_url)}",
            model=model,
            key_help=self.vendor.key_help,
            secrets=secrets_in(own, headers),
            had_key=any(name.lower() in _CREDENTIALS for name in headers),
            replaced=headers != own,
        )
        return WireCall(content, headers, timeout, failures, partial(self._new_reader, stream, ask))

    def _pieces(self, call: WireCall) -> Generator[StreamChunk, None, None]:
        attempts = 0
        while True:
            attempts += 1
            started = False
            try:
                with closing(self._attempt(call)) as pieces:
                    for piece in pieces:
                        started = True
                        yield piece
                return
            except Exception as raised:
                failure = call.failures.read(raised)
                if failure is None:
                    raise
            # Outside of the handler, or the vendor's exception and its request would hang on the error raised.
            time.sleep(self._pause(failure, attempts, started))

    async def _async_pieces(self, call: WireCall) -> AsyncGenerator[StreamChunk, None]:
        attempts = 0
        while True:
            attempts += 1
            started = False
            try:
                async with aclosing(self._async_attempt(call)) as pieces:
                    async for piece in pieces:
                        started = True
                        yield piece
                return
            except Exception as raised:
                failure = call.failures.read(raised)
                if failure is None:
                    raise
            await asyncio.sleep(self._pause(failure, attempts, started))

    def _pause(self, failure: Failure, attempts: int, started: bool) -> float:
        """Return how long to wait before the next attempt, or raise what the failure has become."""
        delay = None if started else self._backoff.delay(attempts, failure)
        if delay is None:
            raise failure.error(attempts)
        _log.info("attempt %d for %s failed (%s); next in %.2f s", attempts, self._model, failure.kind.__name__, delay)
        return delay

    def _attempt(self, call: WireCall) -> Generator[StreamChunk, None, None]:
        request = self.vendor.request("", call.content, call.headers, call.timeout)
        body = self._sync_client().post(self.vendor.path, **request)
        reader = call.new_reader()
        with closing(body):
            for data in body.response.iter_bytes():
                yield from reader.feed(data)
                if reader.done:
                    break
            yield from reader.finish()

    async def _async_attempt(self, call: WireCall) -> AsyncGenerator[StreamChunk, None]:
        if self.vendor.extra not in sys.modules:
            await asyncio.to_thread(self.vendor.sdk)
        client = await self._clients.get()
        request = self.vendor.request("Async", call.content, call.headers, call.timeout)
        body = await client.post(self.vendor.path, **request)
        reader = call.new_reader()
        try:
            async with aclosing(body.response.aiter_bytes()) as pieces:
                async for data in pieces:
                    for piece in reader.feed(data):
                        yield piece
                    if reader.done:
                        break
            for piece in reader.finish():
                yield piece
        finally:
            await body.close()

    def _sync_client(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = self.vendor.new_client(self._base_url, "")
                self._close_client = weakref.finalize(self, self._client.close)
            return self._client

    def _new_loop_clients(self) -> LoopClients[Any]:
        make = partial(self.vendor.new_client, self._base_url, "Async")
        return LoopClients(make, methodcaller("close"))


def _answer(pieces: Sequence[StreamChunk]) -> Response:
    response = pieces[-1].response
    assert response is not None, "every reader ends with the whole response"
    return response


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _checked_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError("the base URL must start with http:// or https:// and name a host")
    if parts.username or parts.password:
        raise ConfigError("the base URL must hold no user name or password; give an Authorization header instead")
    return url


def _encode(body: Mapping[str, Any]) -> bytes:
    # Lone surrogates, as in a file name that is no UTF-8, cannot be sent; they become question marks.
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), default=_plain).encode("utf-8", "replace")


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise MisuseError(f"a request cannot carry a {type(value).__name__}; only JSON values travel")
