from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chimera.core.context import Context
from chimera.core.loops.reflexion import Reflexion
from chimera.errors import MisuseError
from chimera.providers.faux import FauxProvider
from chimera.types import AgentResult, Message
from tests.core.loops.scenes import DRIVES, Probe, calls, conversation

every_drive = pytest.mark.parametrize("drive", DRIVES.values(), ids=DRIVES)


def run(script: list[Any], **options: Any) -> tuple[AgentResult, FauxProvider, Context]:
    provider, context = FauxProvider(script), conversation()
    return Reflexion(**options).run(provider, [Probe()], context), provider, context


def texts(messages: Any) -> list[str]:
    return [message.content for message in messages]


def test_a_good_trial_is_judged_once() -> None:
    result, provider, context = run([calls(), "answer", "VERDICT: PASS"])
    assert (result.output, result.success) == ("answer", True)
    assert len(provider.requests) == 3
    assert "VERDICT" in provider.requests[-1].messages[-1].content
    assert texts(context.messages)[-1] == "VERDICT: PASS"


def test_reflections_are_carried_into_trials_that_start_afresh() -> None:
    script = [
        *("first try", "VERDICT: FAIL - untested", "I skipped the tests."),
        *("second try", "VERDICT: FAIL - too slow", "I used a list."),
        *("third try", "VERDICT: PASS"),
    ]
    result, provider, context = run(script)
    assert (result.output, result.success, result.steps) == ("third try", True, 8)
    first, second, third = (texts(provider.requests[index].messages) for index in (0, 3, 6))
    assert first == ["You are careful.", "Do the task."]
    assert second[:2] == third[:2] == first
    assert "1. I skipped the tests." in second[2]
    assert "1. I skipped the tests.\n2. I used a list." in third[2]
    assert len(second) == len(third) == 3, "a trial sees nothing of the trials before it but the notes"
    reflect = texts(provider.requests[2].messages)
    assert reflect[-1].startswith("This attempt at the task failed: untested\n")
    assert [text for text in texts(context.messages) if text in script] == script


def test_only_the_newest_reflections_are_kept() -> None:
    failed = [text for n in range(1, 6) for text in (f"try {n}", "VERDICT: FAIL", f"note {n}.")]
    _, provider, _ = run([*failed, "try 6", "VERDICT: PASS"], max_trials=6)
    notes = provider.requests[-2].messages[2].content
    assert "1. note 3.\n2. note 4.\n3. note 5.\n" in notes
    assert "note 2" not in notes


def test_the_last_trial_that_fails_is_the_result() -> None:
    trial = ["try", "VERDICT: FAIL, it does not compile.", "note"]
    result, provider, context = run([*trial, "another try", "VERDICT: FAIL"], max_trials=2)
    assert not result.success
    assert result.output == "another try"
    assert result.error == "attempt 2 failed: no reason was given"
    assert len(provider.requests) == 5
    assert context.messages[-1].role == "assistant"


@pytest.mark.parametrize(
    "verdict",
    [
        "",
        "Looks fine to me.",
        "VERDICT: MAYBE",
        "pass",
        "PASS.",
        "**VERDICT: PASS**",
        "VERDICT: FAIL? No. VERDICT: PASS",
    ],
)
def test_a_verdict_that_is_no_failure_lets_the_trial_stand(verdict: str) -> None:
    result, provider, _ = run(["try", verdict])
    assert (result.output, result.success, len(provider.requests)) == ("try", True, 2)


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        ("VERDICT: FAIL: no tests", "no tests"),
        ("FAIL no tests", "no tests"),
        ("**Verdict:** fail - no tests", "no tests"),
        ("The test passes, but\nVERDICT: FAIL\nno tests", "no tests"),
        ("VERDICT: FAIL", "no reason was given"),
    ],
)
def test_a_failure_is_read_with_its_reason(verdict: str, reason: str) -> None:
    result, _, _ = run(["try", verdict], max_trials=1)
    assert result.error == f"attempt 1 failed: {reason}"


async def agrees(result: AgentResult) -> str | None:
    return None if result.output == "good" else f"{result.output} is not good"


@every_drive
@pytest.mark.parametrize("evaluator", [agrees, lambda result: None if result.output == "good" else "it is not good"])
def test_an_evaluator_takes_the_place_of_the_verdict(drive: Any, evaluator: Any) -> None:
    provider = FauxProvider(["bad", "my note", calls(), "good"])
    ran = drive(Reflexion(evaluator=evaluator), provider, [Probe()])
    assert ran.result == AgentResult("good", 4, 1, 0.0, True)
    assert len(provider.requests) == 4
    assert "is not good" in provider.requests[1].messages[-1].content


@every_drive
def test_an_evaluator_sees_what_its_trial_cost(drive: Any) -> None:
    seen: list[AgentResult] = []

    def note(result: AgentResult) -> str | None:
        seen.append(result)
        return "more" if len(seen) == 1 else None

    usage = {"input_tokens": 1, "output_tokens": 1}
    script: list[Any] = [
        {"text": "one", "usage": usage},
        "note",
        {**calls({}, {}), "usage": usage},
        {"text": "two", "usage": usage},
    ]
    drive(Reflexion(evaluator=note), FauxProvider(script, usd_per_token=1.0), [Probe()])
    assert seen == [AgentResult("one", 1, 0, 2.0, True), AgentResult("two", 2, 2, 4.0, True)]


@every_drive
@pytest.mark.parametrize("answer", [False, True, 1, object])
def test_an_evaluator_that_answers_with_junk_is_a_mistake_of_the_program(drive: Any, answer: object) -> None:
    ran = drive(Reflexion(evaluator=lambda result: answer), FauxProvider("try"), [])  # type: ignore[arg-type, return-value]
    assert ran.raised is not None
    assert "an evaluator returns None or the reason" in ran.raised


@every_drive
def test_what_an_evaluator_raises_comes_out_after_the_step(drive: Any) -> None:
    def broken(result: AgentResult) -> str | None:
        raise OSError("no disk")

    ran = drive(Reflexion(evaluator=broken), FauxProvider("try"), [])
    assert ran.raised == "OSError: no disk"
    assert [step.done for step in ran.steps] in ([], [False])
    assert texts(ran.context.messages)[-1] == "try"


def test_a_trial_that_takes_too_long_has_failed() -> None:
    result, provider, _ = run([calls(), calls(), "note", "done", "VERDICT: PASS"], trial_steps=2)
    assert (result.output, result.success) == ("done", True)
    assert "not finished within 2 turns" in provider.requests[2].messages[-1].content


@pytest.mark.parametrize(
    ("steps", "output", "success"),
    [
        (1, "try", True),  # nothing is left to judge it with
        (2, "try", False),  # judged, and nothing is left to reflect with
        (3, "try", False),  # reflected, and nothing is left to try again with
        (4, "again", True),
        (5, "again", True),
    ],
)
def test_turns_are_bounded_over_all_trials(steps: int, output: str, success: bool) -> None:
    script = ["try", "VERDICT: FAIL: x", "note", "again", "VERDICT: PASS"]
    result, provider, _ = run(script, max_steps=steps)
    assert (result.output, result.success) == (output, success)
    assert result.steps == len(provider.requests) == steps


def test_a_trial_that_uses_up_all_turns_ends_the_run() -> None:
    result, _, _ = run([calls()] * 5, max_steps=3)
    assert result.error == "the run did not finish within 3 steps"


def test_a_reflection_without_words_is_the_failure_itself() -> None:
    _, provider, _ = run(["try", "VERDICT: FAIL: no tests", "", "again", "VERDICT: PASS"])
    assert "1. no tests" in provider.requests[3].messages[2].content


@pytest.mark.parametrize("options", [{"max_trials": 0}, {"trial_steps": 0}])
def test_limits_that_allow_nothing_are_refused(options: dict[str, int]) -> None:
    make: Callable[..., Reflexion] = Reflexion
    with pytest.raises(MisuseError, match="at least 1"):
        make(**options)


def test_later_trials_keep_the_name_of_the_conversation() -> None:
    """Policies that keep state by conversation must not take a new trial for a new conversation."""
    from chimera.core.interception import Interceptors, current_run
    from chimera.core.loop_config import LoopConfig

    names = []

    def note(_messages: list[Message]) -> None:
        who = current_run()
        names.append(who.conversation_id if who else None)

    provider = FauxProvider(["try", "VERDICT: FAIL", "note", "again", "VERDICT: PASS"])
    context = conversation()
    Reflexion(config=LoopConfig(interceptors=Interceptors(context=[note]), yolo_mode=True)).run(provider, [], context)
    assert names == [context.conversation_id] * 5
