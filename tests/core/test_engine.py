"""What the engine does for every loop: compaction, middleware, queues, limits, counts, and how programs go wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chimera.core.context import Context
from chimera.core.decisions import InterceptDecision, Interceptors
from chimera.core.effects import Act, Acted, Complete, CompleteInternally, FinishStep, Outcome
from chimera.core.engine import Program
from chimera.core.loop import Loop
from chimera.core.loop_config import LoopConfig
from chimera.core.loop_events import LoopEventType
from chimera.core.middleware import LoopMiddleware
from chimera.core.steering import MessageQueue
from chimera.errors import ContextOverflowError, MisuseError, ProviderError
from chimera.events import EventBus
from chimera.providers.base import Response
from chimera.providers.faux import FauxProvider
from chimera.types import AgentResult, Message, ToolResult
from tests.core.driving import Note, Summarise, assert_acceptable, calling, drive, every_mode, held

OVERFLOW = {"error": ContextOverflowError("too long")}


class Written(Loop):
    """A loop made from a function that returns its program."""

    name = "written"

    def __init__(self, write: Callable[[Context], Any], config: LoopConfig | None = None) -> None:
        super().__init__(config=config)
        self.write = write

    def program(self, context: Context) -> Program:
        program: Program = self.write(context)
        return program


def run(write: Callable[[Context], Any], script: Any = None, config: LoopConfig | None = None) -> AgentResult:
    return Written(write, config).run(FauxProvider(script), [Note()], Context(None, [Message.user("go")]))


class TestCompaction:
    @every_mode
    def test_it_shortens_the_durable_conversation_before_a_call(self, mode: str) -> None:
        ran = drive(mode, [calling("note"), "in short", "done"], [Note()], held(compaction=Summarise(2)))
        assert ran.messages == [Message.user("summary: in short"), Message.assistant("done")]
        summary, last = ran.requests[1:]
        assert (summary.messages[0], summary.tools) == (Message.system("summarise"), None)
        assert summary.kwargs == {"max_tokens": 99}
        assert last.messages == (Message.system("be good"), Message.user("summary: in short"))
        assert [(e.before, e.after, e.strategy) for e in ran.bus if e.type == "compaction"] == [(3, 1, "tiny")]  # type: ignore[attr-defined]
        if ran.events:
            assert LoopEventType.COMPACT_BOUNDARY in [event.type for event in ran.events]

    @every_mode
    def test_an_overflow_is_planned_anew_once(self, mode: str) -> None:
        met: list[int] = []
        chains = Interceptors(context=[lambda messages: met.append(len(messages))])
        script = [OVERFLOW, "in short", "done"]
        ran = drive(mode, script, [], held(chains, compaction=Summarise(99)), context=_long(5))
        assert (ran.output, ran.messages[0].content) == ("done", "summary: in short")
        assert met == [5, 6, 1], "the new plan and the summary pass the seam like the first call"

    @every_mode
    @pytest.mark.parametrize("how", ["no strategy", "a strategy that changes nothing", "twice"])
    def test_an_overflow_that_stays_comes_out(self, mode: str, how: str) -> None:
        strategies = {"no strategy": None, "twice": Summarise(99)}
        config = held(compaction=strategies.get(how, _Nothing(99)))
        script = [OVERFLOW, *(["in short", OVERFLOW] if how == "twice" else []), "never"]
        if mode.startswith("agent"):
            assert "ContextOverflowError" in str(drive(mode, script, [], config, context=_long(3)).reason)
        else:
            with pytest.raises(ContextOverflowError):
                drive(mode, script, [], config, context=_long(3))

    @every_mode
    def test_a_strategy_may_know_a_way_without_the_model(self, mode: str) -> None:
        class Falls(Summarise):
            def compact(self, messages: Any) -> Any:
                try:
                    return (yield from super().compact(messages))
                except ProviderError:
                    return list(messages)[-1:]

        script = [{"error": ProviderError("busy")}, "done"]
        ran = drive(mode, script, [], held(compaction=Falls(2)), context=_long(3))
        assert ran.messages == [Message.user("2"), Message.assistant("done")]

    @every_mode
    def test_a_strategy_that_changes_messages_without_dropping_any_counts(self, mode: str) -> None:
        class Trims(Summarise):
            def compact(self, messages: Any) -> Any:
                return [Message.user(message.content[:1]) for message in messages]
                yield

        context = Context(None, [Message.user("long long text")] * 2)
        ran = drive(mode, [OVERFLOW, "done"], [], held(compaction=Trims(9)), context=context)
        assert [message.content for message in ran.messages] == ["l", "l", "done"]

    @every_mode
    def test_usage_that_the_provider_counted_reaches_the_strategy(self, mode: str) -> None:
        asked: list[tuple[int, int]] = []

        class Counts(Summarise):
            def due(self, messages: Any, *, input_tokens: int, context_window: int) -> bool:
                asked.append((input_tokens, context_window))
                return False

        script = [calling("note", usage={"input_tokens": 70, "output_tokens": 1}), "done"]
        drive(mode, FauxProvider(script, context_window=1000), [Note()], held(compaction=Counts(1)))
        assert asked == [(0, 1000), (70, 1000)]


class _Nothing(Summarise):
    def compact(self, messages: Any) -> Any:
        return list(messages)
        yield


def _long(count: int) -> Context:
    return Context(None, [Message.user(str(number)) for number in range(count)])


class TestQueues:
    @every_mode
    def test_steering_enters_before_the_next_call_and_follow_ups_when_the_run_would_end(self, mode: str) -> None:
        queue = MessageQueue()

        class Steers(Note):
            def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
                queue.steer("careful")
                return super().execute(args, env)

        queue.follow_up("first more")
        queue.follow_up("then that")
        ran = drive(mode, [calling("note"), "one", "two", "three"], [Steers()], held(message_queue=queue))
        texts = [message.content for message in ran.messages]
        assert texts == ["go", "", "noted", "careful", "one", "first more", "two", "then that", "three"]
        assert ran.output == "three"
        assert not queue
        if ran.events:
            said = [event.data.content for event in ran.events if event.type is LoopEventType.SYSTEM]
            assert said == ["careful", "first more", "then that"]

    @every_mode
    def test_only_the_last_step_of_all_is_done(self, mode: str) -> None:
        queue = MessageQueue()
        queue.follow_up("more")
        ran = drive(mode, ["one", "two"], [], held(message_queue=queue))
        if ran.steps:
            assert [step.done for step in ran.steps] == [False, True]

    @every_mode
    def test_a_run_that_did_not_succeed_does_not_go_on(self, mode: str) -> None:
        queue = MessageQueue()
        queue.follow_up("more")
        config = held(message_queue=queue)
        ran = drive(mode, [calling("note")] * 9, [Note()], config, max_steps=2)
        assert ran.reason in ("max_turns", "the run did not finish within 2 steps")
        assert (len(ran.requests), bool(queue)) == (2, True)


class TestMiddleware:
    @every_mode
    def test_it_may_change_the_answer_before_anybody_acts_on_it(self, mode: str) -> None:
        class Edit(LoopMiddleware):
            def after_model(self, context: Context, response: Response) -> Response | None:
                return Response("edited") if response.content == "draft" else None

        ran = drive(mode, ["draft"], [], held(middleware=[Edit(), LoopMiddleware()]))
        assert (ran.output, ran.messages[-1]) == ("edited", Message.assistant("edited"))

    @every_mode
    @pytest.mark.parametrize("method", ["before_model", "after_model"])
    def test_what_it_raises_ends_the_run_as_an_error(self, mode: str, method: str) -> None:
        class Broken(LoopMiddleware):
            def before_model(self, context: Context) -> None:
                if method == "before_model":
                    raise LookupError("mine")

            def after_model(self, context: Context, response: Response) -> None:
                raise LookupError("mine")

        if mode.startswith("agent"):
            assert drive(mode, ["x"], [], held(middleware=Broken())).reason == "error: LookupError: mine"
        else:
            with pytest.raises(LookupError, match="mine"):
                drive(mode, ["x"], [], held(middleware=Broken()))


class TestCounting:
    @every_mode
    def test_steps_calls_usage_and_cost(self, mode: str) -> None:
        usage = {"input_tokens": 10, "output_tokens": 5}
        script = [calling("note", "note", usage=usage), {"text": "done", "usage": usage}]
        ran = drive(mode, FauxProvider(script, usd_per_token=0.5), [Note()], held())
        if ran.events:
            result = ran.events[-1].data
            assert (result.usage, result.cost_usd, result.turn_count) == (
                {"input_tokens": 20, "output_tokens": 10},
                15.0,
                2,
            )
            assert result.duration_ms > 0
        costs = [event.cost for event in ran.bus if event.type == "model_response"]  # type: ignore[attr-defined]
        assert costs == [7.5, 7.5]
        if ran.steps:
            assert [(step.step, step.cost, step.done) for step in ran.steps] == [(1, 7.5, False), (2, 7.5, True)]

    @every_mode
    @pytest.mark.parametrize(
        "usage", [None, "lots", 7, {"input_tokens": None}, {"input_tokens": "many", "odd": 2.5}, object()]
    )
    def test_usage_that_cannot_be_counted_is_not(self, mode: str, usage: Any) -> None:
        class Odd:
            cost_usd = 3

            def complete(self, messages: Any, tools: Any = None, **_: Any) -> Response:
                return Response("done", (), usage)

        ran = drive(mode, Odd(), [], held(compaction=Summarise(99)))
        assert ran.output == "done"
        told = [(e.input_tokens, e.output_tokens) for e in ran.bus if e.type == "model_response"]  # type: ignore[attr-defined]
        assert told == [(0, 0)]


class TestPrograms:
    def test_a_failure_is_thrown_back_where_the_program_asked(self) -> None:
        def write(context: Context) -> Program:
            try:
                yield Complete(context)
            except ProviderError as exc:
                return Outcome(f"saw {exc}")
            return Outcome("never")

        assert run(write, [{"error": ProviderError("busy")}]).output == "saw busy"

    def test_a_stop_is_final_and_no_program_goes_on_after_it(self) -> None:
        def write(context: Context) -> Program:
            for _ in range(3):
                try:
                    yield Complete(context)
                except Exception:
                    continue
            return Outcome("went on")

        chains = Interceptors(context=[lambda _: InterceptDecision.block("no")])
        result = run(write, ["x"], held(chains))
        assert (result.output, result.success) == ("Blocked by interceptor: no", False)

    def test_a_program_is_closed_on_every_way_out(self) -> None:
        closed: list[str] = []

        def write(context: Context) -> Program:
            try:
                answer = yield Complete(context)
                return Outcome(answer.content)
            finally:
                closed.append("closed")

        assert run(write, ["x"]).output == "x"
        with pytest.raises(OSError, match="gone"):
            run(write, [{"error": OSError("gone")}])
        gen = Written(write).iter_steps(FauxProvider("x"), [], Context())
        gen.close()
        assert closed == ["closed"] * 2

    @pytest.mark.parametrize("ask", [None, "complete", object(), Complete])
    def test_what_is_no_ask_is_misuse(self, ask: Any) -> None:
        def write(_context: Context) -> Any:
            yield ask

        with pytest.raises(MisuseError, match="a loop's program yields asks, not"):
            run(write)

    @pytest.mark.parametrize("value", [None, "text", AgentResult("x", 1, 1, 0.0, True)])
    def test_what_is_no_outcome_is_misuse(self, value: Any) -> None:
        def write(_context: Context) -> Any:
            return value
            yield

        with pytest.raises(MisuseError, match="a loop's program returns an Outcome, not"):
            run(write)

    def test_internal_calls_pass_no_seam_and_count_as_cost(self) -> None:
        met: list[Any] = []

        def write(context: Context) -> Program:
            answer = yield CompleteInternally([Message.user("judge this")], {"temperature": 0.25})
            acted: Acted = yield Act(context, Response(f"judged {answer.content}"))
            yield FinishStep(acted, True)
            return Outcome(acted.message.content)

        provider = FauxProvider([{"text": "well", "usage": {"output_tokens": 4}}], usd_per_token=0.5)
        chains = Interceptors(context=[met.append], provider_request=[met.append])
        result = Written(write, held(chains)).run(provider, [Note()], Context())
        assert (result.output, result.cost, result.steps, met) == ("judged well", 2.0, 1, [])
        [request] = provider.requests
        assert (request.messages, request.tools, request.kwargs) == ((Message.user("judge this"),), None, _quarter())

    def test_messages_in_the_place_of_the_conversation(self) -> None:
        seen: list[Any] = []

        def write(context: Context) -> Program:
            mine = [Message.user("only this")]
            yield Complete(context, messages=mine, tools=False, kwargs={"temperature": 0.25})
            assert mine == [Message.user("only this")]
            yield Complete(context, messages=[])
            return Outcome("ok")

        provider = FauxProvider(["a", "b"])
        chains = Interceptors(context=[lambda messages: seen.append(list(messages))])
        Written(write, held(chains)).run(provider, [Note()], Context("system"))
        assert seen == [[Message.user("only this")], []]
        assert [(r.tools is None, r.kwargs) for r in provider.requests] == [(True, _quarter()), (False, {})]

    def test_an_overflow_of_such_messages_is_not_the_conversations(self) -> None:
        def write(context: Context) -> Program:
            yield Complete(context, messages=[Message.user("x")])
            return Outcome("never")

        with pytest.raises(ContextOverflowError):
            run(write, [OVERFLOW], held(compaction=Summarise(99)))


def _quarter() -> dict[str, Any]:
    return {"temperature": 0.25}


@every_mode
def test_a_conversation_goes_on_where_it_stopped(mode: str) -> None:
    context = Context("s", [Message.user("one")])
    config = held(event_bus=EventBus(), secrets_redaction=False)
    for text in ("two", "three"):
        drive(mode, [calling("note"), text], [Note()], config, context=context)
        context.add(Message.user("and?"))
    assert_acceptable(context.messages)
    assert len(context.messages) == 1 + 2 * 4
