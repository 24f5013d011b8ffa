"""What a session's agent is held to: the rules of the settings, the mode, hooks, and who is asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chimera.assembly.settings import Settings, config_paths
from chimera.cli.gate import PermissionGate
from chimera.cli.options import Mode
from chimera.errors import ConfigError
from chimera.events import EventBus
from chimera.permissions.families import nearest
from chimera.types import PendingApproval

if TYPE_CHECKING:
    from chimera.core.loop_config import PermissionCallback
    from chimera.permissions import PermissionPolicy

__all__ = ["Ask", "held_by_gate", "held_by_loop", "policy_of"]

Ask = Callable[[PendingApproval], None]
"""Decides what it is handed. It may wait for a person."""


def policy_of(settings: Settings, mode: Mode, project: Path, tools: Sequence[Any]) -> PermissionPolicy:
    """Return the policy of a session: the rules of the settings, and the mode for everything else.

    Unless nothing is asked at all, changes to what the agent itself is held to are asked for, whatever is allowed.
    """
    from chimera.permissions import RuleSet, policy_for_mode

    written = settings.permissions
    guarded = [] if mode is Mode.YOLO else _own_rules(project)
    # A sub-agent is held to all that holds here: starting one needs no question of its own.
    allowed = ["delegate"] if any(tool.name == "delegate" for tool in tools) else []
    rules = RuleSet(written.deny, [*written.ask, *guarded], [*written.allow, *allowed], root=project)
    return policy_for_mode(mode, rules, tools=tools, root=project, ask_undeclared=True)


def _own_rules(project: Path) -> list[str]:
    user_folder = re.sub(r"([*?\[\\])", r"\\\1", config_paths(project)[0].parent.absolute().as_posix())
    return ["Edit(/.chimera/**)", "Edit(**/.git/**)", f"Edit(/{user_folder}/**)"]


def held_by_loop(
    settings: Settings, mode: Mode, project: Path, policy: PermissionPolicy, ask: Ask | None, bus: EventBus
) -> dict[str, Any]:
    """Return what holds the default loop: it asks its policy, runs hooks, and publishes what was decided."""
    return {
        "permissions": policy,
        "permission_callback": _approve if mode is Mode.YOLO else _on_the_event_loop(ask),
        "hooks": _hooks(settings, project),
        "event_bus": bus,
    }


def held_by_gate(settings: Settings, loop: str, policy: PermissionPolicy, ask: Ask | None) -> dict[str, Any]:
    """Return what holds a strategy loop, which checks no permissions: a gate that does, behind the plugins' chains.

    Raises `ConfigError` for a loop that there is none of, and for settings that such a loop could not keep.
    """
    from chimera.assembly.loop_adapter import loop_names

    if loop not in (known := loop_names()):
        near = nearest(loop, known)
        hint = f"did you mean {near!r}?" if near else f"choose one of {', '.join(known)}"
        raise ConfigError(f"there is no loop {loop!r}; {hint}")
    if settings.hooks:
        raise ConfigError(f"hooks do not run in the loop {loop!r}: take them out of the settings, or leave --loop out")
    return {"loop": loop, "interceptors": PermissionGate(policy, ask).interceptors()}


def _approve(approval: PendingApproval) -> bool:
    """Nothing is asked in this mode: what a hook wants asked runs. Denials never come here."""
    return True


def _on_the_event_loop(ask: Ask | None) -> PermissionCallback | None:
    """Return `ask` as a callback that waits on the event loop itself, so that nothing else goes on meanwhile and
    Ctrl-C reaches the question."""
    if ask is None:
        return None

    async def callback(approval: PendingApproval) -> None:
        ask(approval)

    return callback


def _hooks(settings: Settings, project: Path) -> Any:
    if not settings.hooks:
        return None
    from chimera.hooks import HookRunner

    return HookRunner.from_settings(settings.hooks, cwd=project)
