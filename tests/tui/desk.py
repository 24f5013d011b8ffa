"""An app over a real agent with a scripted model, for tests: a fixed size and a clock that stands still."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

from chimera.assembly.driver import AgentDriver
from chimera.assembly.settings import Settings
from chimera.core.tool import BaseTool, ToolEnv
from chimera.events import EventBus
from chimera.permissions import RuleSet, policy_for_mode
from chimera.plugins import PluginManager
from chimera.providers.faux import FauxProvider, Script
from chimera.tools._base import object_schema
from chimera.tui.app import ChimeraApp
from chimera.tui.approval_screen import ApprovalScreen
from chimera.tui.entries import Remark
from chimera.tui.state import AppState
from chimera.types import ToolResult

__all__ = ["CHECK", "Desk", "Wait", "asked", "at_rest", "last_request", "texts_of", "typed", "wait_for"]

CHECK = {"name": "bash", "arguments": {"command": "echo hi"}}


class Wait(BaseTool):
    """A tool that waits until it is let go."""

    name = "wait"
    description = "wait"
    parameters = object_schema({})
    effect = "read"

    def __init__(self) -> None:
        self.go_on = Event()
        self.begun = Event()

    def execute(self, args: dict[str, Any], env: ToolEnv | None = None) -> ToolResult:
        self.begun.set()
        assert env is not None
        forget = env.on_cancel(self.go_on.set)
        self.go_on.wait(20)
        forget()
        return ToolResult("waited")


@dataclass
class Desk:
    """What the app is given, and the app. `policies` are the rules by kind."""

    project: Path
    script: Script
    mode: str = "ask"
    rules: dict[str, list[str]] = field(default_factory=dict)
    interceptors: Any = None
    plugins: Sequence[str] = ()
    agent_options: dict[str, Any] = field(default_factory=dict)
    with_bus: bool = True
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        self.bus = EventBus()
        self.manager = PluginManager([])
        for name in self.plugins:
            self.manager.load(name)
        self.provider = FauxProvider(self.script, model="scripted-1", usd_per_token=0.00001)
        self.options = SimpleNamespace(plugins=tuple(self.plugins))
        self.now = 1000.0
        self.app = ChimeraApp(AppState(), clock=lambda: self.now, utc=True, reaction=0.0)
        ask = self.app.lanes.asking.ask
        self.agent = AgentDriver(
            provider=self.provider,
            project_dir=self.project,
            manager=self.manager,
            interceptors=self.interceptors,
            permissions=policy_for_mode(self.mode, RuleSet(**self.rules, root=self.project), root=self.project),  # type: ignore[arg-type]
            permission_callback=ask,
            event_bus=self.bus if self.with_bus else None,
            **self.agent_options,
        )
        self.app.lanes.attach(self)
        greeting = self.app.state.lane.entries[1]
        assert isinstance(greeting, Remark)
        greeting.text = "/home/me/shop"  # not where the test happens to run

    def close(self) -> None:
        """End the threads, and let go of the plugins."""
        assert self.app.lanes.close()
        for name in list(self.manager.plugins):
            self.manager.unload(name)


def asked(desk: Desk) -> bool:
    """Tell whether a question is shown."""
    return isinstance(desk.app.screen, ApprovalScreen)


def at_rest(desk: Desk) -> bool:
    return not desk.app.state.running and not asked(desk)


def last_request(desk: Desk) -> str:
    """Return what the model was sent last, as text."""
    return "\n".join(message.content for message in desk.provider.requests[-1].messages)


async def typed(pilot: Any, text: str, *keys: str) -> None:
    """Type a text, then press keys."""
    pilot.app.prompt.insert(text)
    await pilot.pause()
    if keys:
        await pilot.press(*keys)
    await pilot.pause()


def texts_of(desk: Desk) -> list[str]:
    """Return the lines that the transcript shows, without their ends."""
    layout = desk.app.transcript._layout
    layout.settle(0, 10_000)
    return ["".join(part.text for part in layout.line(line)).strip() for line in range(layout.total)]


async def wait_for(pilot: Any, condition: Callable[[], Any]) -> None:
    """Let the app go on until `condition` holds."""
    for _ in range(600):
        pilot.app.tick()
        await pilot.pause()
        if condition():
            await pilot.pause()
            return
        await pilot.pause(0.01)
    raise AssertionError(f"it never came to {condition}")
