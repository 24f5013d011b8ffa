"""Brace expansion as bash does it: `{a,b}`, `{1..9}`, nested and one after the other."""

from __future__ import annotations

import re
from itertools import pairwise

__all__ = ["expand"]

_MAX_CHOICES = 200
_RANGE = re.compile(r"(?a)(?:(-?\d+)\.\.(-?\d+)|([A-Za-z])\.\.([A-Za-z]))(?:\.\.-?\d+)?\Z")


def expand(text: str) -> list[str] | None:
    """Return the words that `text` stands for: itself where nothing in it expands; None when they are very many.

    Also None for `{}` next to other braces, and for braces inside what looks like a range and is none (`{..{a,b}}`):
    bash reads both in ways of its own.
    """
    if text.count("{") > _MAX_CHOICES or ("{}" in text and ("," in text or ".." in text)):
        return None
    for start, char in enumerate(text):
        end, commas = _group(text, start) if char == "{" else (0, [])
        choices = _choices(text[start + 1 : end], [comma - start - 1 for comma in commas]) if end else []
        if choices is None or choices:
            return _combined(text[:start], choices, text[end + 1 :])
    return [text]


def _combined(head: str, choices: list[str] | None, rest: str) -> list[str] | None:
    tails = expand(rest)
    if choices is None or tails is None:
        return None
    found: list[str] = []
    for choice in choices:
        inner = expand(choice)
        if inner is None or len(found) + len(inner) * len(tails) > _MAX_CHOICES:
            return None
        found += [head + middle + tail for middle in inner for tail in tails]
    return found


def _group(text: str, start: int) -> tuple[int, list[int]]:
    """Return the brace that closes the one at `start`, 0 if none does, and the commas that belong to it."""
    depth = 0
    commas: list[int] = []
    for index in range(start, len(text)):
        char = text[index]
        depth += (char == "{") - (char == "}")
        if not depth:
            return index, commas
        if char == "," and depth == 1:
            commas.append(index)
    return 0, []


def _choices(inside: str, commas: list[int]) -> list[str] | None:
    if commas:
        edges = [-1, *commas, len(inside)]
        return [inside[left + 1 : right] for left, right in pairwise(edges)]
    match = _RANGE.match(inside)
    if match is None:
        return None if ".." in inside and "{" in inside else []
    first, last, begin, end = match.groups()
    low, high = sorted((int(first), int(last)) if first is not None else (ord(begin), ord(end)))
    if high - low > _MAX_CHOICES:
        return None
    width = max(len(text.lstrip("-")) for text in (first, last) if text) if first is not None else 0
    numbers = range(low, high + 1)
    return (
        [str(n) for n in numbers] + [f"{n:0{width}d}" for n in numbers if width > 1] if first else [*map(chr, numbers)]
    )
