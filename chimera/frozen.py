"""Deep read-only JSON values, and plain copies of them.

A conversation is shared by many readers: interceptors, policies, event subscribers, providers. Sharing is safe because
the containers inside a `Message` cannot be edited in place; whoever wants another value builds one and says so.
"""

from __future__ import annotations

import copy
from dataclasses import MISSING, fields
from math import isfinite
from typing import Any, NoReturn, TypeVar

__all__ = [
    "MAX_DEPTH",
    "FrozenDict",
    "FrozenList",
    "class_name",
    "freeze",
    "freeze_json",
    "quick_init",
    "safe_text",
    "thaw",
]

C = TypeVar("C", bound=type)

MAX_DEPTH = 100
"""How deep containers may nest in a read-only value: deeper ones could not be copied wherever a copy is needed."""

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


def quick_init(cls: C) -> C:
    """Give a dataclass with `frozen=True, slots=True` an `__init__` of the same meaning that costs half the time.

    It sets a field through the descriptor of its slot, where the generated one looks for `object.__setattr__` each
    time. The values of a conversation are made several times in every step.
    """
    names: dict[str, Any] = {"MISSING": MISSING}
    parameters, body = ["self"], []
    for item in fields(cls):
        name, default = item.name, ""
        names[f"set_{name}"] = getattr(cls, name).__set__
        if item.default_factory is not MISSING:
            names[f"new_{name}"] = item.default_factory
            default = "=MISSING"
            body.append(f"set_{name}(self, new_{name}() if {name} is MISSING else {name})")
        else:
            if item.default is not MISSING:
                names[f"default_{name}"] = item.default
                default = f"=default_{name}"
            body.append(f"set_{name}(self, {name})")
        parameters.append(name + default)
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(body), names)
    init = names["__init__"]
    init.__qualname__, init.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    init.__annotations__ = {item.name: item.type for item in fields(cls)} | {"return": None}
    cls.__init__ = init  # type: ignore[misc]
    return cls


def freeze(value: Any) -> Any:
    """Return a read-only version of `value`: containers at every depth are copied, other values are kept.

    Raises `ValueError` for containers that nest deeper than `MAX_DEPTH`, or in themselves.
    """
    return _frozen(value, MAX_DEPTH)


def freeze_json(value: Any) -> Any:
    """Return a read-only version of a JSON value; tuples become lists, subclasses of the JSON types become plain.

    Raises `TypeError` for anything that JSON does not know and `ValueError` for numbers that are not finite and for
    containers that nest deeper than `MAX_DEPTH`.
    """
    return _frozen_json(value, MAX_DEPTH)


def thaw(value: Any) -> Any:
    """Return a plain, independent copy of `value` that its receiver may edit."""
    try:
        return _thawed(value)
    except RecursionError:  # it holds itself
        return _own(value)


def _frozen(value: Any, room: int) -> Any:
    kind = type(value)
    if kind in _ATOMS or kind is FrozenDict or kind is FrozenList:
        return value
    if not isinstance(value, dict | list) and kind is not tuple:
        return _own(value)
    inside = _deeper(room)
    if isinstance(value, dict):
        return FrozenDict({key: item if type(item) in _ATOMS else _frozen(item, inside) for key, item in value.items()})
    items = [item if type(item) in _ATOMS else _frozen(item, inside) for item in value]
    return tuple(items) if kind is tuple else FrozenList(items)


def _frozen_json(value: Any, room: int) -> Any:
    if type(value) in _EXACT:
        return value
    if isinstance(value, dict):
        inside = _deeper(room)
        if _TEXT.issuperset(map(type, value)) and _EXACT.issuperset(map(type, value.values())):
            return FrozenDict(value)
        return FrozenDict({_key(key): _frozen_json(item, inside) for key, item in value.items()})
    if isinstance(value, list | tuple):
        inside = _deeper(room)
        return FrozenList([_frozen_json(item, inside) for item in value])
    if isinstance(value, float) and isfinite(value):
        return float.__float__(value)
    for kind, plain in _PLAIN:
        if isinstance(value, kind):
            return plain(value)
    if isinstance(value, float):
        raise ValueError(f"{value} is no JSON number")
    raise TypeError(f"{type(value).__name__} is no JSON value")


_TEXT = frozenset({str})
_EXACT = frozenset({str, int, bool, type(None)})
_PLAIN: tuple[tuple[type, Any], ...] = ((str, str.__str__), (int, int.__int__))


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a JSON object has texts for keys, not {type(key).__name__}")
    return str.__str__(key)


def _deeper(room: int) -> int:
    if room <= 0:
        raise ValueError(f"the value nests deeper than {MAX_DEPTH} levels")
    return room - 1


def _thawed(value: Any) -> Any:
    if isinstance(value, dict):
        plain = dict(value)
        for key, item in value.items():
            if type(item) not in _ATOMS:
                plain[key] = _thawed(item)
        return plain
    if type(value) in _ATOMS:
        return value
    if isinstance(value, list):
        return [item if type(item) in _ATOMS else _thawed(item) for item in value]
    if type(value) is tuple:
        return tuple(_thawed(item) for item in value)
    return _own(value)


def _own(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:  # an open file or a lock cannot be copied; such a value is the caller's own to share
        return value


def safe_text(value: object) -> str:
    """Return `str(value)` as a plain `str`, whatever the class of `value` does with it; a note where it has no text."""
    try:
        return str.__str__(str(value))
    except Exception:
        return f"<unprintable {class_name(value)}>"


def class_name(value: object) -> str:
    """Return the name of the class of `value`, whatever its class does when it is asked."""
    name = type.__dict__["__name__"].__get__(type(value))
    return name if type(name) is str else "object"
