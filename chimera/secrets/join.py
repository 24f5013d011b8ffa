"""Putting together what the secrets of a text left of it, without a step for each of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

__all__ = ["Clean", "join_parts"]

Clean = Callable[[str, Collection[str]], Mapping[str, str]]


def join_parts(parts: list[Any], leads: Collection[str], replacement: str, clean: Clean) -> str:
    """Return the clean text for `parts`, as `Compiled.divide` returns them.

    `leads` are the beginnings of what each group holds. `clean` is called with such a beginning and the different texts
    that go on from there; it returns, by what goes on, the clean text of those leads that do not stay as they are.
    """
    step = len(leads) + 1
    columns = [parts[:-1:step]]
    for number, begun in enumerate(leads, 1):
        column = parts[number::step]
        held = set(column)
        held.discard(None)
        if held:
            whole: dict[str | None, str] = dict(zip(held, map(begun.__add__, held), strict=True))
            whole.update(clean(begun, held))
            whole[None] = ""
            columns.append([*map(whole.__getitem__, column)])
    columns.append([replacement] * len(columns[0]))
    joined = [parts[-1]] * (len(columns) * len(columns[0]) + 1)
    for number, column in enumerate(columns):
        joined[number : -1 : len(columns)] = column
    return "".join(joined)
