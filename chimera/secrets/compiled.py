"""Many rules as one regular expression."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from chimera.secrets.rules import SecretRule

__all__ = ["Compiled", "compile_rules"]


@dataclass(frozen=True, slots=True)
class Compiled:
    """All rules as one pattern; `groups` tells, by group number, which rule it is and which group holds the secret."""

    pattern: re.Pattern[str]
    groups: dict[int | None, tuple[str, int]]

    def secret_group(self, match: re.Match[str]) -> int:
        """Return the group that holds the secret, 0 for the whole match."""
        known = self.groups.get(match.lastindex)
        return known[1] if known else self.pattern.groupindex.get("secret", 0)

    def rule_of(self, match: re.Match[str]) -> str:
        known = self.groups.get(match.lastindex)
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
    groups: dict[int | None, tuple[str, int]] = {
        index[f"r{n}"]: (rule.name, index.get(f"s{n}", 0)) for n, (rule, _) in enumerate(named)
    }
    return Compiled(pattern, groups)


def _tree(bodies: list[tuple[str, str]]) -> str:
    """Return a pattern for any of `(start, body)`; starts with a common beginning share it."""
    by_first: dict[str, list[tuple[str, str]]] = {}
    for start, body in bodies:
        by_first.setdefault(start[:1], []).append((start[1:], body))
    ended = [body for _, body in by_first.pop("", [])]
    branches = [re.escape(first) + _tree(rest) for first, rest in by_first.items()] + ended
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"
