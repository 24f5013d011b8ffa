"""What a plugin is."""

# ruff: noqa: B027 - the empty methods are there to be overridden or not

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from chimera.plugins.registry import ComponentRegistry

__all__ = ["BasePlugin"]


class BasePlugin(ABC):
    """A named bundle of tools, loops, providers, skills, commands, hooks and interceptors.

    Override the `register_*` methods for what the plugin brings. All that is registered while it is activated belongs
    to it: it appears at one moment, or not at all when the activation raises, and goes when the plugin is unloaded.

    Three more methods are called where a plugin has them. `self_check()` says after the activation whether the plugin
    works: it refuses by raising, or by returning anything but None and True (a text is the reason). On a reload, what
    `export_state()` of the old version returns goes to `import_state(state)` of the new one, before it is activated;
    it may refuse in the same way, and the plugin starts afresh then. These three and `deactivate` have a few seconds
    (`PluginManager.patience`), and may run in any thread.
    """

    _init: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})

    def __new__(cls, *args: Any, **kwargs: Any) -> BasePlugin:
        plugin = super().__new__(cls)
        plugin._init = (args, kwargs)  # with these a reload builds the next version
        return plugin

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that the plugin is loaded, reloaded and unloaded by."""

    def activate(self, registry: ComponentRegistry) -> None:
        """Register everything. Raise to refuse: then nothing of it stays."""
        self.register_tools(registry)
        self.register_loops(registry)
        self.register_providers(registry)
        self.register_skills(registry)
        self.register_commands(registry)
        self.register_hooks(registry)
        self.register_interceptors(registry)

    def deactivate(self) -> None:
        """Let go of what the plugin holds outside of the registries; what it registered goes by itself."""

    def register_tools(self, registry: ComponentRegistry) -> None:
        """Call `registry.register_tool(tool)` for each tool."""

    def register_loops(self, registry: ComponentRegistry) -> None:
        """Call `registry.register_loop(name, factory)` for each loop."""

    def register_providers(self, registry: ComponentRegistry) -> None:
        """Call `registry.register_provider(name, factory)` for each provider."""

    def register_skills(self, registry: ComponentRegistry) -> None:
        """Call `registry.register_skill(skill)` for each skill."""

    def register_commands(self, registry: ComponentRegistry) -> None:
        """Call `registry.register_command(name, handler)` for each command."""

    def register_hooks(self, registry: ComponentRegistry) -> None:
        """Call `registry.register_hook(event, command)` for each hook."""

    def register_interceptors(self, registry: ComponentRegistry) -> None:
        """Call `PluginExtensionRegistry.register_interceptor(seam, fn)` for each interceptor."""
