from __future__ import annotations

import asyncio
import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from chimera.core.interception import Interceptors
from chimera.core.loop import ReAct
from chimera.core.loop_config import LoopConfig
from chimera.core.loops.lint_feedback import LintFeedbackLoop
from chimera.core.loops.reflexion import Reflexion
from chimera.core.loops.retry import RetryLoop
from chimera.errors import MisuseError
from chimera.providers.faux import FauxProvider
from chimera.types import AgentResult, Message
from tests.core.loops.scenes import DRIVES, Probe, calls, conversation

every_drive = pytest.mark.parametrize("drive", DRIVES.values(), ids=DRIVES)


def length(result: AgentResult) -> float:
    return float(len(result.output))


@every_drive
def test_an_attempt_that_is_good_enough_ends_the_run(drive: Any) -> None:
    provider = FauxProvider(["a", calls(), "abc", "never asked for"])
    ran = drive(RetryLoop(scorer=length, success_threshold=3.0), provider, [Probe()])
    assert ran.result == AgentResult("abc", 3, 1, 0.0, True)
    assert [step.done for step in ran.steps] in ([], [False, False, True])
    assert len(provider.requests) == 3


@every_drive
def test_the_best_attempt_is_the_result_when_none_is_good_enough(drive: Any) -> None:
    provider = FauxProvider(["a", "first", "b", "other", "too late"])
    ran = drive(RetryLoop(scorer=length, success_threshold=9.0), provider, [])
    assert ran.result is not None
    assert (ran.result.output, ran.result.success, ran.result.steps) == ("first", False, 4)
    assert ran.result.error == "no attempt scored 9; the best one scored 5"
    assert ran.context.messages[-1].role == "assistant"


@every_drive
@pytest.mark.parametrize("retries", [0, 1, 4])
def test_attempts_are_bounded(drive: Any, retries: int) -> None:
    provider = FauxProvider("no")
    ran = drive(RetryLoop(max_retries=retries, scorer=lambda result: -1), provider, [])
    assert len(provider.requests) == retries + 1
    assert ran.result is not None
    assert not ran.result.success


def test_the_model_is_told_what_the_attempt_scored() -> None:
    provider = FauxProvider(["a", "abc"])
    DRIVES["run"](RetryLoop(scorer=length, success_threshold=3.0), provider, [])
    first, answer, told = provider.requests[1].messages[1:]
    assert (first, answer) == (conversation().messages[0], Message.assistant("a"))
    assert told.content.startswith("This attempt scored 1, and 3 is needed.")


@every_drive
def test_without_a_scorer_success_is_the_score(drive: Any) -> None:
    provider = FauxProvider([calls(), calls(), "done"])
    ran = drive(RetryLoop(ReAct(2)), provider, [Probe()])
    assert ran.result == AgentResult("done", 3, 2, 0.0, True)
    assert "It failed: the run did not finish within 2 steps." in provider.requests[2].messages[-1].content
    ran = drive(RetryLoop(ReAct(1), max_retries=1), FauxProvider([calls()], on_exhausted="repeat"), [Probe()])
    assert ran.result is not None
    assert ran.result.error == "no attempt scored 1; the best one scored 0: the run did not finish within 1 steps"


@every_drive
def test_a_scorer_may_let_an_unfinished_attempt_pass(drive: Any) -> None:
    ran = drive(RetryLoop(ReAct(1), scorer=lambda result: 1), FauxProvider([calls()]), [Probe()])
    assert ran.result == AgentResult("", 1, 1, 0.0, True)


@every_drive
def test_a_scorer_sees_its_attempt_alone(drive: Any) -> None:
    seen: list[AgentResult] = []

    def keep(result: AgentResult) -> int:
        seen.append(result)
        return 0

    usage = {"input_tokens": 1, "output_tokens": 0}
    script: list[Any] = [
        {**calls({}, {}), "usage": usage},
        {"text": "a", "usage": usage},
        {"text": "b", "usage": usage},
    ]
    ran = drive(RetryLoop(max_retries=1, scorer=keep), FauxProvider(script, usd_per_token=1.0), [Probe()])
    assert seen == [AgentResult("a", 2, 2, 2.0, True), AgentResult("b", 1, 0, 1.0, True)]
    assert ran.result is not None
    assert (ran.result.steps, ran.result.tool_calls_total, ran.result.cost) == (3, 2, 3.0)


async def patient(result: AgentResult) -> float:
    await asyncio.sleep(0)
    return length(result)


@every_drive
def test_a_scorer_may_be_a_coroutine_function(drive: Any) -> None:
    ran = drive(RetryLoop(scorer=patient, success_threshold=2.0), FauxProvider(["a", "bc"]), [])  # type: ignore[arg-type]
    assert ran.result == AgentResult("bc", 2, 0, 0.0, True)


@every_drive
@pytest.mark.parametrize("score", [None, "1.0", float("nan"), 1j, Decimal(1), [1.0]])
def test_a_score_that_is_no_number_is_a_mistake_of_the_program(drive: Any, score: Any) -> None:
    ran = drive(RetryLoop(scorer=lambda result: score), FauxProvider("a"), [])
    assert (ran.raised or "").startswith("MisuseError: a scorer returns a number")


@every_drive
def test_what_a_scorer_raises_comes_out_after_the_step(drive: Any) -> None:
    def broken(result: AgentResult) -> float:
        raise RuntimeError("no score")

    ran = drive(RetryLoop(scorer=broken), FauxProvider("a"), [])
    assert ran.raised == "RuntimeError: no score"
    assert [step.done for step in ran.steps] in ([], [False])


@every_drive
def test_what_a_provider_raises_comes_out(drive: Any) -> None:
    ran = drive(RetryLoop(scorer=lambda result: 0), FauxProvider(["a", {"error": "down"}]), [])
    assert ran.raised == "ProviderError: down"
    assert len(ran.steps) in (0, 1)


async def test_a_slow_scorer_does_not_hold_the_event_loop() -> None:
    """The scorer waits for the event loop: were it to hold it, neither would ever go on."""
    loop, reached = asyncio.get_running_loop(), threading.Event()

    def wait(result: AgentResult) -> float:
        loop.call_soon_threadsafe(reached.set)
        return 1.0 if reached.wait(10) else 0.0

    stream = RetryLoop(max_retries=0, scorer=wait).async_iter_steps(FauxProvider("a"), [], conversation())
    async for _ in stream:
        pass
    assert stream.result.success


@every_drive
@pytest.mark.parametrize("wrap", [RetryLoop, LintFeedbackLoop])
def test_a_wrapper_is_held_to_what_its_inner_loop_is_held_to(drive: Any, wrap: Any, tmp_path: Path) -> None:
    met: list[str] = []

    def note(messages: list[Message]) -> None:
        met.append(messages[-1].role)

    inner = ReAct()
    loop = RetryLoop(wrap(inner), max_retries=0, scorer=lambda result: 1)
    assert loop.config is None
    drive(loop, FauxProvider("a"), [], tmp_path)
    assert met == []
    inner.config = LoopConfig(interceptors=Interceptors(context=[note]), yolo_mode=True)
    drive(loop, FauxProvider("a"), [], tmp_path)
    assert met == ["user"]
    loop.config = None
    assert inner.config is None


def test_any_loop_can_be_retried() -> None:
    provider = FauxProvider(["bad", "VERDICT: PASS", "good", "VERDICT: PASS"])
    loop = RetryLoop(Reflexion(), scorer=lambda result: float(result.output == "good"))
    ran = DRIVES["iter_steps"](loop, provider, [])
    assert ran.result == AgentResult("good", 4, 0, 0.0, True)
    assert [step.done for step in ran.steps] == [False, False, False, True]


@pytest.mark.parametrize("wrap", [RetryLoop, LintFeedbackLoop])
@pytest.mark.parametrize("inner", [ReAct, object(), "react"])
def test_what_is_no_loop_cannot_be_wrapped(wrap: Any, inner: Any) -> None:
    with pytest.raises(MisuseError, match="inner must be a loop"):
        wrap(inner)


def test_a_negative_number_of_retries_is_refused() -> None:
    with pytest.raises(MisuseError, match="max_retries"):
        RetryLoop(max_retries=-1)


async def test_cancelling_while_a_scorer_runs_ends_the_run() -> None:
    from chimera.core.cancellation import CancellationToken

    token, started = CancellationToken(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(result: AgentResult) -> float:
        loop.call_soon_threadsafe(started.set)
        while not token.cancelled:
            time.sleep(0.001)
        return 1.0

    config = LoopConfig(cancellation=token, yolo_mode=True)
    stream = RetryLoop(ReAct(config=config), scorer=slow).async_iter_steps(FauxProvider("a"), [], conversation())

    async def cancel() -> None:
        await started.wait()
        token.cancel()

    task = asyncio.ensure_future(cancel())
    steps = [step async for step in stream]
    await task
    assert (stream.result.success, stream.result.error) == (False, "the run was cancelled")
    assert [step.done for step in steps] == [False]
