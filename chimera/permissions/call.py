"""A call as rules see it: the commands and the files that it is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chimera.permissions.families import COMMANDS, FILE_CHANGING
from chimera.permissions.match import Match
from chimera.permissions.paths import PathPattern, places
from chimera.permissions.rule import Rule
from chimera.permissions.uses import read_paths, searched, tool_paths

if TYPE_CHECKING:
    from chimera.permissions.shell import ShellText
    from chimera.permissions.shell_files import ShellFiles

__all__ = ["Call", "allowing"]

_EDITING = frozenset({"Edit", "Write"})
_NO = (Match.NO, "")
_YES = (Match.YES, "")


class Call:
    """A call, and what it is made of; each fact is worked out when a rule first needs it."""

    def __init__(self, tool: str, args: Mapping[str, Any], root: Path) -> None:
        self.tool, self.root = tool, root
        self.args: Mapping[str, Any] = args if isinstance(args, Mapping) else {}

    @cached_property
    def shell(self) -> ShellText | None:
        """What the call runs; None when that is no text."""
        from chimera.permissions.shell import read_shell  # only loaded where a rule needs it

        command = self.args.get("command")
        return read_shell(command) if isinstance(command, str) else None

    @cached_property
    def files(self) -> ShellFiles | None:
        """The files that the call's commands use; None when it has none."""
        from chimera.permissions.shell_files import ShellFiles

        return None if self.shell is None else ShellFiles(self.shell, self.root)

    @cached_property
    def paths(self) -> tuple[str, ...] | None:
        return tool_paths(self.tool, self.args)

    def meets(self, rule: Rule) -> tuple[Match, str]:
        """Grade how a rule that forbids meets this call, with the reason when it is uncertain."""
        if rule.names_tool(self.tool):
            if rule.whole:
                return _YES
            return self._meets_command(rule) if rule.shell is not None else self._meets_path(rule, self.paths)
        if self.tool in COMMANDS and rule.family in (*_EDITING, "Read"):
            return self._meets_use(rule)
        if self.tool in FILE_CHANGING and rule.family == "Read":
            taken_in = read_paths(self.tool, self.args)
            return self._meets_path(rule, taken_in) if taken_in != () else _NO
        return _NO

    def _meets_command(self, rule: Rule) -> tuple[Match, str]:
        from chimera.permissions.shell.patterns import may_start, runs

        if rule.shell is None or self.shell is None:
            return Match.MAYBE, "the command is no text"
        why = "a part of the command is known only when it runs"
        if self.shell.doubts:
            why = self.shell.doubts[0]
        elif may_start(rule.shell, self.shell):
            why = "a program in it may be told to run that"
        return runs(rule.shell, self.shell), why

    def _meets_path(self, rule: Rule, paths: tuple[str, ...] | None) -> tuple[Match, str]:
        if rule.whole:
            return _YES
        if paths is None or rule.path is None:
            return Match.MAYBE, "its arguments do not tell which file it is for"
        for path in paths:
            found = self._places(path)
            if found is None:
                return Match.MAYBE, f"the path {path!r} cannot be followed"
            if rule.path.forbids(found):
                return _YES
        return self._meets_below(rule.path, paths) if self.tool == "search" else _NO

    def _meets_below(self, pattern: PathPattern, paths: tuple[str, ...]) -> tuple[Match, str]:
        for place in sorted(place for path in paths for place in self._places(path) or ()):
            hit = searched(place, pattern, self.args.get("glob"))
            if hit is not None:
                return Match.MAYBE, f"it would read {hit}; name a narrower path or glob"
        return _NO

    def _meets_use(self, rule: Rule) -> tuple[Match, str]:
        """Judge what a shell text does to files by a rule for file tools."""
        files = self.files
        if files is None:
            return _NO
        return files.changing(rule.path) if rule.family in _EDITING else files.reading(rule.path)

    def _places(self, path: str, bases: Iterable[Path] | None = None) -> frozenset[str] | None:
        try:
            return places(path, bases or (self.root,))
        except ValueError:
            return None

    def permitting(self, rules: Iterable[Rule], path: str, bases: Iterable[Path] | None = None) -> Rule | None:
        """Return the first of `rules` that permits `path`."""
        found = self._places(path, bases) or frozenset()
        return next((rule for rule in rules if rule.whole or (rule.path and rule.path.permits(found))), None)


def allowing(rules: Sequence[Rule], call: Call) -> list[Rule]:
    """Return the rules that together allow all of the call; none when a part of it is left over or uncertain."""
    naming = [rule for rule in rules if rule.names_tool(call.tool)]
    for rule in naming:
        if rule.whole:
            return [rule]
    if not naming:
        return []
    if call.tool in COMMANDS:
        return list(_allowing_commands(naming, rules, call))
    found = [call.permitting(naming, path) for path in call.paths or ()]
    return [rule for rule in found if rule is not None] if all(found) else []


def _allowing_commands(naming: list[Rule], rules: Iterable[Rule], call: Call) -> Iterator[Rule]:
    from chimera.permissions.shell.patterns import covering
    from chimera.permissions.shell_uses import DEVICES

    used = covering([rule.shell for rule in naming if rule.shell is not None], call.shell) if call.shell else []
    if call.shell is None or call.files is None or not used:
        return
    editing = [rule for rule in rules if rule.family in _EDITING]
    bases = call.files.bases
    targets = [word for word in call.shell.writes if word.text not in DEVICES]
    found = [call.permitting(editing, word.text, bases) if word.exact else None for word in targets]
    if all(found):
        yield from (rule for rule in naming if rule.shell in used)
        yield from (rule for rule in found if rule is not None)
