"""Plugins: what they are, where they register, and who loads them."""

from chimera.plugins.base import BasePlugin
from chimera.plugins.manager import PluginManager, Swap
from chimera.plugins.registry import INTERCEPTOR_SEAMS, Command, ComponentRegistry, PluginExtensionRegistry, Skill

__all__ = [
    "INTERCEPTOR_SEAMS",
    "BasePlugin",
    "Command",
    "ComponentRegistry",
    "PluginExtensionRegistry",
    "PluginManager",
    "Skill",
    "Swap",
]
