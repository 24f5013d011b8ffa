"""Headers of one call: how replaced headers reach a provider and nobody else.

A provider that takes headers per call gets them so. One that only has a settable `request_headers` gets them set and
restored under a lock of its own, which every call through it holds: no call may see another one's.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from threading import Lock
from typing import Any

from chimera.core.effects import WireCall
from chimera.errors import ProviderError

__all__ = ["Turn", "async_turn", "call_arguments", "own_headers"]

_POLL_SECONDS = 0.002


class _Gate:
    """What the calls through one provider with shared headers agree on. It lives as long as there are such calls."""

    def __init__(self) -> None:
        self.users = 0
        self.in_use = Lock()  # held for the length of a call
        self.replaced = False
        self.own: Any = None  # the provider's own headers, while a call has put others in their place


# By the identity of the provider: two providers that compare equal still have headers of their own.
_gates: dict[int, _Gate] = {}
_guard = Lock()  # held for a moment, around looks at and changes of any provider's headers


class Turn:
    """Leave to make one call: the keyword arguments of the provider's method, with the call's headers in force.

    A context manager, which ends it.
    """

    __slots__ = ("_claim", "_release", "arguments")

    def __init__(self, arguments: dict[str, Any], release: ExitStack | None = None) -> None:
        self.arguments = arguments
        self._release = release
        self._claim = Lock()

    def __enter__(self) -> dict[str, Any]:
        return self.arguments

    def __exit__(self, *_exc: object) -> None:
        if self._release is not None:
            self._release.close()

    def begin(self) -> bool:
        """Claim the turn for a thread that will end it. False when it was given up before the thread came to run."""
        return self._claim.acquire(blocking=False)

    def give_up(self) -> None:
        """End the turn, unless a thread that is still at work has claimed it."""
        if self.begin():
            self.end()

    def end(self) -> None:
        """Restore the provider's own headers and let the next call have its turn."""
        self.__exit__()


def own_headers(provider: Any) -> dict[str, str] | None:
    """Return a copy of the provider's own headers, whatever calls are under way; None where it has no such surface."""
    if getattr(provider, "request_headers", None) is None:
        return None  # and so it never has a gate
    with _guard:
        gate = _gates.get(id(provider))
        headers = gate.own if gate is not None and gate.replaced else provider.request_headers
        return None if headers is None else dict(headers)


def call_arguments(call: WireCall) -> Turn:
    """Wait, blocking the thread, for the turn of a call. Whoever gets it has to end it."""
    if not _shares_headers(call.provider):
        return Turn(_arguments(call))
    with ExitStack() as stack:
        gate = _enter(call.provider, stack)
        stack.enter_context(gate.in_use)
        return _turn(call, gate, stack)


async def async_turn(call: WireCall) -> Turn:
    """`call_arguments` without blocking the event loop."""
    if not _shares_headers(call.provider):
        return Turn(_arguments(call))
    with ExitStack() as stack:
        gate = _enter(call.provider, stack)
        while not gate.in_use.acquire(blocking=False):  # noqa: ASYNC110 - the holder may be a thread: it sets no event
            await asyncio.sleep(_POLL_SECONDS)
        stack.callback(gate.in_use.release)
        return _turn(call, gate, stack)


def _turn(call: WireCall, gate: _Gate, stack: ExitStack) -> Turn:
    _put_headers(call, gate, stack)
    return Turn(_arguments(call), stack.pop_all())


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


def _shares_headers(provider: Any) -> bool:
    """Tell whether all calls of the provider share one settable set of headers."""
    return getattr(provider, "request_headers", None) is not None and not _takes_headers(provider)


def _enter(provider: Any, stack: ExitStack) -> _Gate:
    with _guard:
        gate = _gates.setdefault(id(provider), _Gate())
        gate.users += 1
    stack.callback(_leave, provider, gate)
    return gate


def _leave(provider: Any, gate: _Gate) -> None:
    with _guard:
        gate.users -= 1
        if not gate.users:
            del _gates[id(provider)]


def _put_headers(call: WireCall, gate: _Gate, stack: ExitStack) -> None:
    if call.headers is None:
        return
    with _guard:
        own = call.provider.request_headers
        try:
            call.provider.request_headers = call.headers
        except Exception as exc:
            text = "headers were replaced, but this provider's request_headers cannot be set; the call is not made"
            raise ProviderError(text) from exc
        gate.own, gate.replaced = own, True
    stack.callback(_restore, call.provider, gate)


def _restore(provider: Any, gate: _Gate) -> None:
    with _guard:
        provider.request_headers = gate.own
        gate.own, gate.replaced = None, False
