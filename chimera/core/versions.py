"""Which version of which plugin an interceptor belongs to: looked up when a decision is told of, not while it is made.

An interceptor keeps its version for as long as a run holds it, also when its plugin has been swapped for another one
meanwhile.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from weakref import ref

from chimera.core.decisions import Chains

__all__ = ["PolicyVersion", "interceptor_version", "set_interceptor_version", "versions_in"]

_KEPT = 1024


@dataclass(frozen=True, slots=True)
class PolicyVersion:
    """A version of a plugin: the how-manieth one of this process, and a digest of its sources (empty for a plugin
    without any). All versions of one loaded plugin share the `family`."""

    plugin: str
    count: int
    digest: str
    family: int

    def __str__(self) -> str:
        return f"{self.plugin}@{self.count}" + (f"-{self.digest}" if self.digest else "")


_by_id: dict[int, tuple[Callable[[], Any], PolicyVersion]] = {}
_kept: OrderedDict[int, tuple[Any, PolicyVersion]] = OrderedDict()
"""What cannot be referenced weakly; the oldest are let go."""


def set_interceptor_version(fn: Any, version: PolicyVersion) -> None:
    """Note the version that `fn` belongs to. Of several the last one counts. Keeps `fn` from nothing."""
    key = id(fn)

    def forget(dead: Any) -> None:
        if _by_id.get(key, _NOTHING)[0] is dead:
            _by_id.pop(key, None)

    try:
        _by_id[key] = (ref(fn, forget), version)
    except TypeError:
        _kept[key] = (fn, version)
        while len(_kept) > _KEPT:
            _kept.popitem(last=False)


def interceptor_version(fn: Any) -> PolicyVersion | None:
    """Return the version that this very object belongs to; None for one that no plugin registered."""
    version: PolicyVersion | None
    find, version = _by_id.get(id(fn), _NOTHING)
    if find() is fn:
        return version
    held, version = _kept.get(id(fn), _NOTHING)
    return version if held is fn else None


def versions_in(chains: Chains) -> tuple[PolicyVersion, ...]:
    """Return the versions of all plugins that have a say in `chains`, in the order in which they have it."""
    fns: Iterable[Any] = (fn for chain in chains for fn in chain)
    return tuple(dict.fromkeys(version for fn in fns if (version := interceptor_version(fn)) is not None))


_NOTHING: tuple[Any, Any] = (lambda: None, None)
