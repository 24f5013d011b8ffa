"""Checking the options of packs when they are made, not when they are first needed."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["names"]


def names(value: Iterable[str], option: str) -> tuple[str, ...]:
    """Return `value` without repetitions. Raises `ValueError` for a bare text and for what is no name."""
    if isinstance(value, str):
        raise ValueError(f"{option} takes a list of names, not the text {value!r}")
    found = tuple(value)
    for name in found:
        if not isinstance(name, str) or not name.strip() or name != name.strip():
            raise ValueError(f"{option} holds {name!r}, which is no name")
    return tuple(dict.fromkeys(found))
