"""Rule sets: deny before ask before allow, over every command and every file that a call is made of."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from chimera.errors import ConfigError
from chimera.permissions.base import PermissionAction, PermissionDecision, PermissionPolicy
from chimera.permissions.call import Call, allowing
from chimera.permissions.match import Match
from chimera.permissions.paths import absolute
from chimera.permissions.rule import Rule, parse_rule

__all__ = ["RuleSet"]


class RuleSet(PermissionPolicy):
    """Rules in the format that coding-agent users know, such as `Bash(git status:*)`, `Edit(src/**)`, `write_file`.

    - A call is denied when a rule in `deny` matches any part of it: any command in a shell text however it is wrapped,
      any file of a patch. Rules in `ask` come next and match in the same way.
    - It is allowed when rules in `allow` cover all of its parts and nothing in it is uncertain.
    - Otherwise `default` decides: an action, or another policy.
    - A call that may or may not match a deny rule gets `unsure`: ASK, or DENY where nobody can be asked.

    `root` is the folder that relative paths start from (default: the current one), `tools` the names that exist, which
    makes every other name an error. Raises `ConfigError` for a rule that can never match.

    Shell texts are read as bash reads them. A program or a file that is named inside another word may be meant, and so
    may any by a word that is known only when it runs: that is uncertain. Not looked into: script files, names that
    programs in other languages put together, files that a program opens without being told (`make`, hard links). Such
    limits call for a sandbox, not for more rules.
    """

    def __init__(
        self,
        deny: Iterable[str] = (),
        ask: Iterable[str] = (),
        allow: Iterable[str] = (),
        *,
        default: PermissionAction | PermissionPolicy = PermissionAction.ASK,
        root: Path | str | None = None,
        tools: Iterable[str] | None = None,
        unsure: PermissionAction = PermissionAction.ASK,
    ) -> None:
        self.root = absolute(root)
        known = None if tools is None else frozenset(tools)
        self.deny = self._rules(deny, "deny", known)
        self.ask = self._rules(ask, "ask", known)
        self.allow = self._rules(allow, "allow", known)
        self.default = default
        if unsure is PermissionAction.ALLOW:
            raise ConfigError("what may break a deny rule cannot be allowed; unsure is ASK or DENY")
        self.unsure: PermissionAction = unsure

    def _rules(self, texts: Iterable[str], kind: str, tools: frozenset[str] | None) -> tuple[Rule, ...]:
        if isinstance(texts, str):
            raise ConfigError(f"the {kind} rules must be a list of rules, not the text {texts!r}")
        return tuple(parse_rule(text, root=self.root, tools=tools, permits=kind == "allow") for text in texts)

    def with_default(
        self, default: PermissionAction | PermissionPolicy, *, unsure: PermissionAction | None = None
    ) -> RuleSet:
        """Return the same rules with another answer for calls that no rule speaks of, and for uncertain ones."""
        other = copy.copy(self)
        other.default = default
        other.unsure = unsure or self.unsure
        return other

    def evaluate(self, tool_name: str, args: Mapping[str, Any]) -> PermissionAction:
        return self.decide(tool_name, args).action

    def decide(self, tool_name: str, args: Mapping[str, Any]) -> PermissionDecision:
        call = Call(tool_name, args, self.root)
        denied, why = _search(self.deny, call)
        if denied is not None and not why:
            return _decision(PermissionAction.DENY, denied, "denies it")
        asked, unclear = _search(self.ask, call)
        if denied is not None and (self.unsure is PermissionAction.DENY or asked is None or unclear):
            return _decision(self.unsure, denied, f"may forbid it: {why}")
        if asked is not None:
            return _decision(PermissionAction.ASK, asked, f"may ask: {unclear}" if unclear else "asks before it")
        allowed = allowing(self.allow, call)
        if allowed:
            names = ", ".join(dict.fromkeys(rule.text for rule in allowed))
            return PermissionDecision(PermissionAction.ALLOW, f"allowed by {names}", names)
        return self._otherwise(call)

    def _otherwise(self, call: Call) -> PermissionDecision:
        if isinstance(self.default, PermissionPolicy):
            return self.default.decide(call.tool, call.args)
        reason = "" if self.default is PermissionAction.ALLOW else f"no rule speaks of this use of {call.tool}"
        return PermissionDecision(self.default, reason)


def _search(rules: Iterable[Rule], call: Call) -> tuple[Rule | None, str]:
    """Return the first rule that matches; else the first that may match, and why that is not certain."""
    maybe, reason = None, ""
    for rule in rules:
        match, why = call.meets(rule)
        if match is Match.YES:
            return rule, ""
        if match is Match.MAYBE and maybe is None:
            maybe, reason = rule, why
    return maybe, reason


def _decision(action: PermissionAction, rule: Rule, words: str) -> PermissionDecision:
    return PermissionDecision(action, f"the rule {rule.text} {words}", rule.text)
