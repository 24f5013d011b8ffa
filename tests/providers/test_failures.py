"""Failures on the wire become errors that say what to do next, and hold no key."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from chimera.errors import (
    ContextOverflowError,
    ProviderAuthError,
    ProviderBusyError,
    ProviderConnectionError,
    ProviderError,
    ProviderProtocolError,
)
from chimera.providers.failures import Failure, FailureReader, WireError, read_error
from chimera.types import Message
from tests.providers.vendors import KEY, OPENAI, VendorCase, run_async, run_sync
from tests.providers.wire_server import Ending, Reply, WireServer, events, stream_reply

HELLO = [Message.user("hello")]

STATUSES: list[tuple[int, str, str, type[ProviderError], str]] = [
    (401, "authentication_error", "invalid x-api-key", ProviderAuthError, "Check the key"),
    (403, "permission_error", "not for you", ProviderAuthError, "Check the key"),
    (429, "rate_limit_error", "slow down", ProviderBusyError, "try again"),
    (429, "insufficient_quota", "you exceeded your current quota", ProviderBusyError, "billing"),
    (408, "timeout", "too slow", ProviderBusyError, "try again"),
    (500, "api_error", "oops", ProviderBusyError, "try again"),
    (503, "unavailable", "later", ProviderBusyError, "try again"),
    (529, "overloaded_error", "Overloaded", ProviderBusyError, "try again"),
    (400, "context_length_exceeded", "too many tokens", ContextOverflowError, "Shorten the conversation"),
    (400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", ContextOverflowError, "Shorten"),
    (400, "exceed_context_size_error", "request exceeds the available context size", ContextOverflowError, "Shorten"),
    (400, "BadRequestError", "This model's maximum context length is 8 tokens", ContextOverflowError, "Shorten"),
    (413, "request_too_large", "Request exceeds the maximum size", ContextOverflowError, "Shorten"),
    (400, "invalid_request_error", "bad tool", ProviderError, "bad tool"),
    (402, "billing_error", "pay first", ProviderError, "pay first"),
    (404, "not_found_error", "no such model", ProviderError, "name of the model"),
    (422, "unprocessable", "no", ProviderError, "options"),
]


@pytest.mark.parametrize(("status", "kind", "message", "error", "advice"), STATUSES)
async def test_statuses(
    server: WireServer,
    vendor: VendorCase,
    status: int,
    kind: str,
    message: str,
    error: type[ProviderError],
    advice: str,
) -> None:
    server.answer_with(vendor.error(status, kind, message))
    provider = vendor.make(server.url)
    raised = [_error_of(provider, streamed=False), await _async_error_of(provider, streamed=True)]
    for one in raised:
        assert type(one) is error
        assert message in str(one)
        assert advice in str(one)
        assert str(status) in str(one)
    await provider.aclose()


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (Reply(ending="hang_up"), ProviderConnectionError, "connection"),
        (Reply((b'{"choices": [',), ending="cut"), ProviderConnectionError, "failed"),
        (Reply((b"not json",)), ProviderProtocolError, "no JSON"),
        (Reply((b"<!doctype html><p>log in</p>",), content_type="text/html"), ProviderProtocolError, "HTML"),
        (Reply((b"",)), ProviderProtocolError, "base URL"),
        (Reply((b"{}",)), ProviderProtocolError, "protocol"),
        (Reply((b"garbage",), headers={"Content-Encoding": "gzip"}), ProviderProtocolError, "compressed"),
        (Reply((b"gone",), 502, "text/plain"), ProviderBusyError, "gone"),
        (Reply((b"<html>bad gateway</html>",), 502, "text/html"), ProviderBusyError, "HTML page"),
    ],
    ids=["hang-up", "cut", "text", "html", "empty", "foreign", "gzip", "gateway", "html-gateway"],
)
async def test_answers_that_are_none(
    server: WireServer, vendor: VendorCase, streamed: bool, answer: Reply, error: type[ProviderError], text: str
) -> None:
    server.answer_with(answer)
    provider = vendor.make(server.url)
    for raised in (_error_of(provider, streamed), await _async_error_of(provider, streamed)):
        assert type(raised) is error
        assert text in str(raised)
    await provider.aclose()


async def test_a_stream_that_stalls(server: WireServer, vendor: VendorCase) -> None:
    server.answer_with(vendor.broken_off("he", ending="stall"))
    provider = vendor.make(server.url, timeout=0.2)
    for raised in (_error_of(provider, True), await _async_error_of(provider, True)):
        assert type(raised) is ProviderConnectionError
        assert "longer timeout" in str(raised)
    await provider.aclose()


async def test_a_stream_that_ends_before_its_end(server: WireServer, vendor: VendorCase) -> None:
    """The connection is closed in good order, so that only the protocol can tell that something is missing."""
    server.answer_with(vendor.broken_off("he", ending="whole"))
    provider = vendor.make(server.url)
    for raised in (_error_of(provider, True), await _async_error_of(provider, True)):
        assert type(raised) is ProviderConnectionError
        assert "broke off" in str(raised)
    await provider.aclose()


@pytest.mark.parametrize("ending", ["silent", "stall"])
async def test_a_server_that_never_answers(server: WireServer, vendor: VendorCase, ending: Ending) -> None:
    server.answer_with(Reply(ending=ending))
    provider = vendor.make(server.url)
    for raised in (_error_of(provider, False, timeout=0.2), await _async_error_of(provider, False, timeout=0.2)):
        assert type(raised) is ProviderConnectionError
        assert "silent" in str(raised)
    await provider.aclose()


def test_nobody_there(vendor: VendorCase) -> None:
    with WireServer() as gone:
        url = gone.url
    raised = _error_of(vendor.make(url, max_retries=1), False)
    assert type(raised) is ProviderConnectionError
    assert url in str(raised)
    assert "2 attempts" in str(raised)


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("overloaded_error", ProviderBusyError),
        ("rate_limit_error", ProviderBusyError),
        ("authentication_error", ProviderAuthError),
        ("invalid_request_error", ProviderError),
    ],
)
async def test_an_error_inside_of_a_stream(
    server: WireServer, vendor: VendorCase, kind: str, error: type[ProviderError]
) -> None:
    body = vendor.error_body(kind, "it went wrong")
    server.answer_with(stream_reply(*vendor.pieces("he")[:-2], events(body, named=True)))
    provider = vendor.make(server.url)
    for raised in (_error_of(provider, True), await _async_error_of(provider, True)):
        assert type(raised) is error
        assert "it went wrong" in str(raised)
    await provider.aclose()


SECRETS = ("hush-hush-0123", "other-key-0123", KEY)


@pytest.mark.parametrize("status", [400, 401, 429, 500])
async def test_what_the_service_repeats_of_our_headers_is_cut_out(
    server: WireServer, vendor: VendorCase, streamed: bool, status: int
) -> None:
    server.answer_with(vendor.error(status, "some_error", f"your headers were {', '.join(SECRETS)}"))
    provider = vendor.make(server.url, headers={"X-Secret": SECRETS[0]})
    extra = {"Authorization": f"Bearer {SECRETS[1]}"}
    raised = [
        _error_of(provider, streamed, extra_headers=extra),
        await _async_error_of(provider, streamed, extra_headers=extra),
    ]
    for one in raised:
        assert "[hidden], [hidden], [hidden]" in str(one)
        _holds_no_secret(one)
    await provider.aclose()


async def test_no_failure_drags_its_request_along(server: WireServer, vendor: VendorCase, streamed: bool) -> None:
    """The vendor's exceptions hold the request, with its headers: none may hang on ours."""
    provider = vendor.make(server.url, headers={"X-Secret": SECRETS[0]}, max_retries=1)
    for answer in (Reply(ending="hang_up"), vendor.error(401), vendor.error(500), Reply((b"{",))):
        server.answer_with(answer)
        _holds_no_secret(_error_of(provider, streamed))
        _holds_no_secret(await _async_error_of(provider, streamed))
    await provider.aclose()


def _holds_no_secret(raised: BaseException) -> None:
    assert raised.__cause__ is None
    assert raised.__context__ is None
    shown = "".join(traceback.format_exception(raised)) + repr(raised) + repr(vars(raised))
    assert not [secret for secret in SECRETS if secret in shown]


def test_a_refusal_says_whose_key_was_sent(server: WireServer, vendor: VendorCase) -> None:
    server.answer_with(vendor.error(401))
    provider = vendor.make(server.url)
    assert "API_KEY" in str(_error_of(provider, False))
    assert "interceptor" in str(_error_of(provider, False, extra_headers={"Authorization": "[redacted]"}))
    assert "No key was sent" in str(_error_of(vendor.make(server.url, api_key=None), False))


def test_a_service_may_forbid_another_attempt(server: WireServer, vendor: VendorCase) -> None:
    provider = vendor.make(server.url, max_retries=3)
    server.answer_with(vendor.error(500, headers={"x-should-retry": "false"}))
    _error_of(provider, False)
    server.answer_with(vendor.error(429, "insufficient_quota"))
    _error_of(provider, False)
    server.answer_with(vendor.error(429, headers={"retry-after": "3600"}))
    _error_of(provider, False)
    server.answer_with(vendor.error(400))
    _error_of(provider, False)
    assert len(server.requests) == 4


def test_a_long_quotation_is_cut() -> None:
    failure = _reader().read(WireError("x" * 10_000, status=400))
    assert failure is not None
    assert len(failure.text) < 500


def test_what_is_no_failure_of_the_wire_is_left_alone() -> None:
    assert _reader().read(ValueError("a bug")) is None


def test_the_system_s_own_errors_are_lost_connections() -> None:
    failure = _reader().read(ConnectionResetError("reset by peer"))
    assert failure is not None
    assert failure.kind is ProviderConnectionError


def test_an_error_tells_how_often_it_was_tried() -> None:
    failure = Failure(ProviderBusyError, "busy.")
    assert str(failure.error(1)) == "busy."
    assert str(failure.error(3)) == "busy. (3 attempts were made.)"


@pytest.mark.parametrize(
    ("body", "status", "code", "text"),
    [
        ({"error": {"message": "m", "type": "t", "code": "c"}}, None, "c t", "m"),
        ({"message": "m", "code": 404}, 404, "", "m"),
        ({"error": {"code": "503", "message": "m"}}, 503, "503", "m"),
        ({"error": {"code": 7, "message": "m"}}, None, "", "m"),
        ({"error": "just text"}, None, "", "just text"),
        ({"detail": "d"}, None, "", "d"),
        ({"detail": [{"msg": "a"}, {"msg": "b"}]}, None, "", "a; b"),
        ('{"error": {"message": "m"}}', None, "", "m"),
        ("plain", None, "", "plain"),
        ("<html>", None, "", "an HTML page"),
        (None, None, "", ""),
        ([], None, "", ""),
        ({}, None, "", ""),
        ({"error": {}}, None, "", ""),
        ({"error": {"message": {"deep": 1}}}, None, "", ""),
    ],
)
def test_shapes_of_error_bodies(body: object, status: int | None, code: str, text: str) -> None:
    assert read_error(body) == (status, code, text)


def _reader() -> FailureReader:
    return FailureReader("the service", "some-model", "set a key")


def _error_of(provider: Any, streamed: bool, **kwargs: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        run_sync(provider, HELLO, streamed, **kwargs)
    return caught.value


async def _async_error_of(provider: Any, streamed: bool, **kwargs: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await run_async(provider, HELLO, streamed, **kwargs)
    return caught.value


def test_statuses_are_those_of_a_vendor_too() -> None:
    """Guards the table above: it must hold every kind of provider error that a status can become."""
    kinds = {kind for _, _, _, kind, _ in STATUSES}
    assert kinds == {ProviderAuthError, ProviderBusyError, ContextOverflowError, ProviderError}
    assert OPENAI.error(400).status == 400
