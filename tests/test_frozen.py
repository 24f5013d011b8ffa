"""Values that many read and nobody edits, and copies that belong to their receiver."""

from __future__ import annotations

import copy
import enum
import json
import operator
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.frozen import MAX_DEPTH, FrozenDict, FrozenList, freeze, freeze_json, thaw

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_a_frozen_value_equals_prints_and_serialises_like_the_plain_one(value: Any) -> None:
    for frozen in (freeze(value), freeze_json(value)):
        assert frozen == value
        assert repr(frozen) == repr(value)
        assert json.dumps(frozen) == json.dumps(value)
        assert thaw(frozen) == value


@given(values)
def test_nothing_in_it_can_be_edited_and_everything_in_a_copy_can(value: Any) -> None:
    original = copy.deepcopy(value)
    frozen = freeze(value)
    spoil(value)
    assert frozen == original
    assert all(type(part) in (FrozenDict, FrozenList) for part in parts(frozen))
    for plain in (thaw(frozen), copy.deepcopy(frozen)):
        assert plain == original
        assert plain is frozen or all(type(part) in (dict, list) for part in parts(plain))
        spoil(plain)
    assert frozen == original


def parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value, *(part for item in value.values() for part in parts(item))]
    if isinstance(value, list):
        return [value, *(part for item in value for part in parts(item))]
    return []


def spoil(value: Any) -> None:
    for part in parts(value):
        part.clear()


EDITS: list[Callable[[Any], Any]] = [
    lambda d: operator.setitem(d["dict"], "a", 2),
    lambda d: operator.delitem(d["dict"], "a"),
    lambda d: d["dict"].__ior__({"b": 1}),
    lambda d: d["dict"].update(b=1),
    lambda d: d["dict"].pop("a"),
    lambda d: d["dict"].popitem(),
    lambda d: d["dict"].setdefault("b", 1),
    lambda d: d["dict"].clear(),
    lambda d: operator.setitem(d["list"], 0, 2),
    lambda d: operator.delitem(d["list"], 0),
    lambda d: d["list"].__iadd__([1]),
    lambda d: d["list"].__imul__(2),
    lambda d: d["list"].append(1),
    lambda d: d["list"].extend([1]),
    lambda d: d["list"].insert(0, 1),
    lambda d: d["list"].remove(1),
    lambda d: d["list"].pop(),
    lambda d: d["list"].clear(),
    lambda d: d["list"].sort(),
    lambda d: d["list"].reverse(),
]


@pytest.mark.parametrize("edit", EDITS)
def test_every_edit_is_refused_and_says_what_to_do(edit: Callable[[Any], Any]) -> None:
    plain = {"dict": {"a": 1}, "list": [1, 2]}
    frozen = freeze(plain)
    with pytest.raises(TypeError, match="read-only; build a new one"):
        edit(frozen)
    assert frozen == plain


def test_no_editing_method_was_forgotten() -> None:
    """Whatever a list or a dict can do and a tuple or a mapping cannot is refused, or makes something new."""
    harmless = {"copy", "fromkeys", "__init__", "__or__", "__ror__", "__reversed__", "__class_getitem__"}
    for kind, base, like in ((FrozenDict, dict, dict), (FrozenList, list, tuple)):
        editing = {name for name in dir(base) if name not in dir(like if like is tuple else object)} - harmless
        if base is dict:
            editing -= {"get", "items", "keys", "values", "__contains__", "__getitem__", "__iter__", "__len__"}
        own = {name for name in editing if name in vars(kind)}
        assert editing == own, base


def test_making_something_new_of_it_is_fine() -> None:
    frozen = freeze({"a": [1], "b": 2})
    assert frozen | {"b": 3} == {"a": [1], "b": 3}
    assert {**frozen, "b": 3} == {"a": [1], "b": 3}
    assert frozen["a"] + [2] == [1, 2]
    assert type(copy.copy(frozen)) is dict
    assert type(copy.copy(frozen["a"])) is list
    assert frozen.copy() == frozen
    for value, kind in ((frozen, dict), (frozen["a"], list)):
        make, arguments = value.__reduce__()
        assert type(make(*arguments)) is kind, "what other programs are sent is plain"


def test_freezing_twice_is_freezing_once() -> None:
    frozen = freeze({"a": [1, (2, [3])]})
    assert freeze(frozen) is frozen
    assert type(frozen["a"][1][1]) is FrozenList


def test_values_of_other_kinds_are_copied_where_they_can_be() -> None:
    kept = threading.Lock()
    mutable = {1, 2}
    frozen = freeze({"set": mutable, "lock": kept})
    mutable.add(3)
    assert frozen["set"] == {1, 2}
    assert frozen["lock"] is kept
    assert thaw(frozen)["lock"] is kept


def nest(depth: int, *, kind: str = "dict") -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value} if kind == "dict" else [value] if kind == "list" else (value,)
    return value


@pytest.mark.parametrize("kind", ["dict", "list", "tuple"])
@pytest.mark.parametrize("seal", [freeze, freeze_json])
def test_nesting_has_a_limit(kind: str, seal: Any) -> None:
    seal(nest(MAX_DEPTH, kind=kind))
    for depth in (MAX_DEPTH + 1, 50_000):
        with pytest.raises(ValueError, match=f"nests deeper than {MAX_DEPTH} levels"):
            seal(nest(depth, kind=kind))


def test_what_holds_itself_is_no_value_and_copying_it_still_ends() -> None:
    endless: list[Any] = [1]
    endless.append(endless)
    for seal in (freeze, freeze_json):
        with pytest.raises(ValueError, match="nests deeper"):
            seal(endless)
    copied = thaw(endless)
    assert copied is not endless
    assert copied[1] is copied


class Word(enum.StrEnum):
    A = "a"


class Number(enum.IntEnum):
    ONE = 1


class Share(float):
    pass


class Fields(dict[str, Any]):
    pass


def test_subclasses_of_json_types_become_plain() -> None:
    value = Fields({Word.A: [Word.A, Number.ONE, Share(0.5), True, (1, 2)]})
    frozen = freeze_json(value)
    assert frozen == {"a": ["a", 1, 0.5, True, [1, 2]]}
    assert [type(item) for item in frozen["a"]] == [str, int, float, bool, FrozenList]
    assert [type(key) for key in frozen] == [str]


@pytest.mark.parametrize("junk", [{1}, object(), b"bytes", 1j, print, {"a": [object()]}, {1: "a"}, {None: 1}])
def test_what_json_does_not_know(junk: Any) -> None:
    with pytest.raises(TypeError, match=r"is no JSON value|has texts for keys"):
        freeze_json(junk)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf"), Share("nan")])
def test_numbers_that_json_does_not_know(number: float) -> None:
    with pytest.raises(ValueError, match="is no JSON number"):
        freeze_json({"a": [number]})
