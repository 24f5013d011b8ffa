"""Hooks: shell commands that judge or watch what an agent does."""

from chimera.hooks.reply import HookVerdict
from chimera.hooks.runner import HookRunner

__all__ = ["HookRunner", "HookVerdict"]
