"""Permission modes: what is asked, and what runs without a question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from chimera.errors import ConfigError
from chimera.permissions.base import PermissionAction, PermissionDecision, PermissionPolicy
from chimera.permissions.families import FILE_CHANGING, nearest
from chimera.permissions.interactive import InteractivePolicy
from chimera.permissions.policies import AllowAll
from chimera.permissions.rules import RuleSet

__all__ = ["MODES", "AcceptEdits", "NoPrompts", "PermissionMode", "policy_for_mode"]

PermissionMode = Literal["ask", "accept-edits", "yolo"]
MODES: tuple[str, ...] = get_args(PermissionMode)
PROTECTED = ("/.git/**", "/.chimera/**")


class AcceptEdits(PermissionPolicy):
    """Allows changes to files below `root`; `otherwise` decides everything else.

    What steers the agent itself or runs by itself (`.git`, `.chimera`) is left to `otherwise` as well.
    """

    def __init__(self, root: Path | str, otherwise: PermissionPolicy) -> None:
        self.otherwise = otherwise
        edits = [f"{name}(**)" for name in sorted(FILE_CHANGING)]
        protected = [f"{name}({place})" for name in sorted(FILE_CHANGING) for place in PROTECTED]
        self._rules = RuleSet(ask=protected, allow=edits, root=root)

    def evaluate(self, tool_name: str, args: Mapping[str, Any]) -> PermissionAction:
        return self.decide(tool_name, args).action

    def decide(self, tool_name: str, args: Mapping[str, Any]) -> PermissionDecision:
        if self._rules.evaluate(tool_name, args) is PermissionAction.ALLOW:
            return PermissionDecision(PermissionAction.ALLOW, "edits inside the project are accepted")
        return self.otherwise.decide(tool_name, args)


class NoPrompts(PermissionPolicy):
    """Turns every ASK of `inner` into ALLOW and leaves a DENY as it is."""

    def __init__(self, inner: PermissionPolicy) -> None:
        self.inner = inner

    def evaluate(self, tool_name: str, args: Mapping[str, Any]) -> PermissionAction:
        return self.decide(tool_name, args).action

    def decide(self, tool_name: str, args: Mapping[str, Any]) -> PermissionDecision:
        decision = self.inner.decide(tool_name, args)
        if decision.action is not PermissionAction.ASK:
            return decision
        return PermissionDecision(PermissionAction.ALLOW, "prompts are switched off", decision.rule)


def policy_for_mode(
    mode: str,
    rules: RuleSet | None = None,
    *,
    tools: Iterable[object] = (),
    root: Path | str | None = None,
    ask_undeclared: bool = False,
) -> PermissionPolicy:
    """Return the policy of a mode. Rules come first in each of them.

    - `ask`: before every tool that writes or runs commands, as `tools` and the bundled names have it.
    - `accept-edits`: the same, but changes to files below `root` (default: the root of the rules) run.
    - `yolo`: everything runs, ask rules included. Deny rules still deny, and so does doubt whether one matches.

    Raises `ConfigError` for another mode.
    """
    rules = rules if rules is not None else RuleSet(root=root)
    if mode == "yolo":
        return NoPrompts(rules.with_default(AllowAll(), unsure=PermissionAction.DENY))
    asking = InteractivePolicy.for_tools(tools, ask_undeclared=ask_undeclared)
    if mode == "ask":
        return rules.with_default(asking)
    if mode == "accept-edits":
        return rules.with_default(AcceptEdits(rules.root if root is None else root, asking))
    close = nearest(str(mode), MODES)
    hint = f"; did you mean {close!r}?" if close else ""
    raise ConfigError(f"there is no permission mode {mode!r}: it is one of {', '.join(MODES)}{hint}")
