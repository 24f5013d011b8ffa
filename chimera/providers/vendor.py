"""The vendors' SDKs: loaded when they are used, and made to carry no credential of their own."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from chimera.errors import MissingExtraError
from chimera.providers.headers import ambient_headers

__all__ = ["Vendor"]

_CONNECT_TIMEOUT = 10.0
_NO_KEY = "none"


@dataclass(frozen=True, slots=True)
class Vendor:
    """Where a vendor's SDK is, and what its wire looks like.

    `load` imports the SDK; `extra` is the name of its package and of the extra that installs it. `ambient` is the
    environment variable from which the SDK takes headers by itself; `own_headers` are the ones that it would add and
    that are the caller's to decide; `key_help` says how a person gives the key.
    """

    extra: str
    load: Callable[[], Any]
    client: str
    path: str
    base_url: str
    ambient: str
    own_headers: tuple[str, ...]
    key_help: str

    def check(self) -> None:
        """Raise `MissingExtraError` when the SDK is not installed; costs no import."""
        try:
            spec = find_spec(self.extra)
        except ValueError:
            spec = None
        if spec is None:
            raise self._missing()

    def sdk(self) -> Any:
        try:
            return self.load()
        except ImportError:
            raise self._missing() from None

    def _missing(self) -> MissingExtraError:
        return MissingExtraError(f"a model behind the protocol of {self.extra}", self.extra)

    def new_client(self, base_url: str, prefix: str) -> Any:
        """Make a client of the SDK; `prefix` is empty or `Async`."""
        sdk = self.sdk()
        # A redirect would carry keys in headers of their own name to wherever it leads.
        http_client = getattr(sdk, f"Default{prefix}HttpxClient")(follow_redirects=False)
        make = getattr(sdk, f"{prefix}{self.client}")
        return make(api_key=_NO_KEY, base_url=base_url, max_retries=0, http_client=http_client)

    def request(self, prefix: str, content: bytes, headers: Mapping[str, str], timeout: float) -> dict[str, Any]:
        """Return the arguments of the client's `post` for a body of JSON with exactly these headers of the caller's."""
        sdk = self.sdk()
        given = {name.lower() for name in headers}
        left_out = (*self.own_headers, *ambient_headers(os.environ.get(self.ambient, "")))
        omitted = dict.fromkeys((name for name in left_out if name.lower() not in given), sdk.Omit())
        return {
            "content": content,
            "cast_to": object,
            # For the SDK: hand over the response before its body was read. The protocol's own flag is in the content.
            "stream": True,
            "stream_cls": getattr(sdk, f"{prefix}Stream")[object],
            "options": {
                "headers": {**omitted, **headers},
                "timeout": sdk.Timeout(timeout, connect=min(timeout, _CONNECT_TIMEOUT)),
            },
        }
