"""Loading plugins, swapping them for newer versions, and letting them go."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from chimera.core.versions import PolicyVersion, set_interceptor_version
from chimera.errors import PluginError
from chimera.plugins.base import BasePlugin
from chimera.plugins.failures import described, saying
from chimera.plugins.fresh import FreshModules
from chimera.plugins.guarded import check_synchronous, consent, within
from chimera.plugins.handover import hand_over
from chimera.plugins.ledger import Owner, Transaction
from chimera.plugins.making import Loaded, check_importable, make, name_of, remake
from chimera.plugins.registry import INTERCEPTOR_SEAMS, ComponentRegistry, PluginExtensionRegistry, Skill
from chimera.plugins.sources import Source, find_sources, source_at

if TYPE_CHECKING:
    from chimera.plugins.watching import PluginWatch

__all__ = ["PluginManager", "Swap"]

_log = logging.getLogger("chimera.plugins")
_changing = RLock()
"""One lock for all managers: two may have the same plugin, and its modules are there once."""


@dataclass(frozen=True, slots=True)
class Swap:
    """What a reload did: the plugin that is in force now, its version, the one before, and warnings."""

    plugin: BasePlugin
    version: str
    before: str
    notes: tuple[str, ...] = ()


class PluginManager:
    """Loads plugins and holds what they bring. May be used from several threads.

    `folders` are searched for plugins besides the entry points of the group `chimera.plugins`: each `NAME.py`, and
    each folder `NAME` with an `__init__.py`, is one. What is found there runs with all rights of this process.

    Loading is all or nothing: a plugin whose activation raises leaves nothing behind, and nobody ever sees half of
    one. Unloading withdraws exactly what loading brought. `patience` is how many seconds a plugin may take to check
    itself, to hand over its state, and to let go.
    """

    def __init__(self, folders: Iterable[str | Path] = (), *, patience: float = 5.0) -> None:
        self.components = ComponentRegistry()
        self.patience = patience
        self._folders = [Path(folder) for folder in folders]
        self._loaded: dict[str, Loaded] = {}
        self._counts: Counter[str] = Counter()

    @property
    def plugins(self) -> dict[str, BasePlugin]:
        """The loaded plugins by name, in the order in which they were loaded."""
        return {name: loaded.plugin for name, loaded in self._loaded.items()}

    @property
    def versions(self) -> dict[str, str]:
        """The versions of the loaded plugins by name, as events and records state them."""
        return {name: str(loaded.version) for name, loaded in self._loaded.items()}

    @property
    def named(self) -> dict[str, dict[str, Any]]:
        """The options of the plugins that were loaded by name, by the name that each was loaded by."""
        return {item.source.name: dict(item.options) for item in self._loaded.values() if item.source}

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
        made, when its activation raises, and when its `self_check` says no.
        """
        with _changing:
            source = self._source(name)
            return self._activate(name, lambda: make(source, options), source.place, source, options)

    def load_file(self, path: str | Path, **options: Any) -> BasePlugin:
        """Load the plugin in a file, or in a folder with an `__init__.py`, wherever it lies, and return it.

        Raises `PluginError` as `load` does.
        """
        source = source_at(Path(path))
        with _changing:
            return self._activate(source.name, lambda: make(source, options), source.place, source, options)

    def load_plugin(self, plugin: BasePlugin) -> BasePlugin:
        """Load a plugin that was made already, and return it.

        Raises `PluginError` when one of its name is loaded already or its activation raises.
        """
        if not isinstance(plugin, BasePlugin):
            what = f"an instance of {plugin.__name__}, not the class" if isinstance(plugin, type) else "a BasePlugin"
            raise PluginError(f"load_plugin takes {what}")
        with _changing:
            place = f"the module {type(plugin).__module__}"
            return self._activate(name_of(plugin), lambda: plugin, place, None, {})

    def load_all(self) -> list[str]:
        """Load every plugin that can be discovered and is not loaded yet, with its default options.

        Returns the names of those that were loaded. Raises `PluginError` at the end when some could not be; the
        others stay loaded.
        """
        done, failed = [], []
        with _changing:
            for name in [name for name in self.discover() if self.find(name) is None]:
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
        with _changing:
            key, loaded = self._loaded_as(name)
            Transaction(Owner(key), replacing=loaded.owner).commit(*self._ledgers)
            self._loaded = {name: item for name, item in self._loaded.items() if name != key}
            with saying(f"plugin {key!r} is unloaded, but its deactivate raised"):
                self._let_go(loaded)

    def reload(self, name: str) -> BasePlugin:
        """Swap a plugin for what its source on disk says now, and return the new one. Warnings are logged.

        Its modules are imported anew, and an instance is made with the options of the old one, given the state of the
        old one, activated and checked. When the old one has let go, the new one stands, at one moment, where the old
        one stood. Raises `KeyError` when the plugin is not loaded, and `PluginError` with file, line and reason when
        anything fails: the old one is in force then as before.
        """
        swap = self.swap(name)
        for note in swap.notes:
            _log.warning("plugin %r: %s", name, note)
        return swap.plugin

    def swap(self, name: str, options: Mapping[str, Any] | None = None) -> Swap:
        """Do what `reload` does, and return what was done, warnings included.

        `options`, when given, take the place of those that the plugin was loaded with. Only a plugin that was loaded by
        name takes any.
        """
        with _changing:
            key, old = self._loaded_as(name)
            with saying(f"plugin {key!r} was not reloaded", old.place):
                check_importable(old)
                if options is not None and old.source is None:
                    raise PluginError(f"{old} was not loaded by name and takes no other options")
                return self._swap(key, old, FreshModules(old.module), old.options if options is None else options)

    def outdated(self) -> list[str]:
        """Return the names of the loaded plugins whose sources on disk are not those that were imported."""
        return [name for name, loaded in self._loaded.items() if loaded.content.outdated]

    def files(self) -> dict[str, dict[Path, str]]:
        """Return the source files of each loaded plugin, with a digest of what they hold now; empty for a lost file."""
        return {name: loaded.content.now() for name, loaded in self._loaded.items()}

    def watch(self, report: Callable[[str], object] | None = None, *, quiet: float = 0.3) -> PluginWatch:
        """Reload plugins as their sources change, in a thread of its own, until the result is stopped.

        A plugin is reloaded once its files have been at rest for `quiet` seconds. `report` is called in that thread
        with one line for each reload, done or failed; without it the line is logged. Raises `MissingExtraError` where
        `watchfiles` is not installed.
        """
        from chimera.plugins.watching import PluginWatch

        return PluginWatch(self, report or _log.info, quiet)

    def _swap(self, key: str, old: Loaded, modules: FreshModules, options: Mapping[str, Any]) -> Swap:
        new = replace(old, owner=Owner(key, rank=old.owner.rank), options=dict(options))
        transaction = Transaction(new.owner, replacing=old.owner)
        try:
            with transaction.open():
                plugin = modules.run(partial(remake, new))
                if name_of(plugin) != key:
                    raise PluginError(f"{old.place}: its new version calls itself {plugin.name!r}")
                new.plugin, warning = hand_over(old.plugin, plugin, self.patience)
                self._start(new)
            with self._taken_back_on_failure(new):
                self._let_go(old)
                self._commit(key, new, transaction, modules)
        except BaseException:
            modules.restore()
            raise
        return Swap(new.plugin, str(new.version), str(old.version), (warning,) if warning else ())

    def _activate(
        self, name: str, build: Callable[[], BasePlugin], place: str, source: Source | None, options: dict[str, Any]
    ) -> BasePlugin:
        self._check_free(name, place)
        owner = Owner(name)
        transaction = Transaction(owner)
        try:
            with transaction.open():
                loaded = Loaded(build(), owner, place, source, dict(options))
                owner.name = key = name_of(loaded.plugin)
                self._check_free(key, place)
                self._start(loaded)
            with self._taken_back_on_failure(loaded):
                self._commit(key, loaded, transaction, FreshModules(loaded.module))
        except PluginError as exc:
            raise PluginError(f"plugin {name!r} was not loaded: {described(exc)}") from exc
        except (Exception, SystemExit) as exc:
            raise PluginError(f"plugin {name!r} was not loaded ({place}): {described(exc)}") from exc
        return loaded.plugin

    def _start(self, loaded: Loaded) -> None:
        """Activate a plugin and let it check itself, inside its transaction."""
        plugin = loaded.owner.plugin = loaded.plugin
        check_synchronous(plugin)
        plugin.activate(self.components)
        check = getattr(plugin, "self_check", None)
        if check is not None:
            with self._taken_back_on_failure(loaded):
                consent(self.patience, check)

    def _commit(self, key: str, loaded: Loaded, transaction: Transaction, modules: FreshModules) -> None:
        loaded.content = modules.content()
        count = self._counts[key] + 1
        loaded.version = PolicyVersion(key, count, loaded.content.digest, loaded.owner.rank)
        for _, entry in transaction.added:
            if entry.kind in INTERCEPTOR_SEAMS:
                set_interceptor_version(entry.value, loaded.version)
        transaction.commit(*self._ledgers)
        self._counts[key] = count
        self._loaded = {**self._loaded, key: loaded}  # a new one: others may be reading the old one

    def _let_go(self, loaded: Loaded) -> None:
        """Call `deactivate`. What it unregisters changes nothing: the registries are changed at one moment."""
        with Transaction(loaded.owner).open():
            within(self.patience, loaded.plugin.deactivate)

    @contextmanager
    def _taken_back_on_failure(self, loaded: Loaded) -> Iterator[None]:
        try:
            yield
        except BaseException:
            try:
                self._let_go(loaded)
            except (Exception, SystemExit) as exc:
                _log.warning("a version of %r that failed did not let go: %s", loaded.owner.name, described(exc))
            raise

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

    def find(self, name: str) -> str | None:
        """Return the name of the loaded plugin that is called `name` or was loaded by that name; None without one."""
        if name in self._loaded:
            return name
        return next((key for key, item in self._loaded.items() if item.source and item.source.name == name), None)

    def _loaded_as(self, name: str) -> tuple[str, Loaded]:
        key = self.find(name)
        if key is None:
            raise KeyError(f"plugin {name!r} is not loaded; loaded are: {', '.join(self._loaded) or 'none'}")
        return key, self._loaded[key]

    def _check_free(self, name: str, place: str) -> None:
        key = self.find(name)
        if key is not None:
            raise PluginError(f"{place} brings a plugin {name!r}, and {self._loaded[key]} is loaded under that name")
