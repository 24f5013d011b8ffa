"""Real providers below the engine: what an interceptor says about headers is what the server receives."""

from __future__ import annotations

from typing import Any

import pytest

from chimera.core import AgentLoop, Context, InterceptDecision, Interceptors, LoopConfig, ProviderRequest, ReAct, tool
from chimera.core.loop import async_drain_steps
from chimera.types import Message
from tests.providers.vendors import ANTHROPIC, KEY, VendorCase
from tests.providers.wire_server import WireServer, json_reply

REAL = f"Bearer {KEY}"


def redact_once() -> Interceptors:
    """Replace the key in the first request that comes by, and leave the others alone."""
    seen: list[ProviderRequest] = []

    def redact(request: ProviderRequest) -> InterceptDecision | None:
        seen.append(request)
        if len(seen) > 1:
            return None
        assert request.headers is not None
        headers = {**request.headers, "Authorization": "[redacted]"}
        kwargs = request.kwargs
        changed = ProviderRequest(request.model, request.messages, request.tools, kwargs, headers)
        return InterceptDecision.replace(changed)

    return Interceptors(provider_request=[redact])


async def by_react(provider: Any, interceptors: Interceptors) -> None:
    loop = ReAct(config=LoopConfig(interceptors=interceptors))
    for _ in range(2):
        context = Context()
        context.add(Message.user("hello"))
        result = await async_drain_steps(loop.async_iter_steps(provider, [], context, None))
        assert result.output == "hello"


async def by_agent_loop(provider: Any, interceptors: Interceptors, *, stream: bool = False) -> None:
    for _ in range(2):
        run = AgentLoop().run(
            [Message.user("hello")],
            tools=[],
            provider=provider,
            system_prompt="be brief",
            interceptors=interceptors,
            stream=stream,
        )
        events = [event async for event in run]
        assert events[-1].data.reason == "completed"


async def by_agent_loop_streamed(provider: Any, interceptors: Interceptors) -> None:
    await by_agent_loop(provider, interceptors, stream=True)


@pytest.mark.parametrize("lane", [by_react, by_agent_loop, by_agent_loop_streamed])
async def test_a_replaced_header_reaches_the_wire_for_one_call(
    server: WireServer, vendor: VendorCase, lane: Any
) -> None:
    streamed = lane is by_agent_loop_streamed
    server.answer_with(vendor.streamed("hello") if streamed else vendor.whole("hello"))
    provider = vendor.make(server.url, headers={"X-Team": "blue"})
    await lane(provider, redact_once())
    assert [received.header("Authorization") for received in server.requests] == ["[redacted]", REAL]
    assert [received.header("X-Team") for received in server.requests] == ["blue", "blue"]
    assert provider.request_headers == {"Authorization": REAL, "X-Team": "blue"}


SIGNED = {"type": "thinking", "thinking": "hm", "signature": "sig"}
THOUGHTFUL = [SIGNED, {"type": "tool_use", "id": "x", "name": "look", "input": {}}]


@tool
def look() -> str:
    """Look around."""
    return "a door"


@pytest.mark.parametrize("stream", [False, True])
async def test_signed_thoughts_go_back_with_the_calls_that_they_led_to(server: WireServer, stream: bool) -> None:
    """The service refuses results of tools whose turn was begun with thoughts that it does not get back."""
    server.answer_with(json_reply({"content": THOUGHTFUL, "stop_reason": "tool_use"}), ANTHROPIC.whole("done"))
    provider = ANTHROPIC.make(server.url)
    options: Any = {"tools": [look], "provider": provider, "system_prompt": "be brief", "stream": stream}
    events = [event async for event in AgentLoop().run([Message.user("go")], **options)]
    assert events[-1].data.output == "done"
    assert server.requests[1].json["messages"][1] == {"role": "assistant", "content": THOUGHTFUL}
    await provider.aclose()
