"""Loading plugins, swapping them for newer versions, and letting them go."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from threading import RLock
from typing import Any

from chimera.errors import PluginError
from chimera.plugins.base import BasePlugin
from chimera.plugins.failures import described
from chimera.plugins.fresh import FreshModules, attribute
from chimera.plugins.ledger import Owner, Transaction
from chimera.plugins.registry import ComponentRegistry, PluginExtensionRegistry, Skill
from chimera.plugins.sources import Source, find_sources

__all__ = ["PluginManager"]


@dataclass(slots=True)
class _Loaded:
    plugin: BasePlugin
    owner: Owner
    place: str
    source: Source | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def module(self) -> str:
        return self.source.module if self.source else type(self.plugin).__module__

    def __str__(self) -> str:
        return f"{type(self.plugin).__qualname__} from {self.place}"


class PluginManager:
    """Loads plugins and holds what they bring. May be used from several threads.

    `folders` are searched for plugins besides the entry points of the group `chimera.plugins`: each `NAME.py`, and
    each folder `NAME` with an `__init__.py`, is one. What is found there runs with all rights of this process.

    Loading is all or nothing: a plugin whose activation raises leaves nothing behind, and nobody ever sees half of
    one. Unloading withdraws exactly what loading brought.
    """

    def __init__(self, folders: Iterable[str | Path] = ()) -> None:
        self.components = ComponentRegistry()
        self._folders = [Path(folder) for folder in folders]
        self._loaded: dict[str, _Loaded] = {}
        self._lock = RLock()

    @property
    def plugins(self) -> dict[str, BasePlugin]:
        """The loaded plugins by name, in the order in which they were loaded."""
        return {name: loaded.plugin for name, loaded in self._loaded.items()}

    @property
    def tools(self) -> list[Any]:
        """The tools of all loaded plugins."""
        return self.components.tools

    def get_all_skills(self) -> list[Skill]:
        """Return the skills of all loaded plugins."""
        return self.components.skills

    def discover(self) -> list[str]:
        """Return the names of all plugins that can be loaded, sorted. Imports none, so that a broken one is listed."""
        return sorted(find_sources(self._folders))

    def load(self, name: str, **options: Any) -> BasePlugin:
        """Load the plugin that an entry point or a file is named after, and return it. `options` go to its class.

        Raises `PluginError` when there is no such plugin, when it is loaded already, when it cannot be imported or
        made, and when its activation raises.
        """
        with self._lock:
            source = self._source(name)
            return self._activate(name, lambda: _make(source, options), source.place, source, options)

    def load_plugin(self, plugin: BasePlugin) -> BasePlugin:
        """Load a plugin that was made already, and return it.

        Raises `PluginError` when one of its name is loaded already or its activation raises.
        """
        if not isinstance(plugin, BasePlugin):
            what = f"an instance of {plugin.__name__}, not the class" if isinstance(plugin, type) else "a BasePlugin"
            raise PluginError(f"load_plugin takes {what}")
        with self._lock:
            place = f"the module {type(plugin).__module__}"
            return self._activate(_name_of(plugin), lambda: plugin, place, None, {})

    def load_all(self) -> list[str]:
        """Load every plugin that can be discovered and is not loaded yet, with its default options.

        Returns the names of those that were loaded. Raises `PluginError` at the end when some could not be; the
        others stay loaded.
        """
        done, failed = [], []
        with self._lock:
            for name in [name for name in self.discover() if self._find(name) is None]:
                try:
                    self.load(name)
                    done.append(name)
                except PluginError as exc:
                    failed.append(exc)
        if failed:
            raise PluginError("; ".join(map(str, failed))) from failed[0]
        return done

    def unload(self, name: str) -> None:
        """Withdraw everything that the plugin brought, at one moment, then call its `deactivate`.

        Raises `KeyError` when it is not loaded, and `PluginError` when its `deactivate` raised: it is unloaded then
        all the same.
        """
        with self._lock:
            key, loaded = self._loaded_as(name)
            Transaction(Owner(key), replacing=loaded.owner).commit(*self._ledgers)
            del self._loaded[key]
            try:
                with Transaction(loaded.owner).open():
                    loaded.plugin.deactivate()
            except Exception as exc:
                raise PluginError(f"plugin {key!r} is unloaded, but its deactivate raised: {described(exc)}") from exc

    def reload(self, name: str) -> BasePlugin:
        """Swap a plugin for what its source on disk says now, and return the new one.

        Its modules are imported anew, an instance is made with the options of the old one and activated, and then, at
        one moment, it stands where the old one stood. Raises `KeyError` when the plugin is not loaded, and
        `PluginError` with file, line and reason when anything fails: the old one is in force then as before.
        """
        with self._lock:
            key, old = self._loaded_as(name)
            _check_importable(old)
            modules = FreshModules(old.module)
            try:
                plugin = self._swap(key, old, modules)
            except PluginError as exc:
                raise PluginError(f"plugin {key!r} was not reloaded: {exc}") from exc
            except Exception as exc:
                raise PluginError(f"plugin {key!r} was not reloaded: {described(exc)}") from exc
            return plugin

    def _swap(self, key: str, old: _Loaded, modules: FreshModules) -> BasePlugin:
        owner = Owner(key, rank=old.owner.rank)
        transaction = Transaction(owner, replacing=old.owner)
        try:
            with transaction.open():
                owner.plugin = plugin = modules.run(lambda: _remake(old))
                if _name_of(plugin) != key:
                    raise PluginError(f"its new version calls itself {plugin.name!r}")
                plugin.activate(self.components)
            with Transaction(old.owner).open():
                old.plugin.deactivate()
            transaction.commit(*self._ledgers)
        except BaseException:
            modules.restore()
            raise
        self._loaded[key] = _Loaded(plugin, owner, old.place, old.source, old.options)
        return plugin

    def _activate(
        self, name: str, make: Callable[[], BasePlugin], place: str, source: Source | None, options: dict[str, Any]
    ) -> BasePlugin:
        self._check_free(name, place)
        owner = Owner(name)
        transaction = Transaction(owner)
        try:
            with transaction.open():
                owner.plugin = plugin = make()
                owner.name = key = _name_of(plugin)
                self._check_free(key, place)
                plugin.activate(self.components)
            transaction.commit()
        except PluginError as exc:
            raise PluginError(f"plugin {name!r} was not loaded: {exc}") from exc
        except Exception as exc:
            raise PluginError(f"plugin {name!r} was not loaded ({place}): {described(exc)}") from exc
        self._loaded[key] = _Loaded(plugin, owner, place, source, dict(options))
        return plugin

    @property
    def _ledgers(self) -> tuple[Any, ...]:
        return PluginExtensionRegistry._ledger, self.components._ledger

    def _source(self, name: str) -> Source:
        found = find_sources(self._folders)
        sources = found.get(name, [])
        if not sources:
            close = get_close_matches(name, found, n=3)
            hint = (
                f"did you mean {' or '.join(close)}?" if close else f"there are: {', '.join(sorted(found)) or 'none'}"
            )
            raise PluginError(f"there is no plugin {name!r}; {hint}")
        if len(sources) > 1:
            places = " and ".join(source.place for source in sources)
            raise PluginError(f"the plugin {name!r} is in several places, {places}; load one with load_plugin")
        return sources[0]

    def _find(self, name: str) -> str | None:
        """Return the key of a loaded plugin, by its own name or the name that it was loaded by."""
        if name in self._loaded:
            return name
        return next((key for key, item in self._loaded.items() if item.source and item.source.name == name), None)

    def _loaded_as(self, name: str) -> tuple[str, _Loaded]:
        key = self._find(name)
        if key is None:
            raise KeyError(f"plugin {name!r} is not loaded; loaded are: {', '.join(self._loaded) or 'none'}")
        return key, self._loaded[key]

    def _check_free(self, name: str, place: str) -> None:
        key = self._find(name)
        if key is not None:
            raise PluginError(f"{place} brings a plugin {name!r}, and {self._loaded[key]} is loaded under that name")


def _make(source: Source, options: dict[str, Any]) -> BasePlugin:
    target = source.target()
    if isinstance(target, BasePlugin):
        if options:
            raise PluginError(f"{source.place} holds a plugin that is made already and takes no options")
        return target
    if not callable(target):
        raise PluginError(f"{source.place} holds {type(target).__name__}, which is no plugin and makes none")
    _check_options(target, options, source.place)
    plugin = target(**options)
    if not isinstance(plugin, BasePlugin):
        raise PluginError(f"{source.place} makes {type(plugin).__name__}, which is no BasePlugin")
    return plugin


def _check_options(target: Callable[..., Any], options: dict[str, Any], place: str) -> None:
    if not options:
        return
    parameters = inspect.signature(target).parameters
    if any(item.kind is item.VAR_KEYWORD for item in parameters.values()):
        return
    for name in options:
        if name not in parameters:
            close = get_close_matches(name, parameters, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"its options are: {', '.join(parameters) or 'none'}"
            raise PluginError(f"{place} has no option {name!r}; {hint}")


def _remake(old: _Loaded) -> BasePlugin:
    if old.source is not None:
        return _make(old.source, old.options)
    kind = type(old.plugin)
    new_kind = attribute(importlib.import_module(kind.__module__), kind.__qualname__)
    args, kwargs = old.plugin._init
    plugin: BasePlugin = new_kind(*args, **kwargs)
    return plugin


def _check_importable(loaded: _Loaded) -> None:
    kind = type(loaded.plugin)
    if loaded.source is None and ("<locals>" in kind.__qualname__ or kind.__module__ == "__main__"):
        raise PluginError(f"{loaded} cannot be imported again: its class is not in a module that can be imported")


def _name_of(plugin: BasePlugin) -> str:
    name = plugin.name
    if not isinstance(name, str) or not name.strip():
        raise PluginError(f"{type(plugin).__qualname__} needs a name, not {name!r}")
    return name
