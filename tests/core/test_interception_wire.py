"""What reaches the provider: one call through both seams by hand, another model, and keyword arguments as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chimera.core.interception import InterceptDecision, Interceptors, intercepted_complete
from chimera.errors import ProviderCallBlocked, ProviderError
from chimera.events import EventBus
from chimera.providers.base import Response
from chimera.providers.faux import FauxProvider
from chimera.types import Message
from tests.core.driving import Scripted, drive, every_mode, held


class TestInterceptedComplete:
    def test_it_runs_both_seams_and_returns_the_response(self) -> None:
        provider = FauxProvider("hello")
        chains = Interceptors(
            context=[lambda messages: InterceptDecision.replace([*messages, Message.user("more")])],
            provider_request=[lambda r: InterceptDecision.replace(replace(r, kwargs={**r.kwargs, "top_p": 0.5}))],
        )
        response = intercepted_complete(
            provider, (Message.user("hi"),), [{"type": "function"}], interceptors=chains, temperature=0.7
        )
        assert response.content == "hello"
        [request] = provider.requests
        assert request.messages == (Message.user("hi"), Message.user("more"))
        assert request.kwargs == {"temperature": 0.7, "top_p": 0.5}
        assert request.tools == ({"type": "function"},)

    @pytest.mark.parametrize("seam", ["context", "provider_request"])
    def test_a_block_is_an_exception_and_nothing_is_sent(self, seam: str) -> None:
        provider, bus = FauxProvider("hello"), EventBus()
        heard: list[Any] = []
        bus.subscribe("interceptor", heard.append)
        chain: list[Any] = [lambda _: InterceptDecision.block("no")]
        with pytest.raises(ProviderCallBlocked, match="Blocked by interceptor: no") as caught:
            intercepted_complete(provider, [], interceptors=Interceptors(**{seam: chain}), event_bus=bus)
        assert (caught.value.seam, caught.value.cause, caught.value.reason) == (seam, "no", "interceptor_blocked: no")
        assert (provider.requests, len(heard)) == ([], 1)

    def test_without_chains_the_envelope_goes_out_as_it_is(self) -> None:
        provider = FauxProvider("hello")
        messages = [Message.user("hi")]
        assert intercepted_complete(provider, messages, temperature=0.7).content == "hello"
        assert provider.requests[0].kwargs == {"temperature": 0.7}
        assert messages == [Message.user("hi")]


@every_mode
def test_another_model_for_a_provider_that_has_but_one_is_an_error(mode: str) -> None:
    provider = Scripted("done")
    chain: list[Any] = [lambda r: InterceptDecision.replace(replace(r, model="other"))]
    config = held(Interceptors(provider_request=chain))
    if mode.startswith("agent"):
        assert "cannot use another model" in str(drive(mode, provider, [], config).reason)
    else:
        with pytest.raises(ProviderError, match="cannot use another model"):
            drive(mode, provider, [], config)
    assert provider.requests == []


@every_mode
def test_kwargs_pass_verbatim(mode: str) -> None:
    """A key that the provider's signature does not have is the provider's to refuse."""

    class Strict:
        def complete(self, messages: Any, tools: Any = None, temperature: float = 0.0) -> Response:
            return Response(str(temperature))

    chain: list[Any] = [lambda r: InterceptDecision.replace(replace(r, kwargs={"temperature": 0.7}))]
    assert drive(mode, Strict(), [], held(Interceptors(provider_request=chain))).output == "0.7"
    chain[0] = lambda r: InterceptDecision.replace(replace(r, kwargs={"unknown": 1}))
    if mode.startswith("agent"):
        assert "unexpected keyword" in str(drive(mode, Strict(), [], held(Interceptors(provider_request=chain))).reason)
    else:
        with pytest.raises(TypeError, match="unexpected keyword"):
            drive(mode, Strict(), [], held(Interceptors(provider_request=chain)))
