"""Many rules as one regular expression."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from chimera.secrets.rules import LOOK_AHEAD, LOOK_BACK, SecretRule

__all__ = ["Compiled", "compile_rules"]

_MARK = "\0"
_CONTEXT = rf"(?<=\A{_MARK})(?s:.{{{LOOK_BACK}}})"
_OWN_GROUP = "(?P<"
_SECRET = "(?P<secret>"


@dataclass(frozen=True, eq=False)
class Compiled:
    """One pattern for many rules, with as few groups as can be, since each costs time at every match.

    `leads` tells by the number of a group, which is the last one of a match, that it holds what leads to the secret,
    all but the beginning, which is the value. Of rules with groups of their own, `secrets` tells by the number of the
    last group which one holds the secret. Otherwise it is `other`, 0 for the whole match. `endless` are the starts of
    endless rules.
    """

    pattern: re.Pattern[str]
    leads: dict[int | None, str] = field(default_factory=dict)
    secrets: dict[int | None, int] = field(default_factory=dict)
    other: int = 0
    names: dict[int | None, str] = field(default_factory=dict)
    endless: tuple[str, ...] = ()

    def secret(self, match: re.Match[str]) -> tuple[int, int]:
        """Return where the secret of a match starts and ends; what stands before it in the match leads to it."""
        group = match.lastindex
        if group is not None and group in self.leads:
            return match.end(group), match.end()
        return match.span(self.secrets.get(group, self.other))

    def name(self, text: str, place: int) -> str:
        """Return the name of the rule that matches at `place`; they must have been compiled with their names."""
        match = self.pattern.match(text, place)
        return self.names.get(match.lastindex, "pattern") if match else "pattern"

    @property
    def divides(self) -> bool:
        """Whether `divide` may be called: no rule has groups of its own."""
        return len(self.leads) == self.pattern.groups

    def divide(self, text: str, position: int, most: int, size: int) -> tuple[list[str | None], int] | None:
        """Return what the first `most` matches from `position` on leave of the text, and where the last one ends.

        That is what stands before a match, then the groups of its lead, one of them not None at most, and so on for
        the next one. Where the text has fewer matches, the last part is what follows them, up to its end; otherwise it
        is empty. No more than `size` characters are looked at: None when they are too few to tell. `position` is no
        less than `LOOK_BACK`.
        """
        stop = position + size
        piece, whole = text[position - LOOK_BACK : stop], stop >= len(text)
        if not whole and any(start in piece for start in self.endless):
            return None
        parts: list[str | None] = self._resumed.split(_MARK + piece, most + 1)
        del parts[: 1 + len(self.leads)]  # what the context left
        if len(parts) // (len(self.leads) + 1) < most:
            return (parts, len(text)) if whole else None
        left = len(parts[-1] or "")
        parts[-1] = ""
        return (parts, min(stop, len(text)) - left) if whole or left >= LOOK_AHEAD else None

    @cached_property
    def _resumed(self) -> re.Pattern[str]:
        """The pattern for a text that was cut off: it takes the context, which is marked, for its first match."""
        return re.compile(f"{_MARK}{_CONTEXT}|{self.pattern.pattern}")


def compile_rules(rules: Iterable[SecretRule], named: bool = False) -> Compiled:
    """Join `rules` into one pattern: a tree of their starts, so that a character is compared once for all of them.

    At one place of a text the longest start that leads to a match wins, and the earlier rule among equal starts.
    """
    return _Tree(named).compiled([(start, start, rule) for rule in rules for start in rule.starts])


_Branch = tuple[str, str, SecretRule]
"""What is left of a start, the start, and its rule."""


class _Tree:
    """Writes the pattern and numbers its groups."""

    def __init__(self, named: bool) -> None:
        self._leads: list[str] = []
        self._own = 0
        self._names: list[str] | None = [] if named else None

    def compiled(self, branches: list[_Branch]) -> Compiled:
        pattern = re.compile(self._joined("", branches))
        index = pattern.groupindex
        leads: dict[int | None, str] = {index[f"l{n}"]: begun for n, begun in enumerate(self._leads)}
        own = [(index[f"r{n}"], index.get(f"s{n}")) for n in range(self._own)]
        secrets: dict[int | None, int] = {whole: secret or whole for whole, secret in own}
        names: dict[int | None, str] = {index[f"n{n}"]: name for n, name in enumerate(self._names or ())}
        endless = tuple({start for _, start, rule in branches if rule.endless})
        return Compiled(pattern, leads, secrets, names=names, endless=endless)

    def _joined(self, begun: str, branches: Sequence[_Branch]) -> str:
        """Return a pattern for any of `branches`, of whose starts `begun` was written already."""
        rule = branches[0][2]
        if begun and rule.lead is not None and all(other is rule for _, _, other in branches):
            return self._led(begun, rule, branches)
        by_first: dict[str, list[_Branch]] = {}
        for left, start, rule in branches:
            by_first.setdefault(left[:1], []).append((left[1:], start, rule))
        ended = by_first.pop("", [])
        paths = [re.escape(first) + self._joined(begun + first, rest) for first, rest in by_first.items()]
        return _any([*paths, *(self._end(branch) for branch in ended)])

    def _led(self, begun: str, rule: SecretRule, branches: Sequence[_Branch]) -> str:
        """Return a pattern for starts of one rule, which share a group."""
        self._leads.append(begun)
        ways = sorted(branches, key=lambda branch: -len(branch[0]))
        starts = _any([re.escape(left) + rule.before(start) for left, start, _ in ways])
        return self._name(rule, f"(?P<l{len(self._leads) - 1}>{starts}{rule.lead})(?:{rule.rest})")

    def _end(self, branch: _Branch) -> str:
        _, start, rule = branch
        if rule.lead is not None:
            return self._led(start, rule, [branch])
        if _OWN_GROUP not in rule.rest:
            return self._name(rule, f"(?:{rule.before(start)}{rule.rest})")
        self._own += 1
        rest = rule.rest.replace(_SECRET, f"(?P<s{self._own - 1}>")
        return self._name(rule, f"(?P<r{self._own - 1}>{rule.before(start)}{rest})")

    def _name(self, rule: SecretRule, pattern: str) -> str:
        if self._names is None:
            return pattern
        self._names.append(rule.name)
        return f"(?P<n{len(self._names) - 1}>{pattern})"


def _any(ways: list[str]) -> str:
    return ways[0] if len(ways) == 1 else f"(?:{'|'.join(ways)})"
