"""Bytes on the wire: both vendors' providers against a server that records what it receives."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import MappingProxyType
from typing import Any

import pytest

from chimera.errors import ConfigError, MisuseError, ProviderError
from chimera.frozen import FrozenDict
from chimera.providers.base import StreamChunk
from chimera.types import Message
from tests.providers.vendors import KEY, OPENAI, VendorCase, run_async, run_sync
from tests.providers.wire_server import Received, Reply, WireServer

HELLO = [Message.system("be brief"), Message.user("hello")]
CALLS = 200


async def test_every_way_of_calling_gives_the_same_answer(
    server: WireServer, vendor: VendorCase, streamed: bool
) -> None:
    server.answer_with(vendor.streamed("hel", "lo") if streamed else vendor.whole("hello"))
    provider = vendor.make(server.url)
    answers = [run_sync(provider, HELLO, streamed), await run_async(provider, HELLO, streamed)]
    for answer in answers:
        assert (answer.content, answer.finish_reason) == ("hello", "stop")
        assert answer.usage == {"input_tokens": 3, "output_tokens": 5}
    first, second = server.requests
    assert first.body == second.body
    assert first.json.get("stream", False) is streamed
    assert first.json["model"] == "some-model"
    await provider.aclose()


async def test_streams_arrive_in_pieces(server: WireServer, vendor: VendorCase) -> None:
    server.answer_with(vendor.streamed("hel", "lo"))
    provider = vendor.make(server.url)
    expected = ["hel", "lo", ""]
    assert [chunk.text for chunk in provider.stream(HELLO)] == expected
    assert [chunk.text async for chunk in provider.async_stream(HELLO)] == expected


def test_the_provider_shows_and_sends_its_own_headers(server: WireServer, vendor: VendorCase) -> None:
    server.answer_with(vendor.whole())
    provider = vendor.make(server.url, headers={"X-Team": "blue"})
    assert provider.request_headers == {"Authorization": f"Bearer {KEY}", "X-Team": "blue"}
    provider.request_headers["X-Team"] = "a copy, so this changes nothing"
    provider.complete(HELLO)
    assert server.requests[0].header("Authorization") == f"Bearer {KEY}"
    assert server.requests[0].header("X-Team") == "blue"
    assert server.requests[0].header("Content-Type") == "application/json"


def test_headers_can_be_set(server: WireServer, vendor: VendorCase) -> None:
    server.answer_with(vendor.whole())
    provider = vendor.make(server.url, headers={"X-Team": "blue"})
    provider.request_headers = {"authorization": "Bearer other"}
    provider.complete(HELLO)
    assert server.requests[0].header("Authorization") == "Bearer other"
    assert server.requests[0].header("X-Team") is None


async def test_replaced_headers_are_the_whole_set_of_one_call(
    server: WireServer, vendor: VendorCase, streamed: bool
) -> None:
    server.answer_with(vendor.streamed("hi") if streamed else vendor.whole())
    provider = vendor.make(server.url, headers={"X-Team": "blue", "X-Gone": "soon"})
    own = provider.request_headers
    replaced = {"authorization": "[redacted]", "X-Team": "red", "X-New": "yes"}
    run_sync(provider, HELLO, streamed, extra_headers=replaced)
    await run_async(provider, HELLO, streamed, extra_headers=replaced)
    run_sync(provider, HELLO, streamed, extra_headers={})
    await run_async(provider, HELLO, streamed)
    names = ("Authorization", "X-Api-Key", "X-Team", "X-Gone", "X-New")
    seen = [[received.header(name) for name in names] for received in server.requests]
    changed = ["[redacted]", None, "red", None, "yes"]
    assert seen == [changed, changed, [None] * 5, [f"Bearer {KEY}", None, "blue", "soon", None]]
    assert provider.request_headers == own
    await provider.aclose()


def test_two_spellings_of_a_header_send_the_later_value_alone(server: WireServer, vendor: VendorCase) -> None:
    """The real key must not travel beside the value that was to replace it."""
    server.answer_with(vendor.whole())
    provider = vendor.make(server.url)
    provider.complete(HELLO, extra_headers={**provider.request_headers, "authorization": "[redacted]"})
    assert server.requests[0].headers["authorization"] == ("[redacted]",)


def test_headers_from_the_environment_of_the_sdk_do_not_slip_in(
    server: WireServer, vendor: VendorCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not on the header surface is not sent, whatever the SDK would pick up by itself."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-ambient")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-ambient")
    monkeypatch.setenv("OPENAI_API_KEY", "key-ambient")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-ambient")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token-ambient")
    monkeypatch.setenv(vendor.provider_class.vendor.ambient, "X-Ambient: value-ambient\nX-Api-Key: key-ambient")
    server.answer_with(vendor.whole())
    provider = vendor.make(server.url, api_key=None)
    provider.complete(HELLO)
    assert "ambient" not in str(server.requests[0].headers)
    provider.complete(HELLO, extra_headers={"X-Ambient": "asked for"})
    assert server.requests[1].header("X-Ambient") == "asked for"


def _marked(index: int) -> tuple[list[Message], dict[str, Any]]:
    return [Message.user(f"call {index}")], {"extra_headers": {"Authorization": f"mine-{index}", "X-Index": str(index)}}


def _every_tenth_fails(vendor: VendorCase, streamed: bool) -> Any:
    everybody = Barrier(CALLS)

    def answer(received: Received) -> Reply:
        everybody.wait(30)
        index = int(received.headers["x-index"][0])
        if index % 10 == 0:
            return vendor.error(400) if index % 20 else Reply(ending="hang_up")
        return vendor.streamed(f"{index}", "!") if streamed else vendor.whole(f"{index}!")

    return answer


def _check_isolation(server: WireServer, outcomes: list[Any]) -> None:
    assert Counter(isinstance(outcome, ProviderError) for outcome in outcomes) == {True: CALLS / 10, False: CALLS * 0.9}
    for index, outcome in enumerate(outcomes):
        assert isinstance(outcome, ProviderError) if index % 10 == 0 else outcome.content == f"{index}!"
    for received in server.requests:
        mark = received.header("X-Index")
        assert received.header("Authorization") == f"mine-{mark}"
        assert f"call {mark}".encode() in received.body
    assert len({received.header("X-Index") for received in server.requests}) == CALLS


def _caught(provider: Any, index: int, streamed: bool) -> Any:
    messages, kwargs = _marked(index)
    try:
        return run_sync(provider, messages, streamed, **kwargs)
    except ProviderError as raised:
        return raised


def test_headers_do_not_mix_between_threads(server: WireServer, vendor: VendorCase, streamed: bool) -> None:
    server.answer_with(_every_tenth_fails(vendor, streamed))
    provider = vendor.make(server.url, headers={"X-Own": "own"})
    own = provider.request_headers
    with ThreadPoolExecutor(CALLS) as pool:
        outcomes = list(pool.map(lambda index: _caught(provider, index, streamed), range(CALLS)))
    _check_isolation(server, outcomes)
    assert all(received.header("X-Own") is None for received in server.requests)
    assert provider.request_headers == own
    _next_call_is_its_own(server, vendor, provider)
    provider.close()


async def test_headers_do_not_mix_between_tasks(server: WireServer, vendor: VendorCase, streamed: bool) -> None:
    server.answer_with(_every_tenth_fails(vendor, streamed))
    provider = vendor.make(server.url, headers={"X-Own": "own"})
    own = provider.request_headers

    async def call(index: int) -> Any:
        messages, kwargs = _marked(index)
        return await run_async(provider, messages, streamed, **kwargs)

    outcomes = await asyncio.gather(*map(call, range(CALLS)), return_exceptions=True)
    _check_isolation(server, outcomes)
    assert all(received.header("X-Own") is None for received in server.requests)
    assert provider.request_headers == own
    await asyncio.to_thread(_next_call_is_its_own, server, vendor, provider)


def _next_call_is_its_own(server: WireServer, vendor: VendorCase, provider: Any) -> None:
    server.answer_with(vendor.whole())
    provider.complete(HELLO)
    assert server.requests[-1].header("Authorization") == f"Bearer {KEY}"
    assert server.requests[-1].header("X-Own") == "own"
    assert server.requests[-1].header("X-Index") is None


def test_one_provider_serves_loop_after_loop_and_threads_with_loops(server: WireServer, vendor: VendorCase) -> None:
    server.answer_with(vendor.whole())
    provider = vendor.make(server.url)

    def one_run(_index: int) -> str:
        return asyncio.run(run_async(provider, HELLO, False)).content

    assert [one_run(index) for index in range(3)] == ["hello"] * 3
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one_run, range(12))) == ["hello"] * 12
    gc.collect()  # a connection that outlived its loop would be reported here, as an error


@pytest.mark.parametrize("answer", ["busy", "broken", "hang_up"])
async def test_transient_failures_are_tried_again_with_the_same_bytes(
    server: WireServer, vendor: VendorCase, streamed: bool, answer: str
) -> None:
    good = vendor.streamed("hello") if streamed else vendor.whole("hello")
    bad = {
        "busy": vendor.error(429, "rate_limit_error", headers={"retry-after": "0.001"}),
        "broken": vendor.error(503, "overloaded_error"),
        "hang_up": Reply(ending="hang_up"),
    }[answer]
    provider = vendor.make(server.url, max_retries=2)
    headers = {"Authorization": "for this call"}
    server.answer_with(bad, bad, good)
    assert run_sync(provider, HELLO, streamed, extra_headers=headers).content == "hello"
    server.answer_with(bad, bad, good)
    assert (await run_async(provider, HELLO, streamed, extra_headers=headers)).content == "hello"
    assert len(server.requests) == 6
    assert len({received.body for received in server.requests}) == 1
    assert {received.header("Authorization") for received in server.requests} == {"for this call"}
    await provider.aclose()


async def test_a_stream_that_shows_nothing_yet_is_tried_again(server: WireServer, vendor: VendorCase) -> None:
    provider = vendor.make(server.url, max_retries=1)
    server.answer_with(vendor.broken_off(), vendor.streamed("hello"))
    assert run_sync(provider, HELLO, True).content == "hello"
    server.answer_with(vendor.broken_off(), vendor.streamed("hello"))
    assert (await run_async(provider, HELLO, True)).content == "hello"
    await provider.aclose()


async def test_a_stream_that_began_is_not_tried_again(server: WireServer, vendor: VendorCase) -> None:
    """What was shown cannot be taken back."""
    server.answer_with(vendor.broken_off("half an ans"))
    provider = vendor.make(server.url, max_retries=3)
    shown: list[StreamChunk] = []

    async def show() -> None:
        async for chunk in provider.async_stream(HELLO):
            shown.append(chunk)

    with pytest.raises(ProviderError):
        shown.extend(provider.stream(HELLO))
    with pytest.raises(ProviderError):
        await show()
    assert len(server.requests) == 2
    assert [chunk.text for chunk in shown] == ["half an ans"] * 2
    await provider.aclose()


def test_the_number_of_attempts_is_limited_and_told(server: WireServer, vendor: VendorCase) -> None:
    server.answer_with(vendor.error(500))
    provider = vendor.make(server.url, max_retries=3)
    with pytest.raises(ProviderError, match="4 attempts"):
        provider.complete(HELLO)
    assert len(server.requests) == 4


def test_a_stream_left_early_closes_its_connection(server: WireServer, vendor: VendorCase) -> None:
    server.answer_with(vendor.broken_off("again", ending="endless"))
    stream = vendor.make(server.url).stream(HELLO)
    assert next(stream).text == "again"
    stream.close()
    assert server.client_left.wait(5)


async def test_a_cancelled_stream_closes_its_connection(server: WireServer, vendor: VendorCase) -> None:
    server.answer_with(vendor.broken_off("again", ending="endless"))
    provider = vendor.make(server.url)
    began = asyncio.Event()

    async def read() -> None:
        async for _chunk in provider.async_stream(HELLO):
            began.set()

    task = asyncio.create_task(read())
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.client_left.wait, 5)


def test_what_a_reader_throws_in_comes_back_out(server: WireServer, vendor: VendorCase) -> None:
    """Only failures of the wire are translated."""
    server.answer_with(vendor.broken_off("again", ending="endless"))
    stream = vendor.make(server.url).stream(HELLO)
    assert next(stream).text == "again"
    with pytest.raises(ZeroDivisionError):
        stream.throw(ZeroDivisionError())
    assert server.client_left.wait(5)


async def test_what_a_task_throws_in_comes_back_out(server: WireServer, vendor: VendorCase) -> None:
    server.answer_with(vendor.broken_off("again", ending="endless"))
    stream = vendor.make(server.url).async_stream(HELLO)
    assert (await anext(stream)).text == "again"
    with pytest.raises(ZeroDivisionError):
        await stream.athrow(ZeroDivisionError())
    assert await asyncio.to_thread(server.client_left.wait, 5)


async def test_options_of_a_call_reach_the_body(server: WireServer, vendor: VendorCase) -> None:
    server.answer_with(vendor.whole())
    provider = vendor.make(server.url)
    provider.complete(HELLO, None, 0.0, 77, top_p=0.5, extra_body={"made_up": [1]}, seed=None, timeout=9.0)
    body = server.requests[0].json
    assert (body["max_tokens"], body["top_p"], body["made_up"]) == (77, 0.5, [1])
    assert not {"seed", "timeout", "extra_body", "stream"} & body.keys()
    await provider.async_complete(HELLO, model="another-model", stream=True)
    assert server.requests[1].json["model"] == "another-model"
    assert "stream" not in server.requests[1].json
    await provider.aclose()


def test_read_only_values_and_odd_characters_travel(server: WireServer, vendor: VendorCase) -> None:
    server.answer_with(vendor.whole())
    messages = [Message.user("price: 3 €, \U0001f600, and a lone \udcff surrogate")]
    vendor.make(server.url).complete(messages, metadata=FrozenDict({"a": "b"}), other=MappingProxyType({}))
    body = server.requests[0].body.decode("utf-8")
    assert "3 €, \U0001f600, and a lone ? surrogate" in body
    assert (server.requests[0].json["metadata"], server.requests[0].json["other"]) == ({"a": "b"}, {})


def test_what_json_cannot_carry_is_refused(server: WireServer, vendor: VendorCase) -> None:
    with pytest.raises(MisuseError, match="cannot carry a object"):
        vendor.make(server.url).complete(HELLO, metadata=object())
    assert not server.requests


def test_a_bad_header_is_refused_before_anything_is_sent(server: WireServer, vendor: VendorCase) -> None:
    with pytest.raises(ConfigError, match="'X-Bad'") as caught:
        vendor.make(server.url).complete(HELLO, extra_headers={"X-Bad": "hidden\r\nX-More: 1"})
    assert "hidden" not in str(caught.value)
    assert not server.requests


@pytest.mark.parametrize("url", ["ftp://host/v1", "host:8000", "http://", "https://user:secret@host/v1"])
def test_a_bad_address_is_refused(vendor: VendorCase, url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        vendor.make(url)
    assert "secret" not in str(caught.value)


def test_redirects_are_not_followed(server: WireServer, vendor: VendorCase) -> None:
    """A header such as `x-api-key` would follow them to any host."""
    with WireServer() as elsewhere:
        server.answer_with(Reply(status=307, headers={"Location": f"{elsewhere.url}/steal"}))
        with pytest.raises(ProviderError, match="redirects"):
            vendor.make(server.url, headers={"x-api-key": "secret-key"}).complete(HELLO)
        assert not elsewhere.requests


async def test_nothing_of_a_key_is_logged(
    server: WireServer, vendor: VendorCase, streamed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.answer_with(vendor.error(401, "authentication_error"))
    provider = vendor.make(server.url, headers={"X-Secret": "hush-hush-0123"})
    for extra in ({}, {"extra_headers": {"Authorization": "Bearer other-key-0123"}}):
        with pytest.raises(ProviderError):
            run_sync(provider, HELLO, streamed, **extra)
        with pytest.raises(ProviderError):
            await run_async(provider, HELLO, streamed, **extra)
    assert caplog.records
    for secret in (KEY, "hush-hush-0123", "other-key-0123"):
        assert secret not in caplog.text
        assert secret not in repr(provider)
    await provider.aclose()


def test_closing_is_not_the_end(server: WireServer, vendor: VendorCase) -> None:
    server.answer_with(vendor.whole())
    provider = vendor.make(server.url)
    provider.close()
    provider.complete(HELLO)
    provider.close()
    assert provider.complete(HELLO).content == "hello"


def test_the_connection_is_used_again(server: WireServer) -> None:
    server.answer_with(OPENAI.whole())
    provider = OPENAI.make(server.url)
    for _ in range(3):
        provider.complete(HELLO)
        assert server.open_connections == 1


def test_what_a_provider_says_of_itself(vendor: VendorCase) -> None:
    provider = vendor.make("http://127.0.0.1:9/v1", context_window=4096)
    assert (provider.model_name, provider.context_window, provider.supports_tool_use) == ("some-model", 4096, True)
    assert provider.base_url in ("http://127.0.0.1:9/v1", "http://127.0.0.1:9")
    assert vendor.make("http://127.0.0.1:9").context_window == 128_000
    assert provider.cost_usd({"input_tokens": 1000, "output_tokens": 10}) == 0.0
