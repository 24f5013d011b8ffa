"""The seams, for those who write policy and those who write loops: everything about interception in one place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chimera.core.decisions import (
    SEAMS,
    InterceptDecision,
    Interceptor,
    Interceptors,
    ProviderRequest,
    interceptor_name,
    merge_interceptors,
)
from chimera.core.drivers import drive_to_end
from chimera.core.flows import provider_call_flow
from chimera.core.identity import RunIdentity, current_run, new_id
from chimera.core.loop_config import LoopConfig
from chimera.core.run import Run
from chimera.core.seams import (
    intercept_context,
    intercept_provider_request,
    intercept_tool_call,
    intercept_tool_result,
)
from chimera.events import EventBus, InterceptorEvent
from chimera.providers.base import Response
from chimera.types import Message

__all__ = [
    "SEAMS",
    "InterceptDecision",
    "Interceptor",
    "InterceptorEvent",
    "Interceptors",
    "ProviderRequest",
    "RunIdentity",
    "current_run",
    "intercept_context",
    "intercept_provider_request",
    "intercept_tool_call",
    "intercept_tool_result",
    "intercepted_complete",
    "interceptor_name",
    "merge_interceptors",
]


def intercepted_complete(
    provider: Any,
    messages: Iterable[Message],
    tools: Any = None,
    *,
    interceptors: Interceptors | None = None,
    event_bus: EventBus | None = None,
    **kwargs: Any,
) -> Response:
    """Make one provider call through both pre-provider seams, in this thread.

    `tools` are function schemas; `kwargs` go into the envelope and from there to the provider. Raises
    `ProviderCallBlocked` when a seam says no; nothing is sent then.
    """
    config = LoopConfig(interceptors=interceptors, event_bus=event_bus, yolo_mode=True)
    run = Run(config, provider, None, conversation_id=new_id("conversation"))
    return drive_to_end(provider_call_flow(run, list(messages), tools, kwargs))
