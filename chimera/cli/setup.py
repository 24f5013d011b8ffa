"""From options and settings to a session that is ready to work."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chimera.assembly.settings import Settings, config_paths, load_settings
from chimera.cli.decisions import DecisionLog
from chimera.cli.holding import Ask, held_by_gate, held_by_loop, policy_of
from chimera.cli.options import CodeOptions, Mode
from chimera.cli.recording import recording
from chimera.errors import ConfigError, PluginError
from chimera.events import EventBus

if TYPE_CHECKING:
    from chimera.plugins import PluginManager
    from chimera.session import AgentSession

__all__ = [
    "Bench",
    "Session",
    "load_plugins",
    "open_bench",
    "open_session",
    "plugin_folders",
    "project_folder",
    "unload_plugins",
]

_log = logging.getLogger("chimera.cli")
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
    bus: EventBus
    options: CodeOptions


@dataclass(frozen=True, slots=True)
class Bench:
    """What agents are assembled from: options, settings, the mode, and the plugins that are loaded."""

    options: CodeOptions
    settings: Settings
    mode: Mode
    manager: PluginManager
    project: Path

    def assemble(self, bus: EventBus, ask: Ask | None, **changes: Any) -> AgentSession:
        """Make an agent for the project. `changes` are arguments of `AgentSession` that differ from what is set."""
        from chimera.assembly.presets import get_preset
        from chimera.session import AgentSession

        options, settings = self.options, self.settings
        preset = options.preset or settings.preset or "coding_agent"
        extra = _delegation(self.manager)
        arguments: dict[str, Any] = {
            "model": options.model or settings.model,
            "project_dir": self.project,
            "preset": preset,
            "base_url": options.base_url or settings.base_url,
            "max_turns": options.max_turns or settings.max_turns,
            "manager": self.manager,
            "extra_tools": extra,
            **changes,
        }
        tools = [*get_preset(preset).tools(self.project), *extra, *self.manager.tools]
        return AgentSession(**arguments, **self._held(tools, bus, ask))

    def _held(self, tools: Sequence[Any], bus: EventBus, ask: Ask | None) -> dict[str, Any]:
        policy = policy_of(self.settings, self.mode, self.project, tools)
        if self.options.loop is None:
            return held_by_loop(self.settings, self.mode, self.project, policy, ask, bus)
        return held_by_gate(self.settings, self.options.loop, policy, ask)


@contextmanager
def open_bench(options: CodeOptions, *, default_mode: Mode) -> Iterator[Bench]:
    """Read the settings and load the plugins, which are unloaded at the end. What killed races left is removed first.

    Raises `ConfigError` or `PluginError` for what is wrong in the options and the settings.
    """
    from chimera.assembly.races import races_folder, sweep
    from chimera.plugins import PluginManager

    sweep(races_folder())
    project = project_folder(options.project)
    settings = load_settings(project)
    mode = options.mode or Mode(settings.permission_mode or default_mode)
    manager = PluginManager(plugin_folders(project))
    try:
        load_plugins(manager, settings.plugins, settings)
        load_plugins(manager, {name: {} for name in options.plugins if name not in settings.plugins}, settings)
        yield Bench(options, settings, mode, manager, project)
    finally:
        unload_plugins(manager)


@contextmanager
def open_session(
    options: CodeOptions, *, default_mode: Mode, ask: Ask | None = None, streams: bool = True
) -> Iterator[Session]:
    """Assemble what the options and the settings say; plugins are unloaded and the provider is closed at the end.

    `ask` decides what the policy asks; without it such calls are denied. The session is recorded, or a recorded one is
    gone on with, as the options say. Raises what `open_bench` and `recording` raise.
    """
    bus = EventBus()
    log = DecisionLog(bus, follows_events=options.loop is not None)
    try:
        with (
            open_bench(options, default_mode=default_mode) as bench,
            recording(options, bench.settings, bench.project) as record,
            bench.assemble(bus, ask, model=record.model, interactive=streams, journal=record.journal) as agent,
        ):
            record.note_model(agent.model)
            yield Session(agent, bench.manager, bench.settings, bench.mode, log, bench.project, bus, options)
    finally:
        log.close()


def project_folder(project: Path) -> Path:
    """Return the absolute folder. Raises `ConfigError` when there is none."""
    folder = project.expanduser().resolve()
    if not folder.is_dir():
        raise ConfigError(f"the project folder {str(folder)!r} does not exist")
    return folder


def plugin_folders(project: Path) -> list[Path]:
    """Return the folders of the user and of the project that plugins may lie in."""
    return [path.parent / "plugins" for path in config_paths(project)]


def load_plugins(manager: PluginManager, wanted: Mapping[str, Mapping[str, Any]], settings: Settings) -> None:
    """Load plugins with their options. Raises `PluginError` that names the file which asked for one."""
    for name, options in wanted.items():
        try:
            manager.load(name, **options)
        except PluginError as problem:
            place = settings.sources.get(f"plugins.{name}")
            raise PluginError(f"{place[-1]}: 'plugins.{name}': {problem}" if place else str(problem)) from problem


def unload_plugins(manager: PluginManager) -> None:
    """Unload everything, the last one first. One that does not go quietly is logged: it is unloaded all the same."""
    for name in reversed(list(manager.plugins)):
        try:
            manager.unload(name)
        except PluginError as problem:
            _log.warning("%s", problem)


def _delegation(manager: PluginManager) -> list[Any]:
    """Return the delegate tool when a plugin rewrites calls into calls of it and nobody else brings one."""
    if _SPAWNER not in manager.plugins or any(tool.name == "delegate" for tool in manager.tools):
        return []
    from chimera.tools.delegate import DelegateTool

    return [DelegateTool()]
