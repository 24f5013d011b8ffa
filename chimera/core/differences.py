"""What a replacement changed, small enough to be kept: observers are told of differences, not of conversations."""

from __future__ import annotations

from dataclasses import fields
from itertools import compress, count
from operator import is_not
from typing import Any

from chimera.core.decisions import ProviderRequest
from chimera.frozen import freeze
from chimera.types import Message

__all__ = ["difference"]

_AT_MOST = 20
"""Messages that are told of; a conversation is handed to observers with every call, and must not be kept every time."""


def difference(before: Any, after: Any) -> tuple[Any, Any]:
    """Return what differs, as it was and as it is, in values that cannot be edited: they are still in use.

    Calls and results are returned whole. Of message lists the newest messages that are in one of them only are
    returned, as tuples; of envelopes the fields that differ, as dicts.
    """
    if isinstance(before, list):
        return _messages(before, after)
    if isinstance(before, ProviderRequest):
        return _envelopes(before, after)
    return before.sealed(), after.sealed()


def _messages(before: list[Message], after: list[Message]) -> tuple[Any, Any]:
    if len(before) == len(after):
        places = list(compress(count(), map(is_not, before, after)))[-_AT_MOST:]
        return tuple(before[place] for place in places), tuple(after[place] for place in places)
    kept, had = set(map(id, after)), set(map(id, before))
    gone = [message for message in before if id(message) not in kept]
    new = [message for message in after if id(message) not in had]
    return tuple(gone[-_AT_MOST:]), tuple(new[-_AT_MOST:])


def _envelopes(before: ProviderRequest, after: ProviderRequest) -> tuple[Any, Any]:
    was: dict[str, Any] = {}
    became: dict[str, Any] = {}
    for item in fields(ProviderRequest):
        one, other = getattr(before, item.name), getattr(after, item.name)
        if item.name == "messages":
            one, other = _messages(one, other)
        if one != other:
            was[item.name], became[item.name] = one, other
    return freeze(was), freeze(became)
