"""The engine: seams, flows, drivers, loops."""

from chimera.core.agent_loop import AgentLoop
from chimera.core.context import Context
from chimera.core.interception import InterceptDecision, Interceptors, ProviderRequest
from chimera.core.loop import ReAct
from chimera.core.loop_config import LoopConfig
from chimera.core.middleware import LoopMiddleware
from chimera.core.tool import BaseTool, tool

__all__ = [
    "AgentLoop",
    "BaseTool",
    "Context",
    "InterceptDecision",
    "Interceptors",
    "LoopConfig",
    "LoopMiddleware",
    "ProviderRequest",
    "ReAct",
    "tool",
]
