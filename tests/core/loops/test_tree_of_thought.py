from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.core.context import Context
from chimera.core.loop_config import LoopConfig
from chimera.core.loops.tree_of_thought import TreeOfThought, _number_in
from chimera.errors import MisuseError
from chimera.providers.faux import FauxProvider
from chimera.types import AgentResult
from tests.core.loops.scenes import DRIVES, Probe, calls, conversation

every_drive = pytest.mark.parametrize("drive", DRIVES.values(), ids=DRIVES)


def run(script: list[Any], n: int = 3, **options: Any) -> tuple[AgentResult, FauxProvider, Context, Probe]:
    provider, context, probe = FauxProvider(script), conversation(), Probe()
    return TreeOfThought(n_candidates=n, **options).run(provider, [probe], context), provider, context, probe


def internal(provider: FauxProvider) -> list[Any]:
    return [request for request in provider.requests if request.tools is None]


def test_the_best_candidate_is_acted_on_and_the_others_leave_no_trace() -> None:
    script = [calls({"n": 1}), calls({"n": 2}), calls({"n": 3}), "2", "x", "y", "z", "3"]
    result, provider, context, probe = run(script)
    assert result == AgentResult("z", 2, 1, 0.0, True)
    assert probe.entered == [{"n": 2}]
    assert [message.role for message in context.messages] == ["user", "assistant", "tool", "assistant"]
    assert [len(request.messages) for request in provider.requests] == [2, 2, 2, 1, 4, 4, 4, 1]


def test_candidates_are_sampled_at_a_temperature_and_judged_without() -> None:
    _, provider, _, _ = run(["a", "b", "c", "1"])
    assert [dict(request.kwargs) for request in provider.requests] == [{"temperature": 0.7}] * 3 + [{}]


@pytest.mark.parametrize("n", [1, 2, 5])
def test_candidates_that_are_alike_are_not_evaluated(n: int) -> None:
    script = [{**calls({"a": 1, "b": [True]}), "text": "same"} for _ in range(n)]
    result, provider, _, probe = run([*script, *["done"] * n], n)
    assert (result.output, result.success) == ("done", True)
    assert len(provider.requests) == 2 * n
    assert internal(provider) == []
    assert len(probe.entered) == 1


@pytest.mark.parametrize(
    "second",
    [
        calls({"a": True}),
        calls({"a": 1.5}),
        calls({"a": "1"}),
        calls({"a": 1}, {"a": 1}),
        calls({"a": 1}, name="other"),
    ],
)
def test_candidates_that_differ_in_what_they_would_do_are_evaluated(second: dict[str, Any]) -> None:
    _, provider, _, _ = run([calls({"a": 1}), second, "1", "done", "done"], 2)
    assert len(internal(provider)) == 1


def test_the_evaluator_is_shown_each_thought_once() -> None:
    result, provider, _, _ = run(["same", "same", "other", "2"])
    shown = internal(provider)[0].messages[-1].content
    assert shown.count("same") == 1
    assert "Candidate 2:\nother" in shown
    assert "Candidate 3" not in shown
    assert result.output == "other"


def test_the_evaluator_is_shown_calls() -> None:
    _, provider, _, _ = run([{**calls({"path": "a.py"}), "text": "I look."}, "done", "2"], 2)
    assert 'I look.\nprobe {"path": "a.py"}' in internal(provider)[0].messages[-1].content


@every_drive
@pytest.mark.parametrize("evaluation", ["", "none of them", "0", "4", "-1", "2.5", "1e9", "both 2 and 3", "99999999"])
def test_an_evaluation_that_cannot_be_read_falls_back_to_the_first(drive: Any, evaluation: str) -> None:
    ran = drive(TreeOfThought(n_candidates=3), FauxProvider(["first", "second", "third", evaluation]), [])
    assert ran.result is not None
    assert (ran.result.output, ran.result.success) == ("first", True)


@every_drive
@pytest.mark.parametrize("evaluation", ["2", " 2\n", "2.", "**2**", "Candidate 2", "2: sounder than 3", "It is 2, 2!"])
def test_an_evaluation_names_its_candidate(drive: Any, evaluation: str) -> None:
    ran = drive(TreeOfThought(n_candidates=3), FauxProvider(["first", "second", "third", evaluation]), [])
    assert ran.result is not None
    assert ran.result.output == "second"


@given(st.text(), st.integers(1, 9))
def test_any_evaluation_is_read_or_is_not(text: str, limit: int) -> None:
    number = _number_in(text, limit)
    assert number is None or 1 <= number <= limit


@given(st.integers(1, 9), st.text(alphabet=st.characters(exclude_categories=["N"]), max_size=20))
def test_a_lone_number_is_always_found(number: int, around: str) -> None:
    assert _number_in(f"{around} {number} {around}", 9) == number or "-" in around


def test_steps_are_bounded() -> None:
    result, provider, _, probe = run([calls()] * 20, 2, max_steps=3)
    assert result.error == "the run did not finish within 3 steps"
    assert (result.steps, len(probe.entered), len(provider.requests)) == (3, 3, 6)


def test_the_cost_of_a_step_is_that_of_all_its_calls() -> None:
    usage = {"input_tokens": 1, "output_tokens": 0}
    provider = FauxProvider([{"text": text, "usage": usage} for text in ("a", "b", "1")], usd_per_token=1.0)
    gen = TreeOfThought(n_candidates=2).iter_steps(provider, [], conversation())
    assert next(gen).cost == 3.0


def test_compaction_judges_by_the_size_of_the_conversation_and_not_of_evaluations() -> None:
    sizes: list[int] = []

    class Watching:
        name = "watching"

        def due(self, messages: Any, *, input_tokens: int, context_window: int) -> bool:
            sizes.append(input_tokens)
            return False

    def used(step: Any, tokens: int) -> Any:
        return {**step, "usage": {"input_tokens": tokens, "output_tokens": 0}}

    script = [used(calls({"n": n}), 900) for n in (1, 2)]
    provider = FauxProvider([*script, used({"text": "1"}, 5), "done"])
    config = LoopConfig(compaction=Watching(), yolo_mode=True)
    TreeOfThought(n_candidates=2, config=config).run(provider, [Probe()], conversation())
    assert sizes[:3] == [0, 900, 900]


def test_at_least_one_candidate_is_needed() -> None:
    with pytest.raises(MisuseError, match="n_candidates"):
        TreeOfThought(n_candidates=0)
