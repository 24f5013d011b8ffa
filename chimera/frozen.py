"""Deep read-only JSON values, and plain copies of them.

A conversation is shared by many readers: interceptors, policies, event subscribers, providers. Sharing is safe because
the containers inside a `Message` cannot be edited in place; whoever wants another value builds one and says so.
"""

from __future__ import annotations

import copy
from typing import Any, NoReturn

_ATOMS = frozenset({str, int, float, bool, type(None), bytes})
_READ_ONLY = "this value belongs to the conversation and is read-only; build a new one and return it in a replacement"


def _refuse(*_args: object, **_kwargs: object) -> NoReturn:
    raise TypeError(_READ_ONLY)


class FrozenDict(dict[str, Any]):
    """A dict that equals, prints and serialises like any other and refuses edits. Made by `freeze`."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return (dict, (dict(self),))

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, _memo: object) -> dict[str, Any]:
        plain: dict[str, Any] = thaw(self)
        return plain


class FrozenList(list[Any]):
    """A list that equals, prints and serialises like any other and refuses edits. Made by `freeze`."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = remove = pop = clear = sort = reverse = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return (list, (list(self),))

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, _memo: object) -> list[Any]:
        plain: list[Any] = thaw(self)
        return plain


def freeze(value: Any) -> Any:
    """Return a read-only version of `value`: containers at every depth are copied, other values are kept."""
    kind = type(value)
    if kind in _ATOMS or kind is FrozenDict or kind is FrozenList:
        return value
    if isinstance(value, dict):
        return FrozenDict((key, item if type(item) in _ATOMS else freeze(item)) for key, item in value.items())
    if isinstance(value, list):
        return FrozenList(item if type(item) in _ATOMS else freeze(item) for item in value)
    if type(value) is tuple:
        return tuple(freeze(item) for item in value)
    return _own(value)


def thaw(value: Any) -> Any:
    """Return a plain, independent copy of `value` that its receiver may edit."""
    if type(value) in _ATOMS:
        return value
    if isinstance(value, dict):
        return {key: item if type(item) in _ATOMS else thaw(item) for key, item in value.items()}
    if isinstance(value, list):
        return [item if type(item) in _ATOMS else thaw(item) for item in value]
    if type(value) is tuple:
        return tuple(thaw(item) for item in value)
    return _own(value)


def _own(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:  # an open file or a lock cannot be copied; such a value is the caller's own to share
        return value
