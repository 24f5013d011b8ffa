"""Crossing between synchronous and asynchronous code."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from contextvars import ContextVar
from typing import Any

import pytest

from chimera.threads import in_thread, run_coroutine

who: ContextVar[str] = ContextVar("who", default="nobody")


async def test_blocking_code_runs_in_another_thread_with_the_callers_context() -> None:
    who.set("me")
    name, thread = await in_thread(lambda: (who.get(), threading.get_ident()))
    assert name == "me"
    assert thread != threading.get_ident()


async def test_arguments_are_passed_on() -> None:
    assert await in_thread(int, "ff", base=16) == 255


async def test_what_it_raises_comes_out() -> None:
    def broken() -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await in_thread(broken)


async def test_a_stop_iteration_comes_out_as_what_can_be_waited_for() -> None:
    """A future cannot hold a `StopIteration`: whoever awaited it would wait for ever."""

    def stops() -> Any:
        return next(iter(()))

    with pytest.raises(RuntimeError, match="raised StopIteration"):
        await asyncio.wait_for(in_thread(stops), 5)


@pytest.mark.parametrize("kind", [asyncio.CancelledError, concurrent.futures.CancelledError])
async def test_a_cancellation_of_its_own_is_not_mistaken_for_the_callers(kind: type[BaseException]) -> None:
    def cancelled() -> None:
        raise kind

    with pytest.raises(RuntimeError, match="raised CancelledError"):
        await in_thread(cancelled)


async def _answer() -> tuple[str, int]:
    await asyncio.sleep(0)
    return who.get(), threading.get_ident()


def test_a_coroutine_runs_in_this_thread_where_no_loop_does() -> None:
    assert run_coroutine(_answer())[1] == threading.get_ident()


async def test_below_a_loop_it_runs_in_a_thread_of_its_own_with_the_callers_context() -> None:
    who.set("me")
    name, thread = run_coroutine(_answer())
    assert name == "me"
    assert thread != threading.get_ident()


@pytest.mark.parametrize("below", [False, True])
def test_what_a_coroutine_raises_comes_out(below: bool) -> None:
    async def broken() -> None:
        raise ValueError("mine")

    async def outer() -> None:
        run_coroutine(broken())

    with pytest.raises(ValueError, match="mine"):
        run_coroutine(outer() if below else broken())
