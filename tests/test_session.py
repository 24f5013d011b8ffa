"""AgentSession and run_agent: the front doors for other people's programs."""

from __future__ import annotations

import pytest

from chimera import AgentSession, LoopEventType, TurnResult, run_agent
from chimera.core import InterceptDecision, Interceptors
from chimera.errors import MisuseError
from chimera.providers.faux import FauxProvider


def test_run_agent_returns_what_happened() -> None:
    provider = FauxProvider([{"text": "hi", "usage": {"input_tokens": 2, "output_tokens": 1}}], usd_per_token=1.0)
    result = run_agent("hello", provider=provider)
    assert isinstance(result, TurnResult)
    assert (result.text, result.reason, result.steps, result.cost_usd) == ("hi", "completed", 1, 3.0)
    assert result.usage["input_tokens"] == 2
    assert result.success
    assert result.duration_ms > 0


def test_a_block_is_a_reason_and_no_exception() -> None:
    chains = Interceptors(context=[lambda messages: InterceptDecision.block("closed")])
    result = run_agent("hello", provider=FauxProvider("never"), interceptors=chains)
    assert (result.reason, result.success) == ("interceptor_blocked: closed", False)
    assert result.text == "Blocked by interceptor: closed"


def test_a_session_remembers_and_reports_events() -> None:
    kinds: list[LoopEventType] = []
    with AgentSession(provider=FauxProvider(["a", "b"]), on_event=lambda event: kinds.append(event.type)) as session:
        session.run("1")
        session.run("2")
        assert [message.content for message in session.history] == ["1", "a", "2", "b"]
    assert kinds.count(LoopEventType.RESULT) == 2


async def test_run_below_a_loop_says_what_to_use() -> None:
    session = AgentSession(provider=FauxProvider("a"))
    with pytest.raises(MisuseError, match="run_async"):
        session.run("1")
    assert (await session.run_async("1")).text == "a"


def test_a_closed_session_refuses_and_closing_twice_is_fine() -> None:
    session = AgentSession(provider=FauxProvider("a"))
    session.close()
    session.close()
    with pytest.raises(MisuseError, match="closed"):
        session.run("1")


def test_a_provider_that_can_be_closed_is() -> None:
    class Closing(FauxProvider):
        closed = 0

        def close(self) -> None:
            self.closed += 1

    provider = Closing("a")
    run_agent("x", provider=provider)
    assert provider.closed == 1
