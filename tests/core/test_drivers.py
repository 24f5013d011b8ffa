"""Both drivers: every way out of a run, and what the conversation looks like behind it."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections import deque
from collections.abc import Generator
from typing import Any

import pytest

from chimera.core.agent_loop import AgentLoop
from chimera.core.cancellation import CancellationToken
from chimera.core.context import Context
from chimera.core.decisions import Interceptors
from chimera.core.drivers import async_drive, drive, drive_to_end
from chimera.core.effects import Consult, Effect, Emit
from chimera.core.loop import ReAct, async_drain_steps, drain_steps
from chimera.core.loop_config import LoopConfig
from chimera.core.tool import BaseTool
from chimera.errors import ProviderProtocolError
from chimera.permissions.base import PermissionAction, PermissionPolicy
from chimera.providers.base import Provider, Response, StreamChunk
from chimera.providers.faux import FauxProvider
from chimera.types import Message, ToolResult
from tests.core.driving import Boom, Note, Scripted, assert_acceptable, calling, every_mode, held, tool_texts
from tests.core.driving import drive as drive_run

UNDER_WAY = "The run was cancelled while this call was under way; it may have taken effect."


class AskAll(PermissionPolicy):
    def evaluate(self, tool_name: str, args: Any) -> PermissionAction:
        return PermissionAction.ASK


class Pressed(PermissionPolicy):
    def evaluate(self, tool_name: str, args: Any) -> PermissionAction:
        raise KeyboardInterrupt


def interrupted(*_: Any) -> Any:
    raise KeyboardInterrupt


class TestEveryInterrupt:
    """Ctrl-C is a `KeyboardInterrupt` wherever the code happens to be."""

    PLACES = ("provider", "second provider call", "tool", "tool_call", "tool_result", "context", "callback", "policy")

    def scene(self, place: str) -> tuple[Any, list[Any], LoopConfig]:
        script = [calling("note", "boom", "note"), "done"]
        if "provider" in place:
            script[1 if "second" in place else 0] = {"error": KeyboardInterrupt()}
        tools = [Note(), Boom("boom", KeyboardInterrupt() if place == "tool" else "bang")]
        chain: list[Any] = [interrupted]
        chains = Interceptors(**{place: chain}) if place in ("tool_call", "tool_result", "context") else None
        if place == "callback":
            return script, tools, LoopConfig(AskAll(), permission_callback=interrupted)
        if place == "policy":
            return script, tools, LoopConfig(Pressed())
        return script, tools, held(chains)

    @every_mode
    @pytest.mark.parametrize("place", PLACES)
    def test_it_comes_out_and_the_conversation_can_go_on(self, mode: str, place: str) -> None:
        script, tools, config = self.scene(place)
        context = Context("s", [Message.user("go")])
        with pytest.raises(KeyboardInterrupt):
            drive_run(mode, script, tools, config, context=context)
        assert_acceptable(context.messages)
        answers = tool_texts(context.messages)
        if place == "tool":
            assert answers == ["noted", UNDER_WAY, "The run was cancelled before this call was started."]
        elif place in ("callback", "policy"):
            assert answers == ["The run was cancelled before this call was started."] * 3
        resumed = drive_run(mode, ["resumed"], tools, held(), context=context)
        assert resumed.output == "resumed"

    def test_the_signal_itself(self) -> None:
        """A real SIGINT while a tool sleeps in the main thread."""

        class Sleep(BaseTool):
            name = "sleep"

            def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
                signal.raise_signal(signal.SIGINT)
                time.sleep(10)
                return ToolResult("never")

        context = Context(None, [Message.user("go")])
        with pytest.raises(KeyboardInterrupt):
            ReAct(config=held()).run(FauxProvider([calling("sleep", "sleep"), "never"]), [Sleep()], context)
        assert tool_texts(context.messages)[0] == UNDER_WAY
        assert_acceptable(context.messages)


class TestClosingEarly:
    @pytest.mark.parametrize("steps", [1, 2, 3, 4])
    def test_a_generator_of_steps(self, steps: int) -> None:
        context = Context(None, [Message.user("go")])
        config = LoopConfig(AskAll())
        gen = ReAct(config=config).iter_steps(FauxProvider([calling("note", "note")] * 3), [Note()], context)
        for _ in range(steps):
            next(gen)
        gen.close()
        assert_acceptable(context.messages)

    @pytest.mark.parametrize("steps", [1, 2, 3, 4])
    async def test_a_stream_of_steps(self, steps: int) -> None:
        context, token = Context(None, [Message.user("go")]), CancellationToken()
        config = LoopConfig(AskAll(), cancellation=token)
        stream = ReAct(config=config).async_iter_steps(FauxProvider([calling("note", "note")] * 3), [Note()], context)
        for _ in range(steps):
            await anext(stream)
        await stream.aclose()
        assert_acceptable(context.messages)
        assert not token.cancelled, "the switch is its owner's to turn"

    @pytest.mark.parametrize("stream", [False, True])
    async def test_a_stream_of_events_at_every_event(self, stream: bool) -> None:
        async def events(context: Context) -> Any:
            provider = FauxProvider([calling("note", "note", text="thinking aloud about it"), "done"])
            return AgentLoop().run(
                (), tools=[Note()], provider=provider, system_prompt=None, context=context, stream=stream
            )

        total = len([event async for event in await events(Context())])
        assert total >= 9
        for count in range(1, total + 1):
            context = Context(None, [Message.user("go")])
            running = await events(context)
            for _ in range(count):
                await anext(running)
            await running.aclose()
            assert_acceptable(context.messages)

    def test_an_exception_that_is_thrown_in_comes_out_and_closes_the_run(self) -> None:
        context = Context(None, [Message.user("go")])
        config = LoopConfig(AskAll())
        gen = ReAct(config=config).iter_steps(FauxProvider([calling("note", "note")] * 3), [Note()], context)
        next(gen)
        with pytest.raises(ValueError, match="mine"):
            gen.throw(ValueError("mine"))
        assert_acceptable(context.messages)
        with pytest.raises(StopIteration):
            next(gen)


class TestDriversThemselves:
    """What a driver owes a generator of effects, shown on one that has nothing to do with models."""

    def effects(self, log: list[str]) -> Generator[Effect, Any, str]:
        try:
            yield Emit(deque(["first"]))
            answer = yield Consult(lambda: 7)
            try:
                yield Consult(self.fail)
            except OSError as exc:
                log.append(str(exc))
            yield Emit(deque([answer]))
            return "end"
        finally:
            log.append("closed")

    @staticmethod
    def fail() -> None:
        raise OSError("outside")

    def test_synchronous(self) -> None:
        log: list[str] = []
        driver = drive(self.effects(log))
        assert (next(driver), next(driver)) == ("first", 7)
        with pytest.raises(StopIteration) as stop:
            next(driver)
        assert (stop.value.value, log) == ("end", ["outside", "closed"])

    async def test_asynchronous(self) -> None:
        log: list[str] = []
        items = [item async for item in async_drive(self.effects(log))]
        assert (items, log) == (["first", 7], ["outside", "closed"])

    def test_to_the_end(self) -> None:
        assert drive_to_end(self.effects([])) == "end"

    @pytest.mark.parametrize("way", ["close", "throw"])
    async def test_whoever_stops_closes_the_effects(self, way: str) -> None:
        log: list[str] = []
        driver = drive(self.effects(log))
        next(driver)
        running = async_drive(self.effects(log))
        await anext(running)
        if way == "close":
            driver.close()
            await running.aclose()
        else:
            with pytest.raises(ValueError, match="mine"):
                driver.throw(ValueError("mine"))
            with pytest.raises(ValueError, match="mine"):
                await running.athrow(ValueError("mine"))
        assert log == ["closed", "closed"]

    @pytest.mark.parametrize("make", [lambda: 5, lambda: "value"])
    async def test_a_consultation_may_be_plain_or_asynchronous(self, make: Any) -> None:
        async def later() -> Any:
            await asyncio.sleep(0)
            return make()

        for fn in (make, later, lambda: later()):

            def effects(fn: Any = fn) -> Generator[Effect, Any, None]:
                yield Emit(deque([(yield Consult(fn))]))

            assert list(drive(effects())) == [make()]
            assert [item async for item in async_drive(effects())] == [make()]

    @pytest.mark.parametrize("effect", [None, "text", object(), ("a",)])
    async def test_what_is_no_effect_is_thrown_back(self, effect: Any) -> None:
        def effects() -> Any:
            yield effect

        with pytest.raises(TypeError, match="a driver cannot perform"):
            drive_to_end(effects())
        with pytest.raises(TypeError, match="a driver cannot perform"):
            await anext(async_drive(effects()))


class TestToolsThatMisbehave:
    @every_mode
    @pytest.mark.parametrize(
        ("failure", "text"),
        [
            (ValueError("bad"), "ValueError: bad"),
            (ValueError(), "ValueError"),
            (StopIteration("x"), "StopIteration: x"),
            (SystemExit(3), "SystemExit: 3"),
            (asyncio.CancelledError("inside"), "CancelledError: inside"),
            (ProviderProtocolError("in its own words"), "in its own words"),
            (RecursionError("deep"), "RecursionError: deep"),
        ],
    )
    @pytest.mark.parametrize("safe", [False, True])
    def test_what_a_tool_raises_is_its_result(self, mode: str, failure: Any, text: str, safe: bool) -> None:
        class AsyncBoom(Boom):
            async def async_execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
                await asyncio.sleep(0)
                return self.execute(args, env)

        tools = [Boom("boom", failure, safe=safe), AsyncBoom("late", failure, safe=safe), Note(safe=safe)]
        ran = drive_run(mode, [calling("boom", "late", "note"), "done"], tools, held())
        in_a_coroutine = isinstance(failure, StopIteration) and mode not in ("run", "iter_steps")
        late = "RuntimeError: coroutine raised StopIteration" if in_a_coroutine else text
        assert ran.answers == [text, late, "noted"]
        assert (ran.output, ran.success) == ("done", True)

    @every_mode
    @pytest.mark.parametrize("junk", [None, "text", 5, {"output": "x"}, ToolResult])
    def test_what_is_no_result_is_an_error(self, mode: str, junk: Any) -> None:
        class Junk(BaseTool):
            name = "junk"

            def execute(self, args: dict[str, Any], env: Any = None) -> Any:
                return junk

        ran = drive_run(mode, [calling("junk"), "done"], [Junk()], held())
        assert ran.answers == [f"the tool junk returned {type(junk).__name__} instead of a ToolResult"]

    @every_mode
    def test_a_coroutine_where_a_result_is_due_is_closed(self, mode: str) -> None:
        async def later() -> ToolResult:
            return ToolResult("never")

        class Junk(BaseTool):
            name = "junk"

            def execute(self, args: dict[str, Any], env: Any = None) -> Any:
                return later()

        ran = drive_run(mode, [calling("junk"), "done"], [Junk()], held())
        assert ran.answers == ["the tool junk returned coroutine instead of a ToolResult"]

    @every_mode
    def test_output_that_is_no_text_becomes_text_before_anybody_reads_it(self, mode: str) -> None:
        seen: list[Any] = []
        odd = ToolResult(["a", 1], ValueError("e"))  # type: ignore[arg-type]
        chains = Interceptors(tool_result=[lambda _call, result: seen.append(result)])
        ran = drive_run(mode, [calling("note"), "done"], [Note(says=odd)], held(chains))
        assert seen == [ToolResult("['a', 1]", "e")]
        assert ran.answers == ["['a', 1]\ne"]


class TestProvidersThatMisbehave:
    @every_mode
    @pytest.mark.parametrize("failure", [OSError("gone"), StopIteration("s"), ValueError("v")])
    def test_what_a_provider_raises_comes_out(self, mode: str, failure: Exception) -> None:
        context = Context(None, [Message.user("go")])
        provider = Scripted(Response("", [*_calls("note")]), failure)
        if mode.startswith("agent"):
            ran = drive_run(mode, provider, [Note()], held(), context=context)
            assert str(failure) in str(ran.reason)
            assert [event.type for event in ran.events[-2:]] == ["error", "result"]
        else:
            with pytest.raises(type(failure) if type(failure) is not StopIteration else RuntimeError):
                drive_run(mode, provider, [Note()], held(), context=context)
        assert tool_texts(context.messages) == ["noted"]
        assert_acceptable(context.messages)

    @every_mode
    @pytest.mark.parametrize("junk", [None, {"content": "x"}, 5, b"bytes", Response(b"bytes")])  # type: ignore[arg-type]
    def test_what_is_no_response_is_an_error_and_no_empty_answer(self, mode: str, junk: Any) -> None:
        class Junk:
            def complete(self, messages: Any, tools: Any = None, **_: Any) -> Any:
                return junk

        if mode.startswith("agent"):
            assert "TypeError" in str(drive_run(mode, Junk(), [], held()).reason)
        else:
            with pytest.raises(TypeError, match="the provider answered with"):
                drive_run(mode, Junk(), [], held())

    @every_mode
    def test_a_coroutine_where_an_answer_is_due_is_closed(self, mode: str) -> None:
        class Late:
            def complete(self, messages: Any, tools: Any = None, **_: Any) -> Any:
                return asyncio.sleep(0)

        if mode.startswith("agent"):
            assert "answered with a coroutine" in str(drive_run(mode, Late(), [], held()).reason)
        else:
            with pytest.raises(TypeError, match="answered with a coroutine"):
                drive_run(mode, Late(), [], held())

    async def test_a_stream_that_ends_without_an_answer(self) -> None:
        class Short(FauxProvider):
            async def async_stream(self, *_: Any, **__: Any) -> Any:
                yield StreamChunk("half an ans")

        events = AgentLoop().run([], tools=None, provider=Short(), system_prompt=None, stream=True)
        result = [event async for event in events][-1].data
        assert result.reason == "error: ProviderProtocolError: the stream ended without an answer"

    @pytest.mark.parametrize("shape", ["generator", "awaited"])
    async def test_a_stream_may_come_at_once_or_be_awaited(self, shape: str) -> None:
        """Third parties write both: an asynchronous generator, and a coroutine that returns one."""

        class Duck:
            async def generator(self, *_: Any, **__: Any) -> Any:
                yield StreamChunk("hel")
                yield StreamChunk("lo", response=Response("hello"))

            async def awaited(self, *_: Any, **__: Any) -> Any:
                await asyncio.sleep(0)
                return self.generator()

        duck: Any = Duck()
        duck.async_stream = getattr(duck, shape)
        events = AgentLoop().run([], tools=None, provider=duck, system_prompt=None, stream=True)
        told = [(event.type.value, event.data) async for event in events]
        assert told[1:3] == [("assistant_chunk", "hel"), ("assistant_chunk", "lo")]
        assert told[-1][1].output == "hello"


def _calls(*names: str) -> Any:
    return FauxProvider(calling(*names)).complete([]).tool_calls


class _Blocking(Provider):
    """A provider without a line of asynchronous code."""

    def __init__(self) -> None:
        self.threads: list[int] = []

    @property
    def model_name(self) -> str:
        return "blocking"

    def complete(self, *_: Any, **__: Any) -> Response:
        self.threads.append(threading.get_ident())
        return Response("hello", thinking="hm")


@pytest.mark.parametrize("duck", [False, True])
async def test_a_blocking_provider_is_called_in_a_thread(duck: bool) -> None:
    provider: Any = _Blocking()
    target = type("Duck", (), {"complete": staticmethod(provider.complete)})() if duck else provider
    stream = ReAct().async_iter_steps(target, [], Context())
    assert (await async_drain_steps(stream)).output == "hello"
    streamed = AgentLoop().run([], tools=None, provider=target, system_prompt=None, stream=True)
    kinds = [(event.type, event.data) async for event in streamed if event.type.endswith("chunk")]
    assert kinds == [("thinking_chunk", "hm"), ("assistant_chunk", "hello")]
    assert len(provider.threads) == 2
    assert threading.get_ident() not in provider.threads


def test_draining_denies_what_waits_for_approval() -> None:
    gen = ReAct(config=LoopConfig(AskAll())).iter_steps(FauxProvider([calling("note"), "done"]), [Note()], Context())
    assert drain_steps(gen).output == "done"
