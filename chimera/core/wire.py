"""Headers of one call: how replaced headers reach a provider and nobody else.

A provider that takes headers per call gets them so. One that only has a settable `request_headers` gets them set and
restored under a lock of its own, which every call through it holds: no call may see another one's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from chimera.core.effects import WireCall
from chimera.errors import ProviderError

__all__ = ["async_call_arguments", "call_arguments", "own_headers"]

_POLL_SECONDS = 0.002


class _Gate:
    """What the calls through one provider with shared headers agree on."""

    def __init__(self) -> None:
        self.in_use = Lock()  # held for the length of a call
        self.own: Any = None  # the provider's own headers, while a call has put others in their place


_gates: WeakKeyDictionary[Any, _Gate] = WeakKeyDictionary()
_shared_gate = _Gate()  # for providers that cannot be weakly referenced or hashed
_guard = Lock()  # held for a moment, around looks at and changes of any provider's headers


def own_headers(provider: Any) -> dict[str, str] | None:
    """Return a copy of the provider's own headers, whatever calls are under way; None where it has no such surface."""
    if _takes_headers(provider):
        return dict(provider.request_headers)
    with _guard:
        gate = _gate_of(provider)
        headers = getattr(provider, "request_headers", None) if gate.own is None else gate.own
        return None if headers is None else dict(headers)


@contextmanager
def call_arguments(call: WireCall) -> Iterator[dict[str, Any]]:
    """Yield the keyword arguments of the provider's method, with the call's headers in force."""
    gate = _gate_for(call.provider)
    if gate is None:
        yield _arguments(call)
        return
    with gate.in_use, _set_and_restore(call, gate):
        yield _arguments(call)


@asynccontextmanager
async def async_call_arguments(call: WireCall) -> AsyncIterator[dict[str, Any]]:
    """`call_arguments` for a task: waits for its turn without blocking the event loop."""
    gate = _gate_for(call.provider)
    if gate is None:
        yield _arguments(call)
        return
    while not gate.in_use.acquire(blocking=False):  # noqa: ASYNC110 - the holder may be a thread, which sets no event
        await asyncio.sleep(_POLL_SECONDS)
    try:
        with _set_and_restore(call, gate):
            yield _arguments(call)
    finally:
        gate.in_use.release()


def _arguments(call: WireCall) -> dict[str, Any]:
    arguments: dict[str, Any] = {"tools": call.request.tools, **call.request.kwargs}
    if call.headers is not None and _takes_headers(call.provider):
        arguments["extra_headers"] = call.headers
    if call.model is not None:
        if not getattr(call.provider, "accepts_call_model", False):
            raise ProviderError(f"{type(call.provider).__name__} cannot use another model for one call")
        arguments["model"] = call.model
    return arguments


def _takes_headers(provider: Any) -> bool:
    return bool(getattr(provider, "accepts_call_headers", False))


def _gate_for(provider: Any) -> _Gate | None:
    """Return the gate of a provider that shares one settable set of headers among its calls; None for all others."""
    if _takes_headers(provider) or getattr(provider, "request_headers", None) is None:
        return None
    with _guard:
        return _gate_of(provider)


def _gate_of(provider: Any) -> _Gate:
    try:
        return _gates.setdefault(provider, _Gate())
    except TypeError:
        return _shared_gate


@contextmanager
def _set_and_restore(call: WireCall, gate: _Gate) -> Iterator[None]:
    if call.headers is None:
        yield
        return
    with _guard:
        own = call.provider.request_headers
        try:
            call.provider.request_headers = call.headers
        except AttributeError as exc:
            text = "headers were replaced, but this provider's request_headers cannot be set; the call is not made"
            raise ProviderError(text) from exc
        gate.own = own
    try:
        yield
    finally:
        with _guard:
            call.provider.request_headers = own
            gate.own = None
