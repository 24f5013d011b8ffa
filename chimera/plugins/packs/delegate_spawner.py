"""delegate-spawner: tool calls that ask for a helper become calls of the delegate tool."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from chimera.core.decisions import InterceptDecision, Interceptors
from chimera.plugins.base import BasePlugin
from chimera.plugins.packs._options import names as checked_names
from chimera.plugins.registry import ComponentRegistry
from chimera.types import ToolCall

__all__ = ["DelegateSpawnerPlugin"]


class DelegateSpawnerPlugin(BasePlugin):
    """Turns each call of a tool whose name starts with `prefix`, or is one of `names`, into one of `delegate_tool`.

    The id stays. The only argument is `task`: the original `task` or `prompt` where that is a text, else the tool's
    name and its arguments as JSON. An empty `prefix` matches nothing. The host must have a tool of the name
    `delegate_tool` (`chimera.tools.delegate.DelegateTool`, say); without one the model is told `Unknown tool`.

    Raises `ValueError` for options that match nothing.
    """

    def __init__(self, *, prefix: str = "spawn_", names: Iterable[str] = (), delegate_tool: str = "delegate") -> None:
        self._names = checked_names(names, "names")
        (self._delegate,) = checked_names((delegate_tool,), "delegate_tool")
        if not isinstance(prefix, str):
            raise ValueError(f"prefix is a text, not {prefix!r}")
        if not prefix and not self._names:
            raise ValueError("a delegate spawner needs a prefix or names")
        self._prefix = prefix

    @property
    def name(self) -> str:
        return "delegate-spawner"

    def interceptors(self) -> Interceptors:
        """Return the chain of this spawner, for use without the plugin system."""
        return Interceptors(tool_call=[self._rewrite])

    def register_interceptors(self, registry: ComponentRegistry) -> None:
        registry.register_interceptors(self.interceptors())

    def _rewrite(self, call: ToolCall) -> InterceptDecision | None:
        if not self._matches(call.name):
            return None
        task = _task(call.name, call.arguments)
        return InterceptDecision.replace(ToolCall(call.id, self._delegate, {"task": task}))

    def _matches(self, name: str) -> bool:
        if name == self._delegate:
            return False
        return name in self._names or bool(self._prefix and name.startswith(self._prefix))


def _task(name: str, arguments: Mapping[str, Any]) -> str:
    for key in ("task", "prompt"):
        task = arguments.get(key)
        if isinstance(task, str) and task.strip():
            return task
    return f"{name}: {json.dumps(arguments, ensure_ascii=False, default=str)}"
