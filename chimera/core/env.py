"""What a running tool may know and do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from chimera.core.batch import run_single
from chimera.core.drivers import drive_to_end
from chimera.core.identity import RunIdentity, new_id
from chimera.core.loop_config import LoopConfig
from chimera.core.run import Run
from chimera.core.seams import Observer
from chimera.frozen import freeze
from chimera.types import ToolCall, ToolResult

__all__ = ["RunEnv", "root_of"]


class RunEnv:
    """The environment of one run, handed to each of its tools.

    A tool that starts a run of its own (a sub-agent, say) starts it under `inherited_config()`, as a child of
    `identity`, with `observer` told of its decisions: the chains and permissions that its parent is held to.
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def root(self) -> Path | None:
        return self._run.root

    @property
    def identity(self) -> RunIdentity:
        return self._run.identity

    @property
    def provider(self) -> Any:
        return self._run.provider

    @property
    def observer(self) -> Observer | None:
        return self._run.watch.observe

    @property
    def cancelled(self) -> bool:
        return self._run.cancellation.cancelled

    def on_cancel(self, fn: Callable[[], None]) -> Callable[[], None]:
        """Call `fn` when the run is cancelled, from whichever thread cancels it. Returns a function that undoes it."""
        return self._run.cancellation.on_cancel(fn)

    def run_tool(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Run another tool of this run: the same seams, hooks, permissions and events as for a call of the model.

        The call does not enter the conversation. What stands in its way comes back as the error of the result.
        """
        call = ToolCall(new_id("nested"), name, freeze(dict(arguments)))
        return drive_to_end(run_single(self._run.nested(), call))

    def tool_named(self, name: str) -> Any:
        """Return the tool that this run knows by `name`, or None; for asking about it, not for running it."""
        return self._run.tools.get(name)

    def inherited_config(self, **changes: Any) -> LoopConfig:
        """Return the configuration for a run below this one: the chains as they are held now, and all the rest.

        `changes` name fields of `LoopConfig`; the four that make up policy cannot be changed.
        """
        return self._run.inherited_config(**changes)


def root_of(env: Any) -> Path | None:
    """Return the project folder that `env`, whatever a caller passed for it, speaks of."""
    root = env if isinstance(env, str | Path) else getattr(env, "root", None)
    return None if root is None else Path(root)
