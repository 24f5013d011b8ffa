"""The headers of one HTTP call: checked, case-insensitive by name, and never shown by accident."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from chimera.errors import ConfigError

__all__ = ["HeaderValue", "ambient_headers", "checked_headers", "secrets_in"]

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e]*")
_SHORTEST_SECRET = 4


class HeaderValue(str):
    """A header value that does not print itself: vendor libraries log what they are about to send."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'[hidden]'"


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return `headers` as one value per name, whatever the spelling of the names: the last one given wins.

    Two spellings of one name would both be sent, and with them the value that the later one was to replace.
    Raises `ConfigError` for what HTTP cannot carry; its text names the header and never shows the value.
    """
    if not isinstance(headers, Mapping):
        raise ConfigError(f"headers must be a mapping of names to texts, not {type(headers).__name__}")
    checked: dict[str, tuple[str, str]] = {}
    for name, value in headers.items():
        _check(name, value)
        checked[name.lower()] = (name, HeaderValue(value.strip()))
    return dict(checked.values())


def _check(name: object, value: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError("a header name may hold only letters, digits and !#$%&'*+.^_`|~-")
    if not isinstance(value, str) or not _VALUE.fullmatch(value.strip()):
        raise ConfigError(f"the value of the header {name!r} must be a text of printable ASCII characters on one line")


def ambient_headers(text: str) -> dict[str, str]:
    """Read `Name: value` lines, the form in which both vendors' SDKs take headers from the environment."""
    pairs = (line.partition(":") for line in text.splitlines())
    return checked_headers({name.strip(): value.strip() for name, colon, value in pairs if colon})


def secrets_in(*header_sets: Mapping[str, str]) -> tuple[str, ...]:
    """List what must not appear in a text about a call with these headers, longest first.

    That is every value, and what follows the scheme in values such as `Bearer <key>`.
    """
    found = {part for headers in header_sets for value in headers.values() for part in _parts(value)}
    return tuple(sorted(found, key=lambda part: (-len(part), part)))


def _parts(value: str) -> Iterable[str]:
    whole = str(value)
    return (part for part in (whole, whole.partition(" ")[2].strip()) if len(part) >= _SHORTEST_SECRET)
