"""What a running tool may know and do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from chimera.core.batch import run_single
from chimera.core.drivers import drive_to_end
from chimera.core.identity import RunIdentity, new_id
from chimera.core.run import Run
from chimera.frozen import freeze_json
from chimera.types import ToolCall, ToolResult

__all__ = ["MAX_NESTING", "RunEnv", "root_of"]

MAX_NESTING = 20


class RunEnv:
    """The environment of one run, handed to each of its tools.

    A run that a tool starts here (a sub-agent, say) is held to the rules of this run by itself.
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
    def cancelled(self) -> bool:
        return self._run.cancellation.cancelled

    def on_cancel(self, fn: Callable[[], None]) -> Callable[[], None]:
        """Call `fn` when the run is cancelled, from whichever thread cancels it. Returns a function that undoes it."""
        return self._run.cancellation.on_cancel(fn)

    def run_tool(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Run another tool of this run: the same seams, hooks, permissions and events as for a call of the model.

        The call does not enter the conversation. What stands in its way comes back as the error of the result. It runs
        in the calling thread: a tool that awaits things calls it through `asyncio.to_thread`, so that the event loop
        stays free meanwhile. Tools may nest `MAX_NESTING` deep.
        """
        run = self._run.nested()
        if run.nesting > MAX_NESTING:
            return ToolResult("", f"tools may call each other {MAX_NESTING} deep, and no deeper")
        try:
            call = ToolCall(new_id("nested"), name, freeze_json(dict(arguments)))
        except (TypeError, ValueError) as exc:
            return ToolResult("", f"The arguments for {name} are not a JSON object: {exc}")
        run.env = RunEnv(run)
        return drive_to_end(run_single(run, call))

    @property
    def tools(self) -> tuple[Any, ...]:
        """The tools that this run holds; for handing on to a run below, or asking about them."""
        return tuple(self._run.tools.values())


def root_of(env: Any) -> Path | None:
    """Return the project folder that `env`, whatever a caller passed for it, speaks of."""
    root = env if isinstance(env, str | Path) else getattr(env, "root", None)
    return None if root is None else Path(root)
