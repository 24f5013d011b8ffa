"""The two drivers: the only places where a provider is called and a tool runs.

A driver steps a generator of effects, does what each effect says, and sends the answer, or throws the failure, back
in. What the generator emits is yielded to whoever iterates. Both drivers close the generator on every way out.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, Awaitable, Coroutine, Generator, Sequence
from contextlib import aclosing
from time import perf_counter
from typing import Any, TypeVar

from chimera.core.effects import AwaitRound, Begin, Consult, Effect, Emit, RunVetted, VettedCall, WireCall
from chimera.core.home import Home
from chimera.core.identity import running
from chimera.core.rounds import rounds_of
from chimera.core.run import enclosing
from chimera.core.tool import BaseTool
from chimera.core.wire import Turn, async_turn, call_arguments
from chimera.errors import ChimeraError, ProviderProtocolError
from chimera.frozen import class_name, safe_text
from chimera.providers.base import Provider, StreamChunk
from chimera.threads import in_thread, run_coroutine
from chimera.types import ToolResult

__all__ = ["async_drive", "drive", "drive_to_end"]

T = TypeVar("T")
_log = logging.getLogger("chimera.core")
_GRACE_SECONDS = 3.0


def drive(effects: Generator[Effect, Any, T]) -> Generator[Any, None, T]:
    """Run `effects` in this thread. Yields what is emitted; returns what the generator returns."""
    send: Any = effects.send
    step, answer = send, None
    try:
        while True:
            try:
                effect: Any = step(answer)
            except StopIteration as stop:
                result: T = stop.value
                return result
            step, answer = send, None
            kind = type(effect)
            if kind is Emit:
                while effect.items:
                    yield effect.items.popleft()
                continue
            try:
                answer = _perform(effect)
            except BaseException as exc:
                step, answer = effects.throw, exc
    finally:
        effects.close()


def drive_to_end(effects: Generator[Effect, Any, T]) -> T:
    """Run `effects` in this thread, let go of what is emitted, and return the result."""
    driver = drive(effects)
    while True:
        try:
            next(driver)
        except StopIteration as stop:
            result: T = stop.value
            return result


async def async_drive(effects: Generator[Effect, Any, Any]) -> AsyncGenerator[Any, None]:
    """Run `effects` on the event loop and yield what is emitted. What they return is let go of.

    When the run that has begun is cancelled, whatever is awaited is given up and `RunCancelled` is thrown into the
    generator. What whoever iterates throws in, or raises, closes it.
    """
    send: Any = effects.send
    step, answer = send, None
    rounds = rounds_of(asyncio.get_running_loop())
    home = Home(rounds)
    try:
        while True:
            began = perf_counter()
            try:
                effect: Any = step(answer)
            except StopIteration:
                return
            finally:
                rounds.spent += perf_counter() - began
            step, answer = send, None
            kind = type(effect)
            if kind is Emit:
                while effect.items:
                    yield effect.items.popleft()
            elif kind is WireCall and effect.on_chunk is not None:
                stream = _Stream(effect, home)
                async with aclosing(stream.items()) as items:
                    async for item in items:
                        yield item
                answer = stream.answer
                if stream.failure is not None:
                    step, answer = effects.throw, _as_failure(stream.failure)
            else:
                try:
                    answer = await _performed(effect, home)
                except BaseException as exc:
                    step, answer = effects.throw, _as_failure(exc)
    finally:
        home.leave()
        effects.close()


def _as_failure(exc: BaseException) -> BaseException:
    """Return a cancellation that is not meant for the running task as the failure of what was awaited that it is."""
    task = asyncio.current_task()
    if not isinstance(exc, asyncio.CancelledError) or task is None or task.cancelling():
        return exc
    failure = RuntimeError("what the run waited for was cancelled, and the run was not")
    failure.__cause__ = exc
    return failure


def _perform(effect: Any) -> Any:
    kind = type(effect)
    if kind is RunVetted:
        return list(map(_run_tool, effect.calls))
    if kind is WireCall:
        with call_arguments(effect) as arguments:
            return effect.provider.complete(effect.request.messages, **arguments)
    if kind is Consult:
        answer = effect.fn()
        return run_coroutine(answer) if inspect.iscoroutine(answer) else answer
    if kind is Begin or kind is AwaitRound:
        return None  # nothing here lives on an event loop
    raise TypeError(f"a driver cannot perform {kind.__name__}")


def _performed(effect: Any, home: Home) -> Awaitable[Any]:
    """`_perform`, to be awaited."""
    kind = type(effect)
    if kind is AwaitRound:
        return home.wait_for_round()
    if kind is RunVetted:
        return home.up_to(_run_tools(effect.calls))
    if kind is WireCall:
        return home.up_to(_answer(effect))
    if kind is Consult:
        return home.up_to(_consult(effect.fn))
    if kind is Begin:
        return home.begin(effect.run)
    raise TypeError(f"a driver cannot perform {kind.__name__}")


def _answer(call: WireCall) -> Coroutine[Any, Any, Any]:
    return _complete(call) if _is_asynchronous(call.provider) else _complete_in_thread(call)


async def _complete(call: WireCall) -> Any:
    with await async_turn(call) as arguments:
        return await call.provider.async_complete(call.request.messages, **arguments)


def _is_asynchronous(provider: Any) -> bool:
    """Tell whether the provider does more for a task than to call `complete` in a thread."""
    complete = getattr(provider, "async_complete", None)
    return complete is not None and getattr(complete, "__func__", None) is not Provider.async_complete


async def _complete_in_thread(call: WireCall) -> Any:
    """Call `complete` in a thread. The turn lasts until the thread is done, also when nobody waits for it any more."""
    turn = await async_turn(call)
    try:
        return await in_thread(_take_turn, turn, call)
    finally:
        turn.give_up()


def _take_turn(turn: Turn, call: WireCall) -> Any:
    if not turn.begin():
        return None
    try:
        return call.provider.complete(call.request.messages, **turn.arguments)
    finally:
        turn.end()


async def _consult(fn: Any) -> Any:
    if inspect.iscoroutinefunction(getattr(fn, "func", fn)):
        return await fn()
    answer = await in_thread(fn)
    return await answer if inspect.isawaitable(answer) else answer


class _Stream:
    """A streamed answer: first its `items`, which whoever watches is shown, then the whole `answer` or the `failure`.

    What is raised by those who watch is no failure of the stream.
    """

    def __init__(self, call: WireCall, home: Home) -> None:
        self._call, self._home = call, home
        self.answer: Any = None
        self.failure: BaseException | None = None

    async def items(self) -> AsyncGenerator[Any, None]:
        watched = True
        try:
            async with aclosing(self._items()) as items:
                async for item in items:
                    watched = False
                    yield item
                    watched = True
        except BaseException as exc:
            if watched:
                self.failure = exc
            elif isinstance(exc, Exception):
                _log.debug("a stream that was left failed to close", exc_info=True)
            else:
                raise  # whoever watched has left, is being cancelled or interrupted

    async def _items(self) -> AsyncGenerator[Any, None]:
        call, home = self._call, self._home
        stream = getattr(call.provider, "async_stream", None)
        by_default = getattr(stream, "__func__", None) is Provider.async_stream
        if stream is None or (by_default and not _is_asynchronous(call.provider)):
            answer = self.answer = await home.up_to(_answer(call))
            for item in _shown(call, StreamChunk(getattr(answer, "content", ""), getattr(answer, "thinking", ""))):
                yield item
            return
        with await async_turn(call) as arguments:
            chunks = stream(call.request.messages, **arguments)
            if inspect.isawaitable(chunks):
                chunks = await home.up_to(chunks)
            try:
                while self.answer is None:
                    try:
                        chunk = await home.up_to(anext(chunks))
                    except StopAsyncIteration:
                        raise ProviderProtocolError("the stream ended without an answer") from None
                    for item in _shown(call, chunk):
                        yield item
                    self.answer = chunk.response
            finally:
                close = getattr(chunks, "aclose", None)
                if close is not None:
                    await close()


def _shown(call: WireCall, chunk: StreamChunk) -> list[Any]:
    """Return what whoever watches is shown of a chunk; one that holds thinking and text is shown in two."""
    assert call.on_chunk is not None
    parts = [chunk]
    if chunk.thinking and chunk.text:
        parts = [StreamChunk(thinking=chunk.thinking), StreamChunk(chunk.text)]
    items = [call.on_chunk(part) for part in parts]
    return [item for item in items if item is not None]


# What runs as the body of a tool is no part of an interceptor that may have started the whole run: `running` is None.
# An exit, a cancellation or the panic of an extension that comes out of it is the tool's own failure, not the run's.


def _run_tool(vetted: VettedCall) -> ToolResult:
    outer = enclosing.set(vetted.run)
    judge = None if running.get() is None else running.set(None)
    try:
        return _checked(vetted, vetted.tool.execute(vetted.arguments, vetted.run.env))
    except KeyboardInterrupt:
        raise
    except BaseException as exc:
        return _failed(exc)
    finally:
        if judge is not None:
            running.reset(judge)
        enclosing.reset(outer)


async def _run_tools(calls: Sequence[VettedCall]) -> list[ToolResult]:
    if len(calls) == 1:
        return [await _run_tool_async(calls[0])]
    tasks = [asyncio.ensure_future(_run_tool_async(vetted)) for vetted in calls]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=_GRACE_SECONDS)
        raise


async def _run_tool_async(vetted: VettedCall) -> ToolResult:
    execute = getattr(vetted.tool, "async_execute", None)
    if execute is None or getattr(execute, "__func__", None) is BaseTool.async_execute:
        return await asyncio.to_thread(_run_tool, vetted)
    outer = enclosing.set(vetted.run)
    judge = None if running.get() is None else running.set(None)
    try:
        return _checked(vetted, await execute(vetted.arguments, vetted.run.env))
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except asyncio.CancelledError as exc:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return _failed(exc)  # the tool itself was cancelled, not the run
    except BaseException as exc:
        return _failed(exc)
    finally:
        if judge is not None:
            running.reset(judge)
        enclosing.reset(outer)


def _checked(vetted: VettedCall, result: Any) -> ToolResult:
    if isinstance(result, ToolResult):
        output, error = result.output, result.error
        if type(result) is ToolResult and type(output) is str and (error is None or type(error) is str):
            return result
        metadata = result.metadata if isinstance(result.metadata, dict) else {}
        return ToolResult(safe_text(output), None if error is None else safe_text(error), metadata)
    if inspect.iscoroutine(result):
        result.close()
    return ToolResult("", f"the tool {vetted.call.name} returned {class_name(result)} instead of a ToolResult")


def _failed(exc: BaseException) -> ToolResult:
    """Return the result of a tool that raised. The family of `ChimeraError` speaks to the model in its own words."""
    text = safe_text(exc)
    if isinstance(exc, ChimeraError) and text:
        return ToolResult("", text)
    return ToolResult("", f"{class_name(exc)}: {text}" if text else class_name(exc))
