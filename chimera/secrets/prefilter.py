"""One quick pass that finds the few places of a text where a secret could start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["BLOCK", "Prefilter"]

BLOCK = 1 << 16


class Prefilter:
    """Finds literal texts, all of them in one pass (Aho and Corasick's method, in the library `ahocorasick-rs`)."""

    def __init__(self, literals: Iterable[str]) -> None:
        """`literals` are ASCII. Raises `ImportError` where the library is missing, which makes nothing but speed."""
        from ahocorasick_rs import BytesAhoCorasick, MatchKind

        encoded = [literal.encode("ascii") for literal in literals]
        self._search: Any = BytesAhoCorasick(encoded, MatchKind.Standard).find_matches_as_indexes
        self._overlap = max(map(len, encoded)) - 1

    def blocks(self, text: str) -> Iterator[list[int]]:
        """Yield, for each block of the text that holds literals, where they start.

        Going by blocks lets the caller give up early on a text that is full of literals.
        """
        data = text.encode("ascii", "replace")  # one byte a character, so that places in both are the same
        if len(data) <= BLOCK:
            hits = self._search(data, True)
            if hits:
                yield sorted({start for _, start, _ in hits})
            return
        for base in range(0, len(data), BLOCK):
            hits = self._search(data[base : base + BLOCK + self._overlap], True)
            if hits:
                yield sorted({base + start for _, start, _ in hits if start < BLOCK})
