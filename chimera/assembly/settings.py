"""Settings: what the configuration files and the environment say, merged, with where each came from."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chimera.errors import ConfigError

__all__ = ["RuleLists", "Settings", "config_paths", "load_settings"]

CONFIG_FOLDER = ".chimera"
CONFIG_NAME = "config.toml"
SCALARS = ("model", "base_url", "preset", "max_turns", "permission_mode")
_RULES = ("deny", "ask", "allow")


@dataclass(frozen=True, slots=True)
class RuleLists:
    """Permission rules as written; see `chimera.permissions` for what they mean."""

    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.deny or self.ask or self.allow)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one project for one user. None and empty mean that nobody said anything.

    `permission_mode` is `ask`, `accept-edits` or `yolo`. `plugins` maps names to options. `hooks` maps events to
    groups in the format of `chimera.hooks`. `sources` maps each key that somebody set (`model`, `permissions.deny`,
    `plugins.redactor`, `hooks.PreToolUse`) to the files or variables that did, the deciding one last.
    """

    model: str | None = None
    base_url: str | None = None
    preset: str | None = None
    max_turns: int | None = None
    permission_mode: str | None = None
    permissions: RuleLists = field(default_factory=RuleLists)
    plugins: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    hooks: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def config_paths(project_dir: str | Path, user_dir: str | Path | None = None) -> tuple[Path, Path]:
    """Return where the user's file and the project's file are looked for, in this order."""
    if user_dir is None:
        from platformdirs import user_config_path

        user_dir = user_config_path("chimera")
    return Path(user_dir) / CONFIG_NAME, Path(project_dir) / CONFIG_FOLDER / CONFIG_NAME


def load_settings(
    project_dir: str | Path, *, user_dir: str | Path | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """Read the user's file, the project's file and the environment, and merge them; a later one wins.

    Rules and hooks of both files are joined. A plugin that both name has the options of both, the project's winning.
    The environment sets the single values: `CHIMERA_MODEL`, `CHIMERA_BASE_URL`, `CHIMERA_PRESET`, `CHIMERA_MAX_TURNS`,
    `CHIMERA_PERMISSION_MODE`. Raises `ConfigError` for anything that is wrong in any of them.
    """
    from chimera.assembly._settings_file import check_config, read_config

    merge = _Merge()
    for path in config_paths(project_dir, user_dir):
        found = read_config(path)
        if found is not None:
            table = found.model_dump(exclude_unset=True)
            _check_names(table, str(path), project_dir)
            merge.files.append(path)
            merge.add(table, str(path))
    for name, table in _from_environment(os.environ if environ is None else environ):
        check_config(table, name)
        _check_names(table, name, project_dir)
        merge.add(table, name)
    return merge.settings()


def _from_environment(environ: Mapping[str, str]) -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = []
    for key in SCALARS:
        name = f"CHIMERA_{key.upper()}"
        text = environ.get(name, "").strip()
        if text:
            value: str | int = int(text) if key == "max_turns" and text.isascii() and text.isdigit() else text
            found.append((name, {key: value}))
    return found


def _check_names(table: Mapping[str, Any], where: str, project_dir: str | Path) -> None:
    """Check what needs more than a shape: the preset, the rules and the hooks."""
    from chimera.assembly.presets import get_preset
    from chimera.hooks.settings import read_settings
    from chimera.permissions import RuleSet

    key = "preset"
    try:
        if key in table:
            get_preset(table[key])
        for kind, rules in table.get("permissions", {}).items():
            key = f"permissions.{kind}"
            RuleSet(**{kind: rules}, root=project_dir)
        key = "hooks"
        read_settings({"hooks": table.get("hooks", {})})
    except ConfigError as problem:
        raise ConfigError(f"{where}: {key!r}: {problem}") from problem


class _Merge:
    """Collects tables, the least important first."""

    def __init__(self) -> None:
        self.files: list[Path] = []
        self._values: dict[str, Any] = {}
        self._rules: dict[str, list[str]] = {kind: [] for kind in _RULES}
        self._plugins: dict[str, dict[str, Any]] = {}
        self._hooks: dict[str, list[dict[str, Any]]] = {}
        self._sources: dict[str, list[str]] = {}

    def add(self, table: Mapping[str, Any], source: str) -> None:
        for key in SCALARS:
            if table.get(key) is not None:
                self._values[key] = table[key]
                self._note(key, source)
        for kind, rules in table.get("permissions", {}).items():
            self._rules[kind].extend(rules)
            self._note(f"permissions.{kind}", source)
        for name, options in table.get("plugins", {}).items():
            self._plugins[name] = {**self._plugins.get(name, {}), **options}
            self._note(f"plugins.{name}", source)
        for event, groups in table.get("hooks", {}).items():
            self._hooks.setdefault(event, []).extend(groups)
            self._note(f"hooks.{event}", source)

    def _note(self, key: str, source: str) -> None:
        self._sources.setdefault(key, []).append(source)

    def settings(self) -> Settings:
        return Settings(
            **self._values,
            permissions=RuleLists(**{kind: tuple(rules) for kind, rules in self._rules.items()}),
            plugins=self._plugins,
            hooks=self._hooks,
            files=tuple(self.files),
            sources={key: tuple(sources) for key, sources in self._sources.items()},
        )
