"""One permission rule as data, and reading it: `Bash(git status:*)`, `Edit(src/**)`, `write_file`, `mcp__server__tool`.

A rule that can never match is an error, not a rule: it would give a feeling of safety and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chimera.errors import ConfigError
from chimera.permissions.families import COMMANDS, FAMILIES, FILE_CHANGING, READING, check_known, nearest
from chimera.permissions.paths import PathPattern, parse_path_pattern

if TYPE_CHECKING:
    from chimera.permissions.shell.patterns import ShellPattern

__all__ = ["Rule", "parse_rule"]

_FORM = re.compile(r"\s*([^()\s]+)\s*(?:\((.*)\))?\s*\Z", re.DOTALL)
_NAME = re.compile(r"[\w.:/*-]+\Z")


@dataclass(frozen=True, slots=True)
class Rule:
    """What a rule speaks of: the tools in `names` (or matching `glob`), all their calls or those of its pattern."""

    text: str
    family: str
    names: frozenset[str]
    glob: re.Pattern[str] | None = None
    shell: ShellPattern | None = None
    path: PathPattern | None = None

    @property
    def whole(self) -> bool:
        """True when every call of its tools is meant."""
        return self.shell is None and self.path is None

    def names_tool(self, tool_name: str) -> bool:
        return tool_name in self.names or (self.glob is not None and bool(self.glob.match(tool_name)))


def parse_rule(text: str, *, root: Path, tools: Iterable[str] | None = None, permits: bool = False) -> Rule:
    """Read one rule. `root` is where relative paths start; `tools` are the names that exist, None when not known;
    `permits` says that the rule allows, which may not be done for whatever program.

    Raises `ConfigError` that names the rule, what is wrong with it, and the nearest valid name.
    """
    try:
        return _parse(text, root, None if tools is None else frozenset(tools), permits)
    except ConfigError as error:
        raise ConfigError(f"permission rule {text!r}: {error}") from None


def _parse(text: str, root: Path, tools: frozenset[str] | None, permits: bool) -> Rule:
    if not isinstance(text, str):
        raise ConfigError("a rule is a text such as 'Bash(git status:*)'")
    match = _FORM.match(text)
    if match is None or not _NAME.match(match[1]):
        raise ConfigError(_bad_form(text))
    name, pattern = match.groups()
    rule = Rule(text.strip(), name, _members(name, tools), _glob(name))
    return rule if pattern is None else _with_pattern(rule, pattern.strip(), root, permits)


def _bad_form(text: str) -> str:
    if text.count("(") > text.count(")"):
        return "the parenthesis is never closed"
    return "it is neither a tool name nor a name with a pattern, as in 'Bash(git status:*)'; one rule names one tool"


def _members(name: str, tools: frozenset[str] | None) -> frozenset[str]:
    if name in FAMILIES:
        return FAMILIES[name]
    if name.startswith("mcp__"):
        _check_mcp(name)
    elif "*" not in name:
        check_known(name, tools)
    return frozenset((name,))


def _check_mcp(name: str) -> None:
    server, _, tool = name.removeprefix("mcp__").partition("__")
    if not server or not tool:
        raise ConfigError(f"no tool has this name; for all tools of the server write 'mcp__{server or 'server'}__*'")


def _glob(name: str) -> re.Pattern[str] | None:
    if "*" not in name:
        return None
    return re.compile(".*".join(re.escape(part) for part in name.split("*")) + r"\Z")


def _with_pattern(rule: Rule, pattern: str, root: Path, permits: bool) -> Rule:
    if not pattern:
        raise ConfigError(f"the parentheses are empty; write {rule.family!r} for every call")
    if rule.names <= COMMANDS:
        return _with_command(rule, pattern, permits)
    if rule.names <= FILE_CHANGING | READING:
        return Rule(rule.text, rule.family, rule.names, path=parse_path_pattern(pattern, root))
    close = nearest(rule.family, ("Bash", "Edit", "Write", "Read", *COMMANDS, *FILE_CHANGING, *READING))
    hint = f"; did you mean {close!r}?" if close and close != rule.family else ""
    raise ConfigError(f"{rule.family!r} takes no pattern; Bash, Edit, Write, Read and their tools do{hint}")


def _with_command(rule: Rule, pattern: str, permits: bool) -> Rule:
    from chimera.permissions.shell.patterns import parse_pattern  # the reader of shell texts is only loaded for rules

    if pattern in ("*", ":*", "**"):
        return rule
    shell = parse_pattern(pattern)
    if permits and shell.glob is not None and "*" in shell.words[0]:
        raise ConfigError("a rule that allows commands names the program; a wildcard cannot stand in its place")
    return Rule(rule.text, rule.family, rule.names, shell=shell)
