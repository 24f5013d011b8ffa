"""Replaced headers belong to one call, whatever kind of provider it goes through and whoever calls at the same time."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from chimera.core import wire
from chimera.core.agent_loop import AgentLoop
from chimera.core.context import Context
from chimera.core.decisions import InterceptDecision, Interceptors, ProviderRequest
from chimera.core.drivers import _answer
from chimera.core.effects import WireCall
from chimera.core.interception import intercepted_complete
from chimera.core.loop import ReAct, async_drain_steps
from chimera.errors import ProviderError
from chimera.providers.base import Provider, Response, StreamChunk
from chimera.providers.faux import FauxProvider
from chimera.types import Message
from tests.core.driving import drive, every_mode, held

OWN = {"Authorization": "own", "X-Keep": "1"}
CALLS = 200


class Unlucky(Exception):
    """What every tenth call raises."""


class SettableProvider:
    """Knows one set of headers. A call looks at it twice, a moment apart, and notes what it saw."""

    model_name = "settable"

    def __init__(self) -> None:
        self.request_headers: dict[str, str] = dict(OWN)
        self.sent: list[tuple[str, dict[str, str]]] = []

    def complete(self, messages: list[Message], tools: Any = None, **_: Any) -> Response:
        first = dict(self.request_headers)
        time.sleep(0.0005)
        return self._answer(messages[-1].content, first)

    def _answer(self, number: str, first: dict[str, str]) -> Response:
        assert first == self.request_headers, "another call's headers came in between"
        self.sent.append((number, first))
        if int(number) % 10 == 0:
            raise Unlucky
        return Response("ok")


class AsyncSettableProvider(SettableProvider):
    async def async_complete(self, messages: list[Message], tools: Any = None, **_: Any) -> Response:
        first = dict(self.request_headers)
        await asyncio.sleep(0)
        return self._answer(messages[-1].content, first)

    async def async_stream(self, messages: list[Message], tools: Any = None, **_: Any) -> Any:
        first = dict(self.request_headers)
        yield StreamChunk("o")
        await asyncio.sleep(0)
        yield StreamChunk(response=self._answer(messages[-1].content, first))


@dataclass
class UnhashableProvider(SettableProvider):
    """A dataclass with equality: it has no hash, and two of them are equal."""

    name: str = "x"
    request_headers: dict[str, str] = field(default_factory=lambda: dict(OWN))
    sent: list[Any] = field(default_factory=list)


class SlotProvider:
    """Cannot be referenced weakly, and holds no attribute but its own."""

    __slots__ = ("complete", "request_headers", "sent")
    model_name = "slots"

    def __init__(self) -> None:
        self.request_headers: dict[str, str] = dict(OWN)
        self.sent: list[tuple[str, dict[str, str]]] = []
        self.complete: Any = functools.partial(SettableProvider.complete, self)  # type: ignore[arg-type]

    def _answer(self, number: str, first: dict[str, str]) -> Response:
        return SettableProvider._answer(self, number, first)  # type: ignore[arg-type]


class DefaultProvider(Provider):
    """Built on the base class with one method, as its documentation says."""

    def __init__(self) -> None:
        self.request_headers: dict[str, str] = dict(OWN)
        self.sent: list[tuple[str, dict[str, str]]] = []

    complete = SettableProvider.complete  # type: ignore[assignment]
    _answer = SettableProvider._answer

    @property
    def model_name(self) -> str:
        return "default"


KINDS = (SettableProvider, AsyncSettableProvider, UnhashableProvider, SlotProvider, DefaultProvider)
every_kind = pytest.mark.parametrize("kind", KINDS)


def mine(request: ProviderRequest) -> InterceptDecision:
    """Give every call a header of its own, named after its last message."""
    assert request.headers == OWN, "an interceptor sees the provider's own headers, whoever calls meanwhile"
    return InterceptDecision.replace(replace(request, headers={"Authorization": request.messages[-1].content}))


CHAINS = Interceptors(provider_request=[mine])


def expect_all_sent_with_their_own(provider: Any, outcomes: list[bool]) -> None:
    assert sorted(provider.sent, key=lambda pair: int(pair[0])) == [
        (str(number), {"Authorization": str(number)}) for number in range(CALLS)
    ]
    assert outcomes == [number % 10 != 0 for number in range(CALLS)]
    assert provider.request_headers == OWN
    assert not wire._gates, "no call is under way, so nothing of them is kept"


@every_kind
def test_two_hundred_calls_in_threads(kind: Any) -> None:
    provider = kind()
    identity = provider.request_headers

    def one(number: int) -> bool:
        context = Context(None, [Message.user(str(number))])
        try:
            return ReAct(config=held(CHAINS)).run(provider, [], context).success
        except Unlucky:
            return False

    with ThreadPoolExecutor(32) as pool:
        outcomes = list(pool.map(one, range(CALLS)))
    expect_all_sent_with_their_own(provider, outcomes)
    assert provider.request_headers is identity


@every_kind
@pytest.mark.parametrize("way", ["steps", "agent", "streamed"])
async def test_two_hundred_calls_in_tasks(kind: Any, way: str) -> None:
    provider = kind()

    async def one(number: int) -> bool:
        context = Context(None, [Message.user(str(number))])
        if way == "steps":
            try:
                stream = ReAct(config=held(CHAINS)).async_iter_steps(provider, [], context)
                return (await async_drain_steps(stream)).success
            except Unlucky:
                return False
        events = AgentLoop().run(
            (),
            tools=None,
            provider=provider,
            system_prompt=None,
            context=context,
            interceptors=CHAINS,
            stream=way == "streamed",
        )
        result = [event async for event in events][-1].data
        assert result.success or result.reason == "error: Unlucky: "
        return bool(result.success)

    outcomes = list(await asyncio.gather(*(one(number) for number in range(CALLS))))
    expect_all_sent_with_their_own(provider, outcomes)


async def test_threads_and_tasks_at_once() -> None:
    provider = AsyncSettableProvider()

    def in_thread(number: int) -> bool:
        return ReAct(config=held(CHAINS)).run(provider, [], Context(None, [Message.user(str(number))])).success

    async def in_task(number: int) -> bool:
        loop = ReAct(config=held(CHAINS))
        stream = loop.async_iter_steps(provider, [], Context(None, [Message.user(str(number))]))
        return (await async_drain_steps(stream)).success

    numbers = [number for number in range(60) if number % 10]
    work = [asyncio.to_thread(in_thread, n) if n % 2 else in_task(n) for n in numbers]
    assert all(await asyncio.gather(*work))
    assert sorted(int(number) for number, _ in provider.sent) == numbers
    assert all(headers == {"Authorization": number} for number, headers in provider.sent)
    assert provider.request_headers == OWN


def test_without_the_replacement_every_call_sends_the_providers_own() -> None:
    """The control of the tests above."""
    provider = SettableProvider()
    for number in range(1, 4):
        ReAct(config=held()).run(provider, [], Context(None, [Message.user(str(number))]))
    assert [headers for _, headers in provider.sent] == [OWN] * 3


@pytest.mark.parametrize("kind", [UnhashableProvider, SlotProvider])
def test_providers_that_look_alike_keep_their_headers_apart(kind: Any) -> None:
    """While a call goes through one of two equal providers, the other one shows and sends its own headers."""
    busy, other = kind(), kind()
    other.request_headers = {"Authorization": "other"}
    started, go_on = threading.Event(), threading.Event()
    seen: list[Any] = []

    def hold(messages: Any, tools: Any = None, **_: Any) -> Response:
        started.set()
        assert go_on.wait(10)
        return Response("ok")

    busy.complete = hold
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(intercepted_complete, busy, [Message.user("1")], interceptors=CHAINS)
        assert started.wait(10)
        watch = Interceptors(provider_request=[lambda request: seen.append(request.headers)])
        intercepted_complete(other, [Message.user("1")], interceptors=watch)
        go_on.set()
        call.result()
    assert seen == [{"Authorization": "other"}]
    assert other.sent == [("1", {"Authorization": "other"})]
    assert (busy.request_headers, other.request_headers) == (OWN, {"Authorization": "other"})


@pytest.mark.parametrize("kind", [SettableProvider, DefaultProvider])
async def test_a_call_that_nobody_waits_for_any_more_keeps_its_headers_to_its_end(kind: Any) -> None:
    """A thread cannot be stopped: until it is done, nobody else's headers may be in force."""
    provider = kind()
    started, go_on = threading.Event(), threading.Event()
    at_the_end: list[dict[str, str]] = []

    def hold(messages: Any, tools: Any = None, **_: Any) -> Response:
        started.set()
        assert go_on.wait(10)
        at_the_end.append(dict(provider.request_headers))
        return Response("ok")

    provider.complete = hold
    stream = ReAct(config=held(CHAINS)).async_iter_steps(provider, [], Context(None, [Message.user("1")]))
    first = asyncio.ensure_future(async_drain_steps(stream))
    await asyncio.to_thread(started.wait, 10)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    del provider.complete
    stream = ReAct(config=held(CHAINS)).async_iter_steps(provider, [], Context(None, [Message.user("2")]))
    second = asyncio.ensure_future(async_drain_steps(stream))
    await asyncio.sleep(0.02)
    assert provider.sent == []
    go_on.set()
    await second
    assert at_the_end == [{"Authorization": "1"}]
    assert provider.sent == [("2", {"Authorization": "2"})]
    assert provider.request_headers == OWN


async def test_a_call_that_was_given_up_before_it_began_is_not_made() -> None:
    turn = await wire.async_turn(WireCall(SettableProvider(), ProviderRequest("m", [])))
    turn.give_up()
    assert not turn.begin()
    assert not wire._gates


@pytest.mark.parametrize("kind", [SettableProvider, FauxProvider])
async def test_a_call_that_was_given_up_while_all_threads_were_busy_is_not_made(kind: Any) -> None:
    """The thread that was to make it comes too late, and makes none."""
    provider, go_on = kind(), threading.Event()
    made: list[int] = []
    provider.complete = lambda *_args, **_kwargs: made.append(1)
    if kind is FauxProvider:
        provider.async_complete = None
    pool = ThreadPoolExecutor(1)
    asyncio.get_running_loop().set_default_executor(pool)
    busy = pool.submit(go_on.wait, 10)
    waiting = asyncio.ensure_future(_answer(WireCall(provider, ProviderRequest("m", []))))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    go_on.set()
    await asyncio.wrap_future(busy)
    await asyncio.to_thread(lambda: None)
    assert made == []
    assert not wire._gates


async def test_waiting_for_a_turn_can_be_given_up() -> None:
    provider = SettableProvider()
    call = WireCall(provider, ProviderRequest("m", []), {"a": "b"})
    with wire.call_arguments(call):
        waiting = asyncio.ensure_future(wire.async_turn(call))
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert provider.request_headers == {"a": "b"}
    assert provider.request_headers == OWN
    assert not wire._gates


class ReadOnlyProvider(FauxProvider):
    """Shows headers that it does not let anybody set, and takes none for a call."""

    @property
    def request_headers(self) -> dict[str, str]:
        return dict(OWN)


@every_mode
def test_headers_that_cannot_be_replaced_are_an_error_and_nothing_is_sent(mode: str) -> None:
    provider = ReadOnlyProvider("done")
    if mode.startswith("agent"):
        ran = drive(mode, provider, [], held(CHAINS))
        assert "cannot be set" in str(ran.reason)
    else:
        with pytest.raises(ProviderError, match="request_headers cannot be set; the call is not made"):
            drive(mode, provider, [], held(CHAINS))
    assert provider.requests == []
    assert drive(mode, provider, [], held()).output == "done"


@every_mode
def test_a_provider_that_takes_headers_per_call_gets_the_complete_set(mode: str) -> None:
    provider = FauxProvider(["one"], headers=OWN)

    def drop(request: ProviderRequest) -> InterceptDecision:
        assert request.headers == OWN
        return InterceptDecision.replace(replace(request, headers={"X-Keep": "1", "X-New": "2"}))

    drive(mode, provider, [], held(Interceptors(provider_request=[drop])))
    drive(mode, provider, [], held())
    assert [request.headers for request in provider.requests] == [{"X-Keep": "1", "X-New": "2"}, OWN]
    assert provider.request_headers == OWN


@every_mode
@pytest.mark.parametrize("headers", [{"Authorization": "x"}, {}, None])
def test_without_a_header_surface_headers_are_none_and_replacing_them_does_nothing(mode: str, headers: Any) -> None:
    seen: list[Any] = []

    def put(request: ProviderRequest) -> InterceptDecision:
        seen.append(request.headers)
        return InterceptDecision.replace(replace(request, headers=headers))

    ran = drive(mode, ["done"], [], held(Interceptors(provider_request=[put])))
    assert (seen, ran.output, ran.requests[0].headers) == ([None], "done", None)


@pytest.mark.parametrize("headers", [None, dict(OWN)], ids=["left out", "the same"])
def test_headers_that_an_interceptor_leaves_alone_stay_the_providers_own(headers: Any) -> None:
    provider = SettableProvider()
    chain: list[Any] = [lambda r: InterceptDecision.replace(ProviderRequest(r.model, r.messages, headers=headers))]
    intercepted_complete(provider, [Message.user("1")], interceptors=Interceptors(provider_request=chain))
    assert provider.sent == [("1", OWN)]


def test_what_an_interceptor_does_to_the_headers_it_was_shown_goes_nowhere() -> None:
    provider = SettableProvider()

    def meddle(request: ProviderRequest) -> None:
        assert request.headers is not None
        request.headers["Authorization"] = "stolen"

    intercepted_complete(provider, [Message.user("1")], interceptors=Interceptors(provider_request=[meddle]))
    assert provider.sent == [("1", OWN)]
    assert provider.request_headers == OWN
