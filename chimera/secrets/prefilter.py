"""One quick pass that finds the few places of a text where a secret could start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["BLOCK", "Hits", "Prefilter", "starts"]

Hits = Sequence[tuple[int, int, int]]

BLOCK = 1 << 14
"""How many characters are looked through at once; what stands in one block tells how to go about the next."""

_CROWDED = 32  # a block is too full with one hit in so many characters,
_CROWD = 32  # or with so many hits where it is short


class Prefilter:
    """Finds literal texts, all of them in one pass (Aho and Corasick's method, in the library `ahocorasick-rs`)."""

    def __init__(self, literals: Iterable[str]) -> None:
        """`literals` are ASCII. Raises `ImportError` where the library is missing, which makes nothing but speed."""
        from ahocorasick_rs import BytesAhoCorasick, MatchKind

        self.literals = tuple(literals)
        encoded = [literal.encode("ascii") for literal in self.literals]
        self._search: Any = BytesAhoCorasick(encoded, MatchKind.Standard).find_matches_as_indexes
        self._overlap = max(map(len, encoded), default=1) - 1

    def hits(self, data: bytes, base: int) -> Hits:
        """Return what stands in the block of `data` that begins at `base`: which literal, where in the block, its end.

        `data` has one byte for each character of the text.
        """
        found: Hits = self._search(data[base : base + BLOCK + self._overlap], True)
        return found

    def count(self, text: str) -> int:
        """Return how often the literals stand in `text`."""
        return len(self._search(text.encode("ascii", "replace"), True))

    def crowd(self, hits: Hits, size: int) -> frozenset[str]:
        """Return the literals that make a block too full to look at each of its hits; none when it is not.

        `size` is the number of characters from the beginning of the block to the end of the text.
        """
        many = max(min(size, BLOCK) // _CROWDED, _CROWD)
        if len(hits) <= many:
            return frozenset()
        frequent, left = set(), len(hits)
        for index, count in Counter([hit[0] for hit in hits]).most_common():
            if left <= many // 2:
                break
            frequent.add(self.literals[index])
            left -= count
        return frozenset(frequent)


def starts(hits: Hits, base: int) -> list[int]:
    """Return where the hits of a block start in the text, in order."""
    return sorted({base + start for _, start, _ in hits if start < BLOCK})
