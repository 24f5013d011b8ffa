"""From what went wrong on the wire to errors that say what to do next, and hold no key.

The vendors' exceptions keep the request, headers and all; so they are read here and dropped, never chained.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chimera.errors import (
    ContextOverflowError,
    ProviderAuthError,
    ProviderBusyError,
    ProviderConnectionError,
    ProviderError,
    ProviderProtocolError,
)
from chimera.providers.reading import as_items, as_mapping, as_text

__all__ = ["Failure", "FailureReader", "WireError", "read_error"]

_LONGEST_QUOTE = 300
_TRANSPORT_MODULES = ("httpx", "httpcore", "anyio")
_OVERFLOW = re.compile(
    r"context[_ -]?(length|window|size)|maximum context|prompt is too long|input is too long|max_model_len"
    r"|request_too_large",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(r"insufficient_quota|insufficient[_ ]balance|billing|credit balance", re.IGNORECASE)
_BUSY = re.compile(r"rate.?limit|overloaded|unavailable|timeout_error|api_error|server_error", re.IGNORECASE)
_AUTH = re.compile(r"authentication|invalid_api_key|unauthorized|permission", re.IGNORECASE)


class WireError(ProviderError):
    """The answer itself is the failure: it holds an error object, is no answer of the protocol, or breaks off.

    It never leaves the providers. `kind` is the error that it becomes; None leaves that to `status` and `code`.
    """

    def __init__(self, text: str, kind: type[ProviderError] | None = None, status: int | None = None, code: str = ""):
        super().__init__(text)
        self.text, self.kind, self.status, self.code = text, kind, status, code

    @classmethod
    def from_body(cls, body: object) -> WireError:
        """Read the error object of an answer, in any of the shapes that services use."""
        status, code, text = read_error(body)
        return cls(text, status=status, code=code)


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt: what it becomes when no further one is made, and whether one is worth making.

    `retry_after` is the number of seconds that the service asked for.
    """

    kind: type[ProviderError]
    text: str
    retryable: bool = False
    retry_after: float | None = None

    def error(self, attempts: int) -> ProviderError:
        return self.kind(self.text if attempts == 1 else f"{self.text} ({attempts} attempts were made.)")


@dataclass(frozen=True, slots=True)
class FailureReader:
    """Reads the exceptions of one call. `secrets` are cut out of whatever the outside world said.

    `key_help` says how to give the key; `had_key` and `replaced` say whether one was sent, and whether the headers of
    the call were other than the provider's own.
    """

    service: str
    model: str
    key_help: str
    secrets: tuple[str, ...] = ()
    had_key: bool = True
    replaced: bool = False

    def read(self, raised: Exception) -> Failure | None:
        """Return the failure that `raised` stands for, or None when it is none of the wire."""
        names = {base.__name__ for base in type(raised).__mro__}
        if isinstance(raised, WireError):
            return self._in_answer(raised)
        if "APIStatusError" in names:
            return self._status(raised)
        if "APIConnectionError" in names or _of_transport(raised):
            return self._connection(raised, names)
        return None

    def _status(self, raised: Any) -> Failure:
        headers = raised.response.headers
        _, code, text = read_error(raised.body)
        failure = self._judge(raised.status_code, code, text)
        retryable = failure.retryable and headers.get("x-should-retry") != "false"
        return Failure(failure.kind, failure.text, retryable, _retry_after(headers))

    def _in_answer(self, raised: WireError) -> Failure:
        if raised.kind is None:
            return self._judge(raised.status, raised.code, raised.text)
        said = self._quote(raised.text)
        if raised.kind is ProviderConnectionError:
            return Failure(raised.kind, f"The answer of {self.service} broke off{said}. Try again.", True)
        advice = "Check that the base URL is that of the API (most end in /v1) and that no proxy answers in its place."
        return Failure(raised.kind, f"{self.service} did not answer in its protocol{said}. {advice}")

    def _connection(self, raised: Exception, names: set[str]) -> Failure:
        if "DecodingError" in names:
            return self._in_answer(WireError("the compressed body cannot be read", ProviderProtocolError))
        if names & {"APITimeoutError", "TimeoutException"}:
            text = f"{self.service} was silent for too long. Try again, or give the provider a longer timeout."
            return Failure(ProviderConnectionError, text, True)
        said = self._quote(str(raised.__cause__ or raised))
        advice = "Check that the address is right, that the server runs, and the network."
        return Failure(ProviderConnectionError, f"The connection to {self.service} failed{said}. {advice}", True)

    def _judge(self, status: int | None, code: str, text: str) -> Failure:
        where = self.service if status is None else f"{self.service} (HTTP {status})"
        said = self._quote(text)
        kind = _kind_of(status, code, text)
        if kind is ProviderAuthError:
            return Failure(kind, f"{where} refused access{said}. {self._auth_advice()}")
        if kind is ContextOverflowError:
            advice = "Shorten the conversation, or use a model with a larger context window."
            return Failure(kind, f"{where} says that the conversation is too long for {self.model}{said}. {advice}")
        if kind is ProviderBusyError:
            return _busy(where, said, code, text)
        return Failure(kind, f"{where} refused the request{said}. {_refusal_advice(status)}")

    def _auth_advice(self) -> str:
        if self.replaced:
            return "The headers of this call were replaced before it was sent, by an interceptor for example."
        return f"{'Check the key' if self.had_key else 'No key was sent'}: {self.key_help}."

    def _quote(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "[hidden]")
        text = " ".join(text.split()).rstrip(".")
        if not text:
            return ""
        return f": {text}" if len(text) <= _LONGEST_QUOTE else f": {text[:_LONGEST_QUOTE]}..."


def _busy(where: str, said: str, code: str, text: str) -> Failure:
    if _NO_CREDIT.search(code) or _NO_CREDIT.search(text):
        return Failure(ProviderBusyError, f"{where} says that the account has no credit left{said}. Check its billing.")
    advice = "Wait a little and try again, or use another model."
    return Failure(ProviderBusyError, f"{where} is overloaded or limits the rate{said}. {advice}", True)


def _refusal_advice(status: int | None) -> str:
    if status == 404:
        return "Check the name of the model and the base URL (most end in /v1)."
    if status is not None and 300 <= status < 400:
        return "It redirects elsewhere, and keys are not sent after a redirect: set the base URL to the new address."
    return "Check the model, its options and what was sent."


def _kind_of(status: int | None, code: str, text: str) -> type[ProviderError]:
    if status == 429:
        return ProviderBusyError
    if status == 413 or _OVERFLOW.search(code) or _OVERFLOW.search(text):
        return ContextOverflowError
    if status in (401, 403):
        return ProviderAuthError
    if status is not None:
        return ProviderBusyError if status == 408 or status >= 500 else ProviderError
    if _AUTH.search(code):
        return ProviderAuthError
    return ProviderBusyError if _BUSY.search(code) else ProviderError


def read_error(body: object) -> tuple[int | None, str, str]:
    """Return the HTTP status (where the body names one), the code and the text of an error body."""
    outer = as_mapping(_decoded(body))
    inner = outer.get("error", outer)
    fields = as_mapping(inner)
    if not fields:
        return None, "", _plain(inner or body)
    code = fields.get("code")
    status = int(code) if isinstance(code, int | str) and re.fullmatch("[1-5][0-9][0-9]", str(code)) else None
    names = " ".join(as_text(item) for item in (code, fields.get("type")) if as_text(item))
    return status, names, as_text(fields.get("message")) or _detail(fields)


def _decoded(body: object) -> object:
    if not isinstance(body, str):
        return body
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body


def _plain(body: object) -> str:
    text = as_text(body).strip()
    return "an HTML page" if text.startswith("<") else text


def _detail(fields: Mapping[str, Any]) -> str:
    detail = fields.get("detail")
    return as_text(detail) or "; ".join(as_text(item.get("msg")) for item in as_items(detail))


def _of_transport(raised: Exception) -> bool:
    if isinstance(raised, OSError):
        return True
    return any(base.__module__.startswith(_TRANSPORT_MODULES) for base in type(raised).__mro__)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    return None
