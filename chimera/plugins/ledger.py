"""Who registered what: a list of entries with owners, changed all at once or not at all.

Whatever a plugin registers while it is being activated is written down in a transaction and shown to nobody else.
When the activation ends well, the entries appear together; when it raises, they never were. Each entry stands at the
rank of its owner, so that a plugin that is swapped for a newer version keeps its place.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

from chimera.errors import PluginError

__all__ = ["Entry", "Ledger", "Owner", "Transaction"]

_ranks = itertools.count(1)
_lock = RLock()
"""One lock for all ledgers: what a plugin registers in several of them appears at one moment."""


@dataclass(eq=False, slots=True)
class Owner:
    """A loaded plugin, or one that is being made. A newer version of it is another owner with the same rank."""

    name: str
    plugin: object = None
    rank: int = field(default_factory=lambda: next(_ranks))


@dataclass(frozen=True, eq=False, slots=True)
class Entry:
    """One registration. `owner` is None for what the program registered itself."""

    kind: str
    key: str
    value: Any
    owner: Owner | None
    rank: int

    def belongs_to(self, owner: Owner) -> bool:
        """Tell whether this is the owner's: registered while it was activated, or a method of its plugin."""
        if self.owner is not None or owner.plugin is None:
            return self.owner is owner
        return getattr(self.value, "__self__", None) is owner.plugin

    def __str__(self) -> str:
        return f"plugin {self.owner.name!r}" if self.owner else "the program itself"


class Ledger:
    """Entries in order of rank. Reading takes no lock: what is read is one immutable tuple.

    Entries of the kinds in `unique` must have keys of their own; `PluginError` names both owners otherwise.
    """

    def __init__(self, unique: Sequence[str] = ()) -> None:
        self._unique = frozenset(unique)
        self._entries: tuple[Entry, ...] = ()

    def entries(self, kind: str | None = None) -> tuple[Entry, ...]:
        """Return what is registered, with what the transaction of the caller has added so far."""
        transaction = _current.get()
        shown = self._entries if transaction is None else transaction.view(self)
        return shown if kind is None else tuple(entry for entry in shown if entry.kind == kind)

    def add(self, kind: str, key: str, value: Any) -> Callable[[], None]:
        """Register `value`. Returns a function that takes just this registration back, whenever and however often."""
        transaction = _current.get()
        owner = transaction.owner if transaction else None
        entry = Entry(kind, key, value, owner, owner.rank if owner else next(_ranks))
        if transaction is not None:
            self._check((*transaction.view(self), entry))
            transaction.added.append((self, entry))
        else:
            with _lock:
                self._put((*self._entries, entry))

        def undo() -> None:
            self.remove(entry)

        return undo

    def remove(self, entry: Entry) -> bool:
        """Take `entry` out, wherever it stands, and tell whether it was there.

        In a transaction, what does not belong to its owner stays.
        """
        transaction = _current.get()
        if transaction is not None:
            return transaction.drop(self, entry)
        with _lock:
            before = self._entries
            self._entries = tuple(item for item in before if item is not entry)
            return len(self._entries) < len(before)

    @staticmethod
    @contextmanager
    def unchanged() -> Iterator[None]:
        """Let nobody else change any ledger while inside."""
        with _lock:
            yield

    def clear(self) -> None:
        with _lock:
            self._entries = ()

    def _put(self, entries: tuple[Entry, ...]) -> None:
        ordered = tuple(sorted(entries, key=lambda entry: entry.rank))
        self._check(ordered)
        self._entries = ordered

    def _check(self, entries: tuple[Entry, ...]) -> None:
        seen: dict[tuple[str, str], Entry] = {}
        for entry in entries:
            if entry.kind not in self._unique:
                continue
            other = seen.setdefault((entry.kind, entry.key), entry)
            if other is not entry:
                first, second = sorted((other, entry), key=lambda item: item.rank)
                raise PluginError(f"{first} and {second} both register the {entry.kind} {entry.key!r}")


class Transaction:
    """What one owner registers and takes back, until it is committed or forgotten.

    It is in force inside `with transaction.open():`, for the code that runs there and not for other threads. With
    `replacing`, the entries of that owner count as gone.
    """

    def __init__(self, owner: Owner, replacing: Owner | None = None) -> None:
        self.owner = owner
        self.replacing = replacing
        self.added: list[tuple[Ledger, Entry]] = []
        self._dropped: list[Entry] = []

    @contextmanager
    def open(self) -> Iterator[None]:
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def view(self, ledger: Ledger) -> tuple[Entry, ...]:
        """Return the entries of `ledger` as they would be after a commit."""
        kept = [entry for entry in ledger._entries if self._keeps(entry)]
        kept += [entry for home, entry in self.added if home is ledger and entry not in self._dropped]
        return tuple(sorted(kept, key=lambda entry: entry.rank))

    def drop(self, ledger: Ledger, entry: Entry) -> bool:
        """Note that `entry` shall go, and tell whether it can: it must be there and belong to the owner."""
        if not entry.belongs_to(self.owner) or entry not in self.view(ledger):
            return False
        self._dropped.append(entry)
        return True

    def commit(self, *ledgers: Ledger) -> None:
        """Put all changes in force at one moment, in every ledger concerned or, when one refuses, in none.

        `ledgers` are those that hold entries of the replaced owner, besides those that were written to.
        """
        concerned = dict.fromkeys((*ledgers, *(ledger for ledger, _ in self.added)))
        with _lock:
            views = [(ledger, self.view(ledger)) for ledger in concerned]
            for ledger, view in views:
                ledger._check(view)
            for ledger, view in views:
                ledger._entries = view

    def _keeps(self, entry: Entry) -> bool:
        return entry not in self._dropped and not (self.replacing and entry.belongs_to(self.replacing))


_current: ContextVar[Transaction | None] = ContextVar("chimera_plugin_transaction", default=None)
