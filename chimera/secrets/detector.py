"""Finding credentials in text, in time that grows with its length and nothing else."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

from chimera.secrets.compiled import Compiled, compile_rules
from chimera.secrets.join import join_parts
from chimera.secrets.prefilter import Prefilter
from chimera.secrets.rules import DEFAULT_RULES, SecretRule
from chimera.secrets.walk import Found, Parts, Walk

__all__ = ["SecretDetector", "SecretMatch"]

REDACTED = "[redacted]"
_REMEMBERED = 32
_WORTH = 1 << 15  # so many characters pay for another pattern
_SHORT = 32  # a text of so many characters is searched through before another way has begun
_FEW = 64  # after so many secrets, see how close they come
_NEAR = 64  # secrets that come so close, on the average, are cut out many at once


@dataclass(frozen=True, slots=True)
class SecretMatch:
    """Where a secret stands: `text[start:end]`, and which rule knows it."""

    rule: str
    start: int
    end: int


class SecretDetector:
    """Finds and replaces secrets. Immutable once made; may be shared by threads.

    `rules` are the shapes to look for. `SecretDetector.of(pattern)` looks for one regular expression instead.
    """

    def __init__(self, rules: Iterable[SecretRule] = DEFAULT_RULES) -> None:
        self.rules = tuple(rules)
        if not self.rules:
            raise ValueError("a detector needs at least one rule")
        self._well_known = all(rule in DEFAULT_RULES for rule in self.rules)  # what others promise is not relied on
        self._parts: dict[frozenset[str], Parts] = {}
        self._wanted: dict[frozenset[str], int] = {}

    @classmethod
    def of(cls, pattern: str | re.Pattern[str]) -> SecretDetector:
        """Return a detector for one pattern. When it has a group `secret`, that group alone is replaced.

        Raises `ValueError` (or `re.error`) when the pattern is no regular expression for text, or matches the empty
        text. That such a pattern is quick on every text is up to its author.
        """
        compiled = _own_pattern(pattern)
        detector = cls((SecretRule("pattern", ("",), compiled.pattern),))
        detector._compiled = detector._named = Compiled(compiled, other=compiled.groupindex.get("secret", 0))
        return detector

    def find(self, text: str) -> list[SecretMatch]:
        """Return all secrets in `text`, in order, none overlapping another."""
        return [secret for found in self._matches(text) for secret in self._secrets(*found)]

    def scrub(self, text: str, replacement: str = REDACTED) -> str:
        """Return `text` with every secret replaced; the same object when there is none."""
        pieces: list[str] = []
        leads: dict[str, str] = {}
        position = since = 0
        left = _FEW
        matches = self._matches(text)
        for match, by in matches:
            start, last = match.span()
            first, end = by.secret(match)
            pieces.append(text[position:start])
            if start < first:
                lead = text[start:first]
                if lead not in leads:  # what leads to a secret may hold another one: a user name, say
                    leads[lead] = self.scrub(lead, replacement)
                pieces.append(leads[lead])
            if first < end:
                pieces.append(replacement)
            if end < last:
                pieces.append(text[end:last])
            position = last
            left -= 1
            if not left:
                if position - since < _FEW * _NEAR and self._well_known and isinstance(matches, Walk):
                    position = self._cut(matches, position - since, replacement, pieces)
                since, left = position, _FEW
        if not pieces:
            return text
        pieces.append(text[position:])
        clean = "".join(pieces)
        return text if clean == text else clean

    def _cut(self, walk: Walk, spread: int, replacement: str, pieces: list[str]) -> int:
        """Cut out the next secrets all at once, as many as may come in a stretch when `_FEW` of them come in `spread`.

        Returns the place up to which `pieces` then holds the clean text.
        """
        divided = walk.divide(spread / _FEW)
        if divided is not None:
            parts, by = divided
            clean = partial(self._scrub_leads, replacement)
            pieces.append(join_parts(parts, by.leads.values(), replacement, clean))
        return walk.position

    def _scrub_leads(self, replacement: str, begun: str, groups: Collection[str]) -> dict[str, str]:
        """Return the clean text for each lead that holds a secret itself: `begun` and one of `groups`."""
        count = self._prefilter.count if self._prefilter is not None and len(groups) > _FEW else None
        if count is not None and self._alone(begun) and not count("\n".join(groups)):
            return {}
        search = self._compiled.pattern.search
        leads = ((group, begun + group) for group in groups)
        return {group: self.scrub(lead, replacement) for group, lead in leads if search(lead)}

    def _alone(self, begun: str) -> bool:
        """Tell whether what begins so can be one rule only, and no other one begins further on in `begun`."""
        starts = [(start, rule) for rule in self.rules for start in rule.starts]
        within = (begun[place:] for place in range(1, len(begun)))
        return len({id(rule) for start, rule in starts if _meet(start, begun)}) == 1 and not any(
            _meet(start, end) for end in within for start, _ in starts
        )

    @cached_property
    def _compiled(self) -> Compiled:
        return compile_rules(self.rules)

    @cached_property
    def _prefilter(self) -> Prefilter | None:
        starts = {start for rule in self.rules for start in rule.starts}
        if "" in starts:
            return None
        try:
            return Prefilter(sorted(starts))
        except ImportError:
            return None

    @cached_property
    def _named(self) -> Compiled:
        """All rules once more, in a slower form that tells which one has matched."""
        return compile_rules(self.rules, named=True)

    def _matches(self, text: str) -> Iterable[Found]:
        if self._prefilter is None or len(text) < _SHORT:
            whole = self._compiled
            return ((match, whole) for match in whole.pattern.finditer(text))
        return Walk(text, self._prefilter, self._compiled, self._part)

    def _part(self, crowd: frozenset[str], size: int) -> Parts | None:
        """Return a search without the literals of `crowd`, and their rules; remembered, for crowds come again.

        None until the texts for which it was wanted, `size` characters this time, are worth it together.
        """
        parts = self._parts.get(crowd)
        if parts is None:
            wanted = self._wanted[crowd] = self._wanted.get(crowd, 0) + size
            if len(self._parts) + len(self._wanted) > _REMEMBERED:
                self._parts.clear()
                self._wanted.clear()
            if wanted < _WORTH:
                return None
            assert self._prefilter is not None
            rest = [literal for literal in self._prefilter.literals if literal not in crowd]
            held = [(rule, tuple(start for start in rule.starts if start in crowd)) for rule in self.rules]
            rules = compile_rules(replace(rule, starts=starts) for rule, starts in held if starts)
            self._wanted.pop(crowd, None)
            parts = self._parts[crowd] = (Prefilter(rest) if rest else None, rules)
        return parts

    def _secrets(self, match: re.Match[str], by: Compiled) -> Iterator[SecretMatch]:
        start, end = by.secret(match)
        base = match.start()
        for inner in self.find(match.string[base:start]):
            yield SecretMatch(inner.rule, base + inner.start, base + inner.end)
        if start < end:
            yield SecretMatch(self._named.name(match.string, base), start, end)


def _meet(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _own_pattern(pattern: str | re.Pattern[str]) -> re.Pattern[str]:
    compiled = re.compile(pattern)
    if not isinstance(compiled.pattern, str):
        raise ValueError("the pattern must be one for text, not for bytes")
    if compiled.match("") is not None:
        raise ValueError(f"the pattern {compiled.pattern!r} matches the empty text")
    return compiled
