"""Writing rules into the project's settings, with everything else in the file left as it is."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from chimera.assembly.settings import config_paths, load_settings
from chimera.errors import ConfigError
from chimera.permissions import RuleSet

__all__ = ["allow_in_project"]

_PRIVATE = 0o600


def allow_in_project(project: Path, rules: Sequence[str]) -> Path:
    """Add `rules` to what `.chimera/config.toml` of the project allows, and return the file.

    Comments and order stay. Raises `ConfigError`, with the file as it was, when it is not what it should be or cannot
    be written.
    """
    path = Path(os.path.realpath(config_paths(project)[1]))
    RuleSet(allow=rules, root=project)
    try:
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        load_settings(project)
        _replace(path, _with_rules(before, rules, path))
    except OSError as problem:
        raise ConfigError(f"{path}: cannot be written: {problem.strerror}") from problem
    return path


def _with_rules(text: str, rules: Sequence[str], path: Path) -> str:
    try:
        import tomlkit
        from tomlkit.exceptions import TOMLKitError
    except ModuleNotFoundError as problem:
        raise ConfigError("writing settings needs tomlkit: pip install 'chimera-harness[tui]'") from problem
    try:
        document: Any = tomlkit.parse(text)
        table = document.setdefault("permissions", tomlkit.table())
        listed = table.setdefault("allow", tomlkit.array())
        for rule in rules:
            if rule not in listed:
                listed.append(rule)
    except TOMLKitError as problem:
        raise ConfigError(f"{path}: this is not TOML: {problem}") from problem
    return tomlkit.dumps(document)


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".config-")
    fresh = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.chmod(path.stat().st_mode & 0o777 if path.exists() else _PRIVATE)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
