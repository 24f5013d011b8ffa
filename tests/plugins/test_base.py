"""A plugin's life: what activation calls, and what a plugin must say of itself."""

from __future__ import annotations

from typing import Any

import pytest

from chimera.plugins import BasePlugin, ComponentRegistry, PluginManager

HOOKS = ("tools", "loops", "providers", "skills", "commands", "hooks", "interceptors")


def test_activation_calls_every_hook_once_with_the_registry() -> None:
    called: list[tuple[str, object]] = []

    def noting(hook: str) -> Any:
        return lambda self, registry: called.append((hook, registry))

    body: dict[str, Any] = {f"register_{hook}": noting(hook) for hook in HOOKS}
    plugin = type("Noting", (BasePlugin,), {"name": "noting", **body})()
    manager = PluginManager()
    manager.load_plugin(plugin)
    assert called == [(hook, manager.components) for hook in HOOKS]


def test_a_plugin_that_brings_nothing_can_be_loaded_and_unloaded() -> None:
    class Empty(BasePlugin):
        name = "empty"

    manager = PluginManager()
    manager.load_plugin(Empty())
    assert list(manager.plugins) == ["empty"]
    manager.unload("empty")
    assert manager.plugins == {}


def test_a_plugin_without_a_name_cannot_be_made() -> None:
    class Nameless(BasePlugin):
        pass

    with pytest.raises(TypeError, match="name"):
        Nameless()  # type: ignore[abstract]


def test_a_plugin_is_made_with_whatever_its_constructor_takes() -> None:
    class Configured(BasePlugin):
        name = "configured"

        def __init__(self, size: int, *, colour: str = "red") -> None:
            self.size, self.colour = size, colour

    plugin = Configured(3, colour="blue")
    assert (plugin.size, plugin.colour) == (3, "blue")
    plugin.activate(ComponentRegistry())
    plugin.deactivate()
