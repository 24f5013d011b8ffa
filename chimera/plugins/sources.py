"""Where plugins come from: entry points of installed packages, and files or folders of a project."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from chimera.errors import PluginError
from chimera.plugins.base import BasePlugin
from chimera.plugins.fresh import FreshLoader, FreshModules

__all__ = ["GROUP", "EntryPointSource", "FileSource", "Source", "find_sources", "source_at"]

GROUP = "chimera.plugins"
_NAME = re.compile(r"\w[\w.-]*\Z")


@dataclass(frozen=True, slots=True)
class EntryPointSource:
    """A plugin of an installed package: the entry point names a class, a function that makes one, or an instance."""

    name: str
    point: EntryPoint

    @property
    def place(self) -> str:
        package = self.point.dist.name if self.point.dist else "?"
        return f"the entry point {self.point.value!r} of the package {package!r}"

    @property
    def module(self) -> str:
        return self.point.module

    def target(self) -> Any:
        """Import what the entry point names. Raises whatever its import raises."""
        return self.point.load()


@dataclass(frozen=True, slots=True)
class FileSource:
    """A plugin of a project: `NAME.py`, or a folder `NAME` with an `__init__.py`.

    The module holds one subclass of `BasePlugin`, or says which thing is the plugin in a variable `plugin`.
    """

    name: str
    path: Path

    @property
    def place(self) -> str:
        return f"the file {self.path}"

    @property
    def module(self) -> str:
        digest = sha256(str(self.path.resolve()).encode()).hexdigest()[:12]
        return f"chimera_plugin_{digest}_{re.sub(r'[^A-Za-z0-9_]', '_', self.name)}"

    def target(self) -> Any:
        """Import the file as it is now and return its plugin. Raises whatever its import raises."""
        return FreshModules(self.module).run(self._plugin)

    def _plugin(self) -> Any:
        module = self._import()
        return module.plugin if hasattr(module, "plugin") else _only_plugin_of(module, self.place)

    def _import(self) -> ModuleType:
        loader = FreshLoader(self.module, str(self.path))
        folder = [str(self.path.parent)] if self.path.name == "__init__.py" else None
        spec = spec_from_file_location(self.module, self.path, loader=loader, submodule_search_locations=folder)
        assert spec is not None
        module = sys.modules[self.module] = module_from_spec(spec)
        loader.exec_module(module)
        return module


Source = EntryPointSource | FileSource


def find_sources(folders: Iterable[Path]) -> dict[str, list[Source]]:
    """Return all plugins that can be loaded, by name, without importing any. A name in two places has two sources."""
    found: dict[str, list[Source]] = {}
    for point in _distinct(entry_points(group=GROUP)):
        found.setdefault(point.name, []).append(EntryPointSource(point.name, point))
    for folder in folders:
        for source in _in_folder(folder):
            found.setdefault(source.name, []).append(source)
    return found


def source_at(path: Path) -> FileSource:
    """Return the source of a plugin in a file or a folder. Raises `PluginError` when there is none."""
    path = path.absolute()
    file = path / "__init__.py" if path.is_dir() else path
    if not file.is_file() or file.suffix != ".py":
        raise PluginError(f"{path} is no plugin: that is a file that ends in .py, or a folder with an __init__.py")
    return FileSource(file.parent.name if file.name == "__init__.py" else file.stem, file)


def _distinct(points: Iterable[EntryPoint]) -> list[EntryPoint]:
    """Leave out entry points that two records of one package both list, as an editable installation may."""
    return list({(point.name, point.value): point for point in points}.values())


def _in_folder(folder: Path) -> Sequence[FileSource]:
    if not folder.is_dir():
        return ()
    found = []
    for path in sorted(folder.iterdir()):
        if not _NAME.match(path.stem) or path.name.startswith("_"):
            continue
        if path.is_dir() and (path / "__init__.py").is_file():
            found.append(FileSource(path.name, path / "__init__.py"))
        elif path.suffix == ".py" and path.is_file():
            found.append(FileSource(path.stem, path))
    return found


def _only_plugin_of(module: ModuleType, place: str) -> type[BasePlugin]:
    prefix = module.__name__
    found = {
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, BasePlugin)
        and not inspect.isabstract(value)
        and (value.__module__ == prefix or value.__module__.startswith(f"{prefix}."))
    }
    if len(found) == 1:
        return found.pop()
    names = ", ".join(sorted(value.__name__ for value in found)) or "none"
    raise PluginError(f"{place} must define one plugin or name it in a variable `plugin`; it defines: {names}")
