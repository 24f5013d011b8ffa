"""What the tests of plugins share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chimera.core.interception import InterceptDecision
from chimera.plugins import BasePlugin, ComponentRegistry, PluginExtensionRegistry
from chimera.plugins.registry import INTERCEPTOR_SEAMS

__all__ = ["Recorder", "chains", "interceptor", "plugin_class"]


def interceptor(*_args: Any) -> InterceptDecision | None:
    """An interceptor that allows everything."""
    return None


def chains() -> dict[str, list[Any]]:
    """Return the chains that are in force, by seam, without those that are empty."""
    bundle = PluginExtensionRegistry.get_all_interceptors()
    return {seam: getattr(bundle, seam) for seam in INTERCEPTOR_SEAMS if getattr(bundle, seam)}


def plugin_class(name: str, activate: Callable[[ComponentRegistry], object], **attributes: Any) -> type[BasePlugin]:
    """Return a new plugin class that does `activate` when it is activated."""
    body = {"name": name, "activate": lambda self, registry: activate(registry), **attributes}
    return type(f"Plugin_{name}", (BasePlugin,), body)


class Recorder(BasePlugin):
    """A plugin that registers one method on each of `seams`, and takes nothing back by itself."""

    def __init__(self, name: str, *seams: str) -> None:
        self._name = name
        self._seams = seams

    @property
    def name(self) -> str:
        return self._name

    def register_interceptors(self, registry: ComponentRegistry) -> None:
        for seam in self._seams:
            PluginExtensionRegistry.register_interceptor(seam, self.decide)

    def decide(self, *_args: Any) -> InterceptDecision | None:
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recorder)

    def __hash__(self) -> int:
        return 1
