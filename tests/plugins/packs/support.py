"""What the tests of the packs share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chimera.core.identity import Frame, RunIdentity, running
from chimera.core.interception import (
    Interceptors,
    ProviderRequest,
    intercept_context,
    intercept_provider_request,
    intercept_tool_call,
    intercept_tool_result,
)
from chimera.types import Message, ToolCall, ToolResult

__all__ = ["Seams", "in_conversation"]


@contextmanager
def in_conversation(name: str) -> Iterator[None]:
    """Be inside a run of the conversation `name`, as an interceptor sees it."""
    token = running.set(Frame(RunIdentity(f"run-{name}", name), None))
    try:
        yield
    finally:
        running.reset(token)


class Seams:
    """Calls the chains of a bundle the way the engine does, in one conversation."""

    def __init__(self, bundle: Interceptors, conversation: str = "c") -> None:
        self.bundle = bundle
        self.identity = RunIdentity(f"run-{conversation}", conversation)
        self.calls = 0

    def context(self, messages: list[Message]) -> None:
        """Show the messages of a provider call to the context chain, which must change nothing."""
        effective, blocked = intercept_context(self.bundle.context, messages, watch=self._watch())
        assert effective is messages
        assert blocked is None

    def request(self, messages: list[Message], **parts: Any) -> ProviderRequest:
        """Return what is sent for a request."""
        request = ProviderRequest("m", messages, **parts)
        effective, blocked = intercept_provider_request(self.bundle.provider_request, request, watch=self._watch())
        assert blocked is None, blocked
        return effective

    def blocked(self, name: str, **arguments: Any) -> str | None:
        """Return the reason why a call is blocked, or None."""
        return self.call(name, **arguments)[1]

    def call(self, name: str, **arguments: Any) -> tuple[ToolCall, str | None]:
        self.calls += 1
        call = ToolCall(f"call-{self.calls}", name, arguments)
        return intercept_tool_call(self.bundle.tool_call, call, watch=self._watch())

    def result(self, result: ToolResult) -> ToolResult:
        return intercept_tool_result(self.bundle.tool_result, ToolCall("1", "bash"), result, watch=self._watch())

    def _watch(self) -> Any:
        from chimera.core.seams import Watch

        return Watch(None, self.identity)
