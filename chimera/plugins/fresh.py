"""Importing a plugin's modules from the source that is on disk now, with a way back."""

from __future__ import annotations

import importlib
import linecache
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, TypeVar

from chimera.plugins.content import Content, mentioned

__all__ = ["FreshLoader", "FreshModules", "attribute"]

T = TypeVar("T")


class FreshLoader(SourceFileLoader):
    """Compiles the source each time, and remembers what it compiled. Cached bytecode goes by size and second, and would
    hide a quick second edit."""

    source: bytes | None = None

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        self.source = self.get_data(path)
        code: CodeType = self.source_to_code(self.source, path)
        return code


class _FreshFinder(MetaPathFinder):
    def __init__(self, covers: Callable[[str], bool]) -> None:
        self._covers = covers

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not self._covers(fullname):
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = FreshLoader(fullname, spec.loader.path)
        return spec


@contextmanager
def _fresh_sources(covers: Callable[[str], bool]) -> Iterator[None]:
    """Import the modules that `covers` names from their sources, past all caches, while inside."""
    finder = _FreshFinder(covers)
    importlib.invalidate_caches()
    linecache.checkcache()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class FreshModules:
    """The modules of one plugin, imported anew.

    These are the plugin's module, the package around it and what else that package has, as far as the plugin imports
    it, also inside functions. Of Chimera itself, only modules beside the plugin's are. `restore` puts everything back.
    """

    def __init__(self, module: str) -> None:
        self._module = module
        known = sys.modules.get(module)
        self._package = (known.__package__ if known is not None else "") or module
        self._kept = self._package if self._package.split(".")[0] == "chimera" else None
        self._before = {name: sys.modules[name] for name in list(sys.modules) if self._covers(name)}

    def run(self, load: Callable[[], T]) -> T:
        """Call `load`, which imports the plugin, and return what it returns. Restores everything when it raises."""
        for name in self._before:
            del sys.modules[name]
        try:
            with _fresh_sources(self._covers):
                result = load()
                gone = self._import_late()
        except BaseException:
            self.restore()
            raise
        unused = {name: module for name, module in self._before.items() if name not in {*sys.modules, *gone}}
        self._put_back(unused)  # what the plugin does not import has not changed
        return result

    def content(self) -> Content:
        """Return what the plugin is made of, as it stands in memory now."""
        return Content.of(self._module, self._covers)

    def _import_late(self) -> set[str]:
        """Import what the old modules had imported later on, inside a function say. Returns what is not there now."""
        gone: set[str] = set()
        while late := self._late() - gone:
            for name in late:
                try:
                    importlib.import_module(name)
                except ModuleNotFoundError as exc:
                    if exc.name != name:
                        raise
                    gone.add(name)
        return gone

    def _late(self) -> set[str]:
        return {name for name in mentioned(self._module, self._covers) if name in self._before.keys() - sys.modules}

    def restore(self) -> None:
        """Put the modules back that were there before."""
        for name in [name for name in sys.modules if self._covers(name)]:
            del sys.modules[name]
        self._put_back(self._before)

    @staticmethod
    def _put_back(modules: dict[str, ModuleType]) -> None:
        sys.modules.update(modules)
        for name, module in modules.items():
            parent, _, child = name.rpartition(".")
            if parent in sys.modules:
                setattr(sys.modules[parent], child, module)

    def _covers(self, name: str) -> bool:
        if name == self._kept:
            return False
        return name in (self._module, self._package) or name.startswith(f"{self._package}.")


def attribute(module: ModuleType, path: str) -> Any:
    """Return what a dotted `path` names in `module`. Raises `AttributeError`."""
    value: Any = module
    for part in path.split("."):
        value = getattr(value, part)
    return value
