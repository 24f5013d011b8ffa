"""Finding credentials in text, in time that grows with its length and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from chimera.secrets.compiled import Compiled, compile_rules
from chimera.secrets.prefilter import Prefilter
from chimera.secrets.rules import DEFAULT_RULES, SecretRule
from chimera.secrets.walk import Found, Parts, walk

__all__ = ["SecretDetector", "SecretMatch"]

REDACTED = "[redacted]"
_REMEMBERED = 32


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
        self._parts: dict[frozenset[str], Parts] = {}

    @classmethod
    def of(cls, pattern: str | re.Pattern[str]) -> SecretDetector:
        """Return a detector for one pattern. When it has a group `secret`, that group alone is replaced.

        Raises `ValueError` (or `re.error`) when the pattern is no regular expression for text, or matches the empty
        text. That such a pattern is quick on every text is up to its author.
        """
        compiled = _own_pattern(pattern)
        detector = cls((SecretRule("pattern", ("",), compiled.pattern),))
        detector._compiled = Compiled(compiled, {})
        return detector

    def find(self, text: str) -> list[SecretMatch]:
        """Return all secrets in `text`, in order, none overlapping another."""
        return [secret for found in self._matches(text) for secret in self._secrets(*found)]

    def scrub(self, text: str, replacement: str = REDACTED) -> str:
        """Return `text` with every secret replaced; the same object when there is none."""
        pieces: list[str] = []
        leads: dict[str, str] = {}
        position = 0
        for match, by in self._matches(text):
            start, end = match.span()
            first, last = match.span(by.secret_group(match))
            pieces.append(text[position:start])
            if start < first:
                lead = text[start:first]
                if lead not in leads:  # what leads to a secret may hold another one: a user name, say
                    leads[lead] = self.scrub(lead, replacement)
                pieces.append(leads[lead])
            if first < last:
                pieces.append(replacement)
            if last < end:
                pieces.append(text[last:end])
            position = end
        if not pieces:
            return text
        pieces.append(text[position:])
        clean = "".join(pieces)
        return text if clean == text else clean

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

    def _matches(self, text: str) -> Iterator[Found]:
        if self._prefilter is None:
            whole = self._compiled
            return ((match, whole) for match in whole.pattern.finditer(text))
        return walk(text, self._prefilter, self._compiled, self._part)

    def _part(self, crowd: frozenset[str]) -> Parts:
        """Return a search without the literals of `crowd`, and their rules; remembered, for crowds come again."""
        parts = self._parts.get(crowd)
        if parts is None:
            assert self._prefilter is not None
            rest = [literal for literal in self._prefilter.literals if literal not in crowd]
            held = [(rule, tuple(start for start in rule.starts if start in crowd)) for rule in self.rules]
            rules = compile_rules(replace(rule, starts=starts) for rule, starts in held if starts)
            if len(self._parts) >= _REMEMBERED:
                self._parts.clear()
            parts = self._parts[crowd] = (Prefilter(rest) if rest else None, rules)
        return parts

    def _secrets(self, match: re.Match[str], by: Compiled) -> Iterator[SecretMatch]:
        start, end = match.span(by.secret_group(match))
        base = match.start()
        for inner in self.find(match.string[base:start]):
            yield SecretMatch(inner.rule, base + inner.start, base + inner.end)
        if start < end:
            yield SecretMatch(by.rule_of(match), start, end)


def _own_pattern(pattern: str | re.Pattern[str]) -> re.Pattern[str]:
    compiled = re.compile(pattern)
    if not isinstance(compiled.pattern, str):
        raise ValueError("the pattern must be one for text, not for bytes")
    if compiled.match("") is not None:
        raise ValueError(f"the pattern {compiled.pattern!r} matches the empty text")
    return compiled
