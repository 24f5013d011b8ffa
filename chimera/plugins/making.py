"""Making plugins: from what a source holds, and again from what made the old one."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from chimera.core.versions import PolicyVersion
from chimera.errors import PluginError
from chimera.plugins.base import BasePlugin
from chimera.plugins.content import Content
from chimera.plugins.fresh import attribute
from chimera.plugins.ledger import Owner
from chimera.plugins.sources import FileSource, Source

__all__ = ["Loaded", "check_importable", "made_again", "make", "name_of", "remake"]


_NONE = PolicyVersion("", 0, "", 0)


@dataclass(slots=True)
class Loaded:
    """A plugin that is in force, with all that its next version is made from."""

    plugin: BasePlugin
    owner: Owner
    place: str
    source: Source | None = None
    options: dict[str, Any] = field(default_factory=dict)
    content: Content = field(default_factory=Content)
    version: PolicyVersion = _NONE

    @property
    def module(self) -> str:
        return self.source.module if self.source else type(self.plugin).__module__

    def __str__(self) -> str:
        return f"{type(self.plugin).__qualname__} from {self.place}"


def make(source: Source, options: dict[str, Any]) -> BasePlugin:
    """Import what `source` names and make the plugin. Raises `PluginError`, and whatever the plugin's code raises."""
    target = source.target()
    if isinstance(target, BasePlugin):
        if options:
            raise PluginError(f"{source.place} holds a plugin that is made already and takes no options")
        return target
    if not callable(target):
        raise PluginError(f"{source.place} holds {type(target).__name__}, which is no plugin and makes none")
    _check_options(target, options, source.place)
    plugin = _called(target, options, source)
    if not isinstance(plugin, BasePlugin):
        raise PluginError(f"{source.place} makes {type(plugin).__name__}, which is no BasePlugin")
    return plugin


def _called(target: Callable[..., Any], options: dict[str, Any], source: Source) -> Any:
    """Call `target`. What a package says of the values of its options is told without the place in its source: whoever
    wrote the options did not write that."""
    try:
        return target(**options)
    except (TypeError, ValueError, re.error) as problem:
        if not options or isinstance(source, FileSource):
            raise
        raise PluginError(f"{source.place} refuses its options ({', '.join(options)}): {problem}") from problem


def remake(loaded: Loaded) -> BasePlugin:
    """Import the source of a plugin and make another one, with its options."""
    if loaded.source is not None:
        return make(loaded.source, loaded.options)
    kind = type(loaded.plugin)
    new_kind = attribute(importlib.import_module(kind.__module__), kind.__qualname__)
    args, kwargs = loaded.plugin._init
    plugin: BasePlugin = new_kind(*args, **kwargs)
    return plugin


def made_again(plugin: BasePlugin) -> BasePlugin:
    """Return another plugin of the same class, made with the same arguments."""
    args, kwargs = plugin._init
    return type(plugin)(*args, **kwargs)


def check_importable(loaded: Loaded) -> None:
    """Raise `PluginError` for a plugin whose class no import would find."""
    kind = type(loaded.plugin)
    if loaded.source is None and ("<locals>" in kind.__qualname__ or kind.__module__ == "__main__"):
        raise PluginError(f"{loaded} cannot be imported again: its class is not in a module that can be imported")


def name_of(plugin: BasePlugin) -> str:
    """Return the name of a plugin. Raises `PluginError` when it has none."""
    name = plugin.name
    if not isinstance(name, str) or not name.strip():
        raise PluginError(f"{type(plugin).__qualname__} needs a name, not {name!r}")
    return name


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
