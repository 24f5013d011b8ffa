"""Scrubbing values of any shape without touching them: what holds no secret comes back as the same object."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from enum import Enum
from typing import Any

from chimera.frozen import FrozenDict, FrozenList
from chimera.types import PendingApproval

__all__ = ["Scrub", "scrub_fields", "scrub_value"]

Scrub = Callable[[str], str]
_PLAIN = (int, float, complex, bool, type(None), Enum, date, time, timedelta, type)


def scrub_value(value: Any, scrub: Scrub) -> Any:
    """Return `value` with `scrub` applied to every text in it, at any depth, keys of dicts included.

    Containers keep their type and dataclasses are rebuilt; none is edited. An object of any other kind is replaced by
    its scrubbed text when its text holds a secret. The very same object comes back where nothing changed.
    Two keys that become equal are told apart by a number. Raises `RecursionError` for a value that holds itself.
    """
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Mapping):
        return _mapping(value, scrub)
    if isinstance(value, list | tuple | set | frozenset):
        return _collection(value, scrub)
    if isinstance(value, bytes | bytearray):
        return _bytes(value, scrub)
    if isinstance(value, PendingApproval):
        return _approval(value, scrub)
    if is_dataclass(value):
        return scrub_fields(value, scrub)
    return _opaque(value, scrub)


def scrub_fields(value: Any, scrub: Scrub, skip: frozenset[str] = frozenset()) -> Any:
    """`scrub_value` for the fields of a dataclass, those named in `skip` left as they are."""
    changed = {}
    for item in fields(value):
        if item.name not in skip:
            before = getattr(value, item.name, None)
            after = scrub_value(before, scrub)
            if after is not before:
                changed[item.name] = after
    if not changed:
        return value
    clean = copy.copy(value)
    for name, after in changed.items():
        object.__setattr__(clean, name, after)  # neither a frozen class nor its constructor stands in the way
    return clean


def _mapping(value: Mapping[Any, Any], scrub: Scrub) -> Any:
    clean: dict[Any, Any] = {}
    changed = False
    for key, item in value.items():
        new_key, new_item = scrub_value(key, scrub), scrub_value(item, scrub)
        changed = changed or new_key is not key or new_item is not item
        clean[_free(new_key, clean)] = new_item
    if not changed:
        return value
    return FrozenDict(clean) if type(value) is FrozenDict else clean


def _free(key: Any, taken: Mapping[Any, Any]) -> Any:
    if key not in taken:
        return key
    number = 2
    while (numbered := f"{key} ({number})") in taken:
        number += 1
    return numbered


def _collection(value: Any, scrub: Scrub) -> Any:
    clean = [scrub_value(item, scrub) for item in value]
    if all(after is before for after, before in zip(clean, value, strict=True)):
        return value
    return _rebuilt(value, clean)


def _rebuilt(value: Any, items: Iterable[Any]) -> Any:
    if isinstance(value, tuple):
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if type(value) is FrozenList:
        return FrozenList(items)
    plain = next(kind for kind in (list, frozenset, set) if isinstance(value, kind))
    return plain(items)


def _bytes(value: bytes | bytearray, scrub: Scrub) -> bytes | bytearray:
    text = value.decode("latin-1")  # maps every byte to one character and back
    clean = scrub(text)
    return value if clean is text else type(value)(clean.encode("latin-1", "replace"))


def _opaque(value: Any, scrub: Scrub) -> Any:
    try:
        texts = (str(value), repr(value))
    except Exception:  # an object that cannot say what it is cannot show a secret either
        return value
    for text in texts:
        clean = scrub(text)
        if clean is not text:
            return clean
    return value


class _ScrubbedApproval(PendingApproval):
    """Shows a question without its secrets; what is decided about it is decided about the question itself."""

    __slots__ = ("_asked",)
    _asked: PendingApproval

    @property
    def decided(self) -> bool:
        return self._asked.decided

    @property
    def approved(self) -> bool:
        return self._asked.approved

    @property
    def message(self) -> str:
        return self._asked.message

    def approve(self) -> None:
        self._asked.approve()

    def deny(self, message: str = "") -> None:
        self._asked.deny(message)


def _approval(value: PendingApproval, scrub: Scrub) -> PendingApproval:
    shown = (value.tool_call, value.tool_name, value.arguments, value.reason)
    clean = scrub_value(shown, scrub)
    if clean is shown:
        return value
    scrubbed = _ScrubbedApproval(*clean)
    scrubbed._asked = value
    return scrubbed
