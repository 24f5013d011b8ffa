"""Finding all matches of joined rules in a text, from left to right, however crowded the text is.

Most texts hold few places where a secret could start: each is looked at. Where a block is full of such places, the
literals that fill it are taken out of the literal search and followed by a regular expression of their own instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from chimera.secrets.compiled import Compiled
from chimera.secrets.prefilter import BLOCK, Hits, Prefilter, starts

__all__ = ["Found", "Parts", "walk"]

Found = tuple[re.Match[str], Compiled]
Parts = tuple[Prefilter | None, Compiled]
"""A search for literals, None for none, and the rules of all other literals."""

_WORTH = 2 * BLOCK  # what must be left of a text for another pattern to pay
_MANY = 40  # of so many literals on, all of them together cost no more
_CHANGES = 6


def walk(text: str, prefilter: Prefilter, whole: Compiled, part: Callable[[frozenset[str]], Parts]) -> Iterator[Found]:
    """Yield the matches of `whole`, none overlapping another.

    `part` makes the search that leaves the given literals out, and the rules of just these literals.
    """
    return _Walk(text, prefilter, whole, part).run()


class _Walk:
    def __init__(
        self, text: str, prefilter: Prefilter, whole: Compiled, part: Callable[[frozenset[str]], Parts]
    ) -> None:
        self.text, self.whole, self.part = text, whole, part
        self.data = text.encode("ascii", "replace")  # one byte a character, so that places in both are the same
        self.prefilter: Prefilter | None = prefilter
        self.crowd: frozenset[str] = frozenset()
        self.common = whole
        self.matches: Iterator[re.Match[str]] = iter(())  # of `common`
        self.ahead: re.Match[str] | None = None  # the next one of them
        self.changes = 0
        self.position = 0
        self.found: list[Found] = []

    def run(self) -> Iterator[Found]:
        match_at = self.whole.pattern.match
        for base in range(0, len(self.data), BLOCK):
            hits = self._hits(base)
            for start in starts(hits, base) if hits else ():
                if self.ahead is not None:
                    self._take_common(start)
                if start >= self.position:
                    match = match_at(self.text, start)
                    if match is not None:
                        self._take(match, self.whole)
            if self.ahead is not None:
                self._take_common(base + BLOCK)
            if self.found:
                yield from self.found
                self.found.clear()

    def _hits(self, base: int) -> Hits:
        if self.prefilter is None:
            return ()
        hits = self.prefilter.hits(self.data, base)
        crowd = self.prefilter.crowd(hits)
        if not crowd:
            return hits
        self._follow(crowd, base)
        return () if self.prefilter is None else self.prefilter.hits(self.data, base)

    def _follow(self, crowd: frozenset[str], base: int) -> None:
        """Look for these literals, too, by a regular expression; for all of them where another one would not pay."""
        self.crowd |= crowd
        self.changes += 1
        if self.changes > _CHANGES or len(self.crowd) > _MANY or len(self.data) - base < _WORTH:
            self.prefilter, self.common = None, self.whole
        else:
            self.prefilter, self.common = self.part(self.crowd)
        self._look_ahead(max(base, self.position))

    def _look_ahead(self, position: int) -> None:
        self.matches = self.common.pattern.finditer(self.text, position)
        self.ahead = next(self.matches, None)

    def _take_common(self, stop: int) -> None:
        """Take the matches of the frequent literals that start before `stop`."""
        ahead, matches, common, found = self.ahead, self.matches, self.common, self.found
        last = None
        while ahead is not None and ahead.start() < stop:
            found.append((ahead, common))
            last, ahead = ahead, next(matches, None)
        self.ahead = ahead
        if last is not None:
            self.position = last.end()

    def _take(self, match: re.Match[str], by: Compiled) -> None:
        self.found.append((match, by))
        self.position = match.end()
        if self.ahead is not None and self.ahead.start() < self.position:
            self._look_ahead(self.position)
