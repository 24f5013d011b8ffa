"""Finding credentials in text, in time that grows with its length and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from chimera.secrets.prefilter import Prefilter
from chimera.secrets.rules import DEFAULT_RULES, SecretRule

__all__ = ["SecretDetector", "SecretMatch"]

REDACTED = "[redacted]"
_CROWDED = 1024


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
        matches = self._sparse(text)
        if matches is None:
            matches = list(self._compiled.pattern.finditer(text))
        return [secret for match in matches for secret in self._secrets(match)]

    def scrub(self, text: str, replacement: str = REDACTED) -> str:
        """Return `text` with every secret replaced; the same object when there is none."""
        matches = self._sparse(text)
        if matches is None:
            clean = self._compiled.pattern.sub(lambda match: self._replaced(match, replacement), text)
        elif matches:
            clean = "".join(self._pieces(text, matches, replacement))
        else:
            return text
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

    def _sparse(self, text: str) -> list[re.Match[str]] | None:
        """Return the matches of the rules from left to right, or None when going through the whole text is quicker."""
        prefilter = self._prefilter
        if prefilter is None:
            return None
        match_at, position = self._compiled.pattern.match, 0
        found: list[re.Match[str]] = []
        for starts in prefilter.blocks(text):
            if len(starts) > _CROWDED:
                return None
            for start in starts:
                match = match_at(text, start) if start >= position else None
                if match is not None:
                    position = match.end()
                    found.append(match)
        return found

    def _pieces(self, text: str, matches: Iterable[re.Match[str]], replacement: str) -> Iterator[str]:
        position = 0
        for match in matches:
            yield text[position : match.start()]
            yield self._replaced(match, replacement)
            position = match.end()
        yield text[position:]

    def _replaced(self, match: re.Match[str], replacement: str) -> str:
        group = self._compiled.secret_group(match)
        if not group:
            return replacement if match[0] else ""
        start, end = match.span(group)
        before, after = match.string[match.start() : start], match.string[end : match.end()]
        if self._compiled.pattern.search(before):  # what leads to a secret may hold another one: a user name, say
            before = self.scrub(before, replacement)
        return before + (replacement if start < end else "") + after

    def _secrets(self, match: re.Match[str]) -> Iterator[SecretMatch]:
        start, end = match.span(self._compiled.secret_group(match))
        base = match.start()
        for inner in self.find(match.string[base:start]):
            yield SecretMatch(inner.rule, base + inner.start, base + inner.end)
        if start < end:
            yield SecretMatch(self._compiled.rule_of(match), start, end)


@dataclass(frozen=True, slots=True)
class Compiled:
    """All rules as one pattern; `groups` tells, by group number, which rule it is and which group holds the secret."""

    pattern: re.Pattern[str]
    groups: dict[int, tuple[str, int]]

    def secret_group(self, match: re.Match[str]) -> int:
        """Return the group that holds the secret, 0 for the whole match."""
        known = self.groups.get(match.lastindex or 0)
        return known[1] if known else self.pattern.groupindex.get("secret", 0)

    def rule_of(self, match: re.Match[str]) -> str:
        known = self.groups.get(match.lastindex or 0)
        return known[0] if known else "pattern"


def compile_rules(rules: Iterable[SecretRule]) -> Compiled:
    """Join `rules` into one pattern: a tree of their starts, so that a character is compared once for all of them.

    At one place of a text the longest start that leads to a match wins, and the earlier rule among equal starts.
    """
    bodies: list[tuple[str, str]] = []
    named = [(rule, start) for rule in rules for start in rule.starts]
    for number, (rule, start) in enumerate(named):
        body = rule.after(start).replace("(?P<secret>", f"(?P<s{number}>")
        bodies.append((start, f"(?P<r{number}>{body})"))
    pattern = re.compile(_tree(bodies))
    index = pattern.groupindex
    groups = {index[f"r{n}"]: (rule.name, index.get(f"s{n}", 0)) for n, (rule, _) in enumerate(named)}
    return Compiled(pattern, groups)


def _tree(bodies: list[tuple[str, str]]) -> str:
    """Return a pattern for any of `(start, body)`; starts with a common beginning share it."""
    by_first: dict[str, list[tuple[str, str]]] = {}
    for start, body in bodies:
        by_first.setdefault(start[:1], []).append((start[1:], body))
    ended = [body for _, body in by_first.pop("", [])]
    branches = [re.escape(first) + _tree(rest) for first, rest in by_first.items()] + ended
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


def _own_pattern(pattern: str | re.Pattern[str]) -> re.Pattern[str]:
    compiled = re.compile(pattern)
    if not isinstance(compiled.pattern, str):
        raise ValueError("the pattern must be one for text, not for bytes")
    if compiled.match("") is not None:
        raise ValueError(f"the pattern {compiled.pattern!r} matches the empty text")
    return compiled
