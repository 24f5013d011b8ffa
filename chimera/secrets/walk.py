"""Finding all matches of joined rules in a text, from left to right, however crowded the text is.

Most texts hold few places where a secret could start: each is looked at. Where a block is full of such places, the
literals that fill it are taken out of the literal search and followed by a regular expression of their own instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from chimera.secrets.compiled import Compiled
from chimera.secrets.prefilter import BLOCK, Hits, Prefilter, starts
from chimera.secrets.rules import LOOK_AHEAD, LOOK_BACK

__all__ = ["Found", "Parts", "Walk"]

Found = tuple[re.Match[str], Compiled]
Parts = tuple[Prefilter | None, Compiled]
"""A search for literals, None for none, and the rules of all other literals."""

_MANY = 40  # of so many literals on, all of them together cost no more
_CHANGES = 2  # each new pattern may look through all the rest of the text for its next match
_PAUSE = 16 * BLOCK  # how long all literals are followed after that, at first
_STRETCH = (1 << 13, 1 << 17)  # how many characters full of secrets are cut at once: at first, and at most


class Walk:
    """Iterates over the matches of `whole`, none overlapping another.

    `part` makes the search that leaves the given literals out, and the rules of just these literals; None when that
    does not pay for so many characters.
    """

    def __init__(
        self, text: str, prefilter: Prefilter, whole: Compiled, part: Callable[[frozenset[str], int], Parts | None]
    ) -> None:
        self.text, self.whole, self.part, self.every = text, whole, part, prefilter
        self.data = text.encode("ascii", "replace")  # one byte a character, so that places in both are the same
        self.prefilter: Prefilter | None = prefilter
        self.crowd: frozenset[str] = frozenset()
        self.common: _Scan | None = None  # for the literals of the crowd
        self.scans: dict[Compiled, _Scan] = {}
        self.changes = 0
        self.pause = _PAUSE
        self.afresh = 0  # where to look again for what crowds the text, after it was all literals
        self.position = 0
        self.stretch = _STRETCH[0]
        self.apart_until = 0

    def __iter__(self) -> Iterator[Found]:
        match_at = self.whole.pattern.match
        for base in range(0, len(self.data), BLOCK):
            if base + BLOCK <= self.position:
                continue
            hits = self._hits(base)
            for start in starts(hits, base) if hits else ():
                if self.common is not None:
                    yield from self._common_before(start)
                if start >= self.position:
                    match = match_at(self.text, start)
                    if match is not None:
                        self.position = match.end()
                        yield match, self.whole
            if self.common is not None:
                yield from self._common_before(base + BLOCK)

    def divide(self, apart: float) -> tuple[list[str | None], Compiled] | None:
        """Take the next matches out of the text, and go on behind them; they are expected to be so far `apart`.

        Returns what they leave, and by which rules: see `Compiled.divide`. None when each match must be looked at; that
        may have changed a little later. How many are taken grows as long as they come as close as expected.
        """
        if self.position < self.apart_until:
            return None
        divided = self._divided(int(self.stretch / apart), 2 * self.stretch + LOOK_AHEAD)
        if divided is None:
            self.stretch, self.apart_until = _STRETCH[0], self.position + _STRETCH[0]
        else:
            self.stretch = min(2 * self.stretch, _STRETCH[1])
        return divided

    def _divided(self, most: int, size: int) -> tuple[list[str | None], Compiled] | None:
        common = None if self.common is None else self.common.rules
        if common is None or not common.divides or not self.whole.divides or self.position < LOOK_BACK:
            return None
        divided = common.divide(self.text, self.position, most, size)
        if divided is None or not self._common_alone(self.position, divided[1]):
            return None
        parts, self.position = divided
        return parts, common

    def _common_alone(self, position: int, end: int) -> bool:
        """Tell whether no match of another literal starts here; if one does, follow its literal, too, from now on."""
        for base in range(position, end, BLOCK):
            if self.prefilter is None:
                break
            hits = self.prefilter.hits(self.data, base)
            others = self.prefilter.crowd(hits, len(self.data) - base) or frozenset(
                self.prefilter.literals[literal]
                for literal, start, _ in hits
                if base + start < end and self.whole.pattern.match(self.text, base + start)
            )
            if others:
                self._follow(others, position)
                return False
        return True

    def _hits(self, base: int) -> Hits:
        if self.prefilter is None:
            if base < self.afresh:
                return ()
            self.prefilter, self.crowd, self.common = self.every, frozenset(), None
            self.changes = _CHANGES - 1
            self.pause *= 2
        hits = self.prefilter.hits(self.data, base)
        crowd = self.prefilter.crowd(hits, len(self.data) - base)
        if not crowd:
            return hits
        self._follow(crowd, base)
        return () if self.prefilter is None else self.prefilter.hits(self.data, base)

    def _follow(self, crowd: frozenset[str], base: int) -> None:
        """Look for these literals, too, by a regular expression; for all of them where another one would not pay."""
        self.crowd |= crowd
        self.changes += 1
        few = self.changes <= _CHANGES and len(self.crowd) <= _MANY
        parts = self.part(self.crowd, len(self.data) - base) if few else None
        if parts is None:
            self.afresh = base + self.pause
        self.prefilter, rules = parts or (None, self.whole)
        if rules not in self.scans:
            self.scans[rules] = _Scan(rules, self.text, max(base, self.position))
        self.common = self.scans[rules]

    def _common_before(self, stop: int) -> Iterator[Found]:
        """Take the matches of the frequent literals that start before `stop`."""
        while self.common is not None:
            match = self.common.next(self.position)
            if match is None or match.start() >= stop:
                break
            self.position = match.end()
            yield match, self.common.rules


class _Scan:
    """The matches of some rules from `position` on; no part of the text is looked through again and again."""

    def __init__(self, rules: Compiled, text: str, position: int) -> None:
        self.rules, self.text = rules, text
        self._matches: Iterator[re.Match[str]] = iter(())
        self._ahead: re.Match[str] | None = None
        self._look(position)

    def next(self, position: int) -> re.Match[str] | None:
        """Return the first match that starts at `position` or behind it, which is no less than at the last call."""
        ahead = self._ahead
        if ahead is not None and ahead.start() < position:
            if ahead.end() == position:
                self._ahead = next(self._matches, None)
            else:
                self._look(position)
        return self._ahead

    def _look(self, position: int) -> None:
        self._matches = self.rules.pattern.finditer(self.text, position)
        self._ahead = next(self._matches, None)
