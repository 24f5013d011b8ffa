"""Loops that a plugin brings, and running a lane to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from typing import Any

import pytest

from chimera.assembly.loop_adapter import REAL_LOOPS, adapt_loop
from chimera.core.context import Context
from chimera.core.loop import ReAct
from chimera.core.loop_config import LoopConfig
from chimera.core.loop_events import LoopEvent, LoopEventType, LoopResult
from chimera.plugins import BasePlugin, PluginManager
from chimera.types import AgentResult, Message, StepResult
from tests.core.loops.scenes import SCENES, OwnLoop, Scene

__all__ = [
    "LANES",
    "PLUGIN_LOOPS",
    "Forgetful",
    "LoopPlugin",
    "SelfDriving",
    "Wrapped",
    "every_lane",
    "internal_calls",
    "load_loop",
    "of_type",
    "prepared",
    "result_of",
    "run_lane",
    "scene_of",
]


class Forgetful(OwnLoop):
    """Takes a configuration and does not pass it on."""

    def __init__(self, config: LoopConfig | None = None) -> None:
        super().__init__(9)


class SelfDriving(ReAct):
    """Does something of its own with every step."""

    def iter_steps(
        self, provider: Any, tools: Any, context: Context, env: Any = None
    ) -> Generator[StepResult, None, AgentResult]:
        return (yield from super().iter_steps(provider, tools, context, env))


class Wrapped:
    """No `Loop` at all, with a loop without a configuration inside."""

    def __init__(self, config: LoopConfig | None = None) -> None:
        self.config = config

    def iter_steps(
        self, provider: Any, tools: Any, context: Context, env: Any = None
    ) -> Generator[StepResult, None, AgentResult]:
        return (yield from ReAct(9).iter_steps(provider, tools, context, env))


PLUGIN_LOOPS: dict[str, Callable[..., Any]] = {
    "program": OwnLoop,
    "forgetful": Forgetful,
    "self-driving": SelfDriving,
    "wrapped": Wrapped,
}


LANES = [*REAL_LOOPS, *PLUGIN_LOOPS]
every_lane = pytest.mark.parametrize("name", LANES)


class LoopPlugin(BasePlugin):
    def __init__(self, loop: str, factory: Callable[..., Any]) -> None:
        self.loop, self.factory = loop, factory

    @property
    def name(self) -> str:
        return f"{self.loop}-plugin"

    def register_loops(self, registry: Any) -> None:
        registry.register_loop(self.loop, self.factory)


def load_loop(name: str, factory: Callable[..., Any] | None = None) -> PluginManager:
    """Load a plugin that registers the loop; the registry forgets it at the end of the test."""
    manager = PluginManager()
    manager.load_plugin(LoopPlugin(name, factory or PLUGIN_LOOPS[name]))
    return manager


def run_lane(name: str, provider: Any, tools: Sequence[Any] = (), **options: Any) -> list[LoopEvent]:
    """Run a lane to its end and return its events; there is exactly one result, and it comes last."""

    async def main() -> list[LoopEvent]:
        given = {"system_prompt": "You are careful.", "messages": [Message.user("Do the task.")], **options}
        return [event async for event in adapt_loop(name, provider=provider, tools=tools, **given)]

    events = asyncio.run(main())
    assert [event.type for event in events].count(LoopEventType.RESULT) == 1
    assert events[-1].type is LoopEventType.RESULT
    return events


def result_of(events: Sequence[LoopEvent]) -> LoopResult:
    result: LoopResult = events[-1].data
    return result


def of_type(events: Sequence[LoopEvent], kind: LoopEventType) -> list[Any]:
    return [event.data for event in events if event.type is kind]


def scene_of(name: str) -> Scene:
    return SCENES[name] if name in REAL_LOOPS else SCENES["react"]


def prepared(name: str) -> Any:
    """Return a provider whose script ends a lane of this name as a success; load the plugin that it needs."""
    if name in PLUGIN_LOOPS:
        load_loop(name)
    return scene_of(name).provider()


def internal_calls(name: str) -> int:
    return scene_of(name).internal
