"""From options and settings to a session that is ready to work."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chimera.assembly.settings import Settings, config_paths, load_settings
from chimera.cli.decisions import DecisionLog
from chimera.cli.options import CodeOptions, Mode
from chimera.errors import ConfigError, PluginError
from chimera.events import EventBus
from chimera.permissions.families import nearest
from chimera.types import PendingApproval

if TYPE_CHECKING:
    from chimera.core.loop_config import PermissionCallback
    from chimera.permissions import PermissionPolicy
    from chimera.plugins import PluginManager
    from chimera.session import AgentSession

__all__ = ["Session", "load_plugins", "open_session", "plugin_folders", "policy_of", "project_folder"]

_SPAWNER = "delegate-spawner"


@dataclass(frozen=True, slots=True)
class Session:
    """An assembled agent, with what it was assembled from and the record of what was decided."""

    agent: AgentSession
    manager: PluginManager
    settings: Settings
    mode: Mode
    log: DecisionLog
    project: Path


@contextmanager
def open_session(
    options: CodeOptions, *, default_mode: Mode, ask: PermissionCallback | None = None, streams: bool = True
) -> Iterator[Session]:
    """Assemble what the options and the settings say; plugins are unloaded and the provider is closed at the end.

    `ask` answers what the policy asks; without it such calls are denied. Raises `ConfigError` for whatever is wrong.
    """
    project = project_folder(options.project)
    settings = load_settings(project)
    mode = options.mode or Mode(settings.permission_mode or default_mode)
    manager = _new_manager(project)
    bus = EventBus()
    log = DecisionLog(bus)
    try:
        load_plugins(manager, settings.plugins, settings)
        load_plugins(manager, {name: {} for name in options.plugins if name not in settings.plugins}, settings)
        agent = _assemble(options, settings, manager, bus, project, mode, ask, streams)
        with agent:
            yield Session(agent, manager, settings, mode, log, project)
    finally:
        log.close()
        for name in reversed(list(manager.plugins)):
            manager.unload(name)


def project_folder(project: Path) -> Path:
    """Return the absolute folder. Raises `ConfigError` when there is none."""
    folder = project.expanduser().resolve()
    if not folder.is_dir():
        raise ConfigError(f"the project folder {str(folder)!r} does not exist")
    return folder


def _assemble(
    options: CodeOptions,
    settings: Settings,
    manager: PluginManager,
    bus: EventBus,
    project: Path,
    mode: Mode,
    ask: PermissionCallback | None,
    streams: bool,
) -> AgentSession:
    from chimera.assembly.presets import get_preset
    from chimera.session import AgentSession

    preset = options.preset or settings.preset or "coding_agent"
    extra = _delegation(manager)
    tools = [*get_preset(preset).tools(project), *extra, *manager.tools]
    return AgentSession(
        options.model or settings.model,
        project,
        preset,
        interactive=streams,
        base_url=options.base_url or settings.base_url,
        max_turns=options.max_turns or settings.max_turns,
        loop=_checked_loop(options.loop),
        permissions=policy_of(settings, mode, project, tools),
        permission_callback=_approve if mode is Mode.YOLO else ask,
        hooks=_hooks(settings, project),
        event_bus=bus,
        manager=manager,
        extra_tools=extra,
    )


def _approve(approval: PendingApproval) -> bool:
    """Nothing is asked in this mode: what a hook wants asked runs. Denials never come here."""
    return True


def plugin_folders(project: Path) -> list[Path]:
    """Return the folders of the user and of the project that plugins may lie in."""
    return [path.parent / "plugins" for path in config_paths(project)]


def _new_manager(project: Path) -> PluginManager:
    from chimera.plugins import PluginManager

    return PluginManager(plugin_folders(project))


def load_plugins(manager: PluginManager, wanted: Mapping[str, Mapping[str, Any]], settings: Settings) -> None:
    """Load plugins with their options. Raises `PluginError` that names the file which asked for one."""
    for name, options in wanted.items():
        try:
            manager.load(name, **options)
        except PluginError as problem:
            place = settings.sources.get(f"plugins.{name}")
            raise PluginError(f"{place[-1]}: 'plugins.{name}': {problem}" if place else str(problem)) from problem


def _delegation(manager: PluginManager) -> list[Any]:
    """Return the delegate tool when a plugin rewrites calls into calls of it and nobody else brings one."""
    if _SPAWNER not in manager.plugins or any(tool.name == "delegate" for tool in manager.tools):
        return []
    from chimera.tools.delegate import DelegateTool

    return [DelegateTool()]


def _checked_loop(name: str | None) -> str | None:
    if name is None:
        return None
    loops: Sequence[str] = ()
    if find_spec("chimera.assembly.loop_adapter") is not None:
        from importlib import import_module

        loops = tuple(import_module("chimera.assembly.loop_adapter").REAL_LOOPS)
    if name in loops:
        return name
    near = nearest(name, loops)
    known = f"choose one of {', '.join(loops)}" if loops else "only the default loop is installed"
    raise ConfigError(f"there is no loop {name!r}; " + (f"did you mean {near!r}?" if near else known))


def policy_of(settings: Settings, mode: Mode, project: Path, tools: Sequence[Any]) -> PermissionPolicy:
    """Return the policy of a session: the rules of the settings, and the mode for everything else.

    Unless nothing is asked at all, changes to what the agent itself is held to are asked for, whatever is allowed.
    """
    from chimera.permissions import RuleSet, policy_for_mode

    written = settings.permissions
    guarded = [] if mode is Mode.YOLO else _own_rules(project)
    allowed = ["delegate"] if any(tool.name == "delegate" for tool in tools) else []
    rules = RuleSet(written.deny, [*written.ask, *guarded], [*written.allow, *allowed], root=project)
    return policy_for_mode(mode, rules, tools=tools, root=project, ask_undeclared=True)


def _own_rules(project: Path) -> list[str]:
    user_folder = re.sub(r"([*?\[\\])", r"\\\1", config_paths(project)[0].parent.absolute().as_posix())
    return ["Edit(/.chimera/**)", "Edit(**/.git/**)", f"Edit(/{user_folder}/**)"]


def _hooks(settings: Settings, project: Path) -> Any:
    if not settings.hooks:
        return None
    from chimera.hooks import HookRunner

    return HookRunner.from_settings(settings.hooks, cwd=project)
