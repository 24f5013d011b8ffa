"""Assembled agents: provider, tools, permissions and policy put together."""

from chimera.assembly.coding_agent import CodingAgent
from chimera.assembly.driver import AgentDriver, render_event
from chimera.assembly.presets import PRESETS, Preset
from chimera.assembly.turn import Turn

__all__ = ["PRESETS", "AgentDriver", "CodingAgent", "Preset", "Turn", "render_event"]
