"""What is registered, by whom, told apart well enough to compare two moments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from chimera.core.decisions import interceptor_name
from chimera.plugins.ledger import Entry
from chimera.plugins.manager import PluginManager
from chimera.plugins.registry import INTERCEPTOR_SEAMS, PluginExtensionRegistry

__all__ = ["Item", "inventory"]


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One registration: what it is (`plugin`, a seam, `tool`, `skill`, ...), what people call it, which plugin brought
    it (empty when the program did), and the thing itself. Two of one kind have two labels."""

    kind: str
    label: str
    plugin: str
    value: Any


def inventory(manager: PluginManager | None) -> list[Item]:
    """Return all interceptors of this process and, with a manager, its plugins and their components."""
    entries = [entry for entry in PluginExtensionRegistry._ledger.entries() if entry.kind in INTERCEPTOR_SEAMS]
    if manager is None:
        return list(_labelled(entries))
    plugins = [Item("plugin", name, name, plugin) for name, plugin in manager.plugins.items()]
    return [*plugins, *_labelled([*entries, *manager.components._ledger.entries()])]


def _labelled(entries: Iterable[Entry]) -> Iterator[Item]:
    seen: Counter[tuple[str, str]] = Counter()
    for entry in entries:
        label = _label(entry)
        seen[entry.kind, label] += 1
        number = seen[entry.kind, label]
        owner = entry.owner.name if entry.owner else ""
        yield Item(entry.kind, label if number == 1 else f"{label} ({number})", owner, entry.value)


def _label(entry: Entry) -> str:
    if entry.kind not in INTERCEPTOR_SEAMS:
        return entry.key
    name = interceptor_name(entry.value)
    return f"{entry.owner.name}: {name}" if entry.owner else name
