"""Bringing an agent in line with what is on disk and in the settings, between two of its turns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chimera.errors import MisuseError, PluginError
from chimera.plugins import INTERCEPTOR_SEAMS, PluginManager
from chimera.plugins.inventory import Item, inventory

__all__ = ["Changes", "ResyncReport", "resync_agent"]


@dataclass(frozen=True, slots=True)
class Changes:
    """What became of the things of one kind, by name. `failed` are those that stay as they were, with the reason."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    refreshed: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.refreshed or self.failed)

    def __str__(self) -> str:
        failed = tuple(f"{name} ({reason})" for name, reason in self.failed)
        parts = {"added": self.added, "removed": self.removed, "refreshed": self.refreshed, "failed": failed}
        return "; ".join(f"{what} {', '.join(names)}" for what, names in parts.items() if names) or "nothing changed"


@dataclass(frozen=True, slots=True)
class ResyncReport:
    """What a resync did. `interceptors` has an entry for each seam; `notes` are warnings and advice."""

    plugins: Changes
    interceptors: Mapping[str, Changes]
    tools: Changes
    skills: Changes
    notes: tuple[str, ...] = ()

    @property
    def success(self) -> bool:
        """True when nothing failed."""
        return not self.plugins.failed

    def lines(self) -> list[str]:
        """Return the report for a person, one line for each kind in which anything changed."""
        kinds = {"plugins": self.plugins, **self.interceptors, "tools": self.tools, "skills": self.skills}
        told = [f"{kind}: {changes}" for kind, changes in kinds.items() if changes]
        return [*(told or ["nothing changed"]), *self.notes]


def resync_agent(agent: Any, wanted: Mapping[str, Mapping[str, Any]] | None = None) -> ResyncReport:
    """Reload the plugins of an agent's manager from their sources; its next turn is held to what they say now.

    `agent` is a `CodingAgent`, or an `AgentDriver` or `AgentSession` around one. `wanted`, when given, has the plugins
    that shall be loaded, by name, with their options: others are unloaded, missing ones are loaded. Every plugin is
    swapped by itself: one that fails stays in force as it was, and the report says why.

    Raises `MisuseError` while a turn of the agent runs; nothing is changed then.
    """
    _require_rest(agent)
    manager: PluginManager | None = getattr(getattr(agent, "agent", agent), "manager", None)
    if manager is None:
        return _report([], [], {}, ["the agent has no plugin manager: it was built without `manager=`"])
    before, known = inventory(manager), list(manager.plugins)
    failed: dict[str, str] = {}
    notes: list[str] = []
    if wanted is not None:
        _bring_to(manager, wanted, failed, notes)
    _reload(manager, [name for name in known if name in manager.plugins], wanted or {}, failed, notes)
    return _report(before, inventory(manager), failed, notes)


def _require_rest(agent: Any) -> None:
    inner = getattr(agent, "agent", agent)
    if getattr(agent, "running", False) or getattr(inner, "running", False):
        raise MisuseError("cannot resync while a turn of the agent runs: wait for it, or cancel it")


def _bring_to(
    manager: PluginManager, wanted: Mapping[str, Mapping[str, Any]], failed: dict[str, str], notes: list[str]
) -> None:
    """Unload what is not wanted and load what is missing."""
    loaded = manager.named
    for name in [name for name in loaded if name not in wanted]:
        try:
            manager.unload(name)
        except PluginError as exc:  # it is unloaded all the same
            notes.append(str(exc))
    for name, options in wanted.items():
        if name not in loaded:
            try:
                manager.load(name, **options)
            except PluginError as exc:
                failed[name] = str(exc)


def _reload(
    manager: PluginManager,
    names: Iterable[str],
    wanted: Mapping[str, Mapping[str, Any]],
    failed: dict[str, str],
    notes: list[str],
) -> None:
    options = {manager.find(name): given for name, given in wanted.items()}
    for name in names:
        try:
            swap = manager.swap(name, options.get(name))
        except PluginError as exc:
            failed[name] = str(exc)
        else:
            notes += (f"{name}: {note}" for note in swap.notes)


def _report(
    before: Sequence[Item], after: Sequence[Item], failed: Mapping[str, str], notes: Iterable[str]
) -> ResyncReport:
    def changes(kind: str) -> Changes:
        return _changes([item for item in before if item.kind == kind], [i for i in after if i.kind == kind], failed)

    return ResyncReport(
        replace(changes("plugin"), failed=tuple(failed.items())),
        {seam: changes(seam) for seam in INTERCEPTOR_SEAMS},
        changes("tool"),
        changes("skill"),
        tuple(notes),
    )


def _changes(before: Sequence[Item], after: Sequence[Item], failed: Mapping[str, str]) -> Changes:
    old, new = ({item.label: item for item in items} for items in (before, after))
    both = [label for label in new if label in old]
    return Changes(
        tuple(label for label in new if label not in old),
        tuple(label for label in old if label not in new),
        tuple(label for label in both if new[label].value is not old[label].value),
        tuple(_failures(new, failed)),
    )


def _failures(items: Mapping[str, Item], failed: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    return ((label, failed[item.plugin]) for label, item in items.items() if item.plugin in failed)
