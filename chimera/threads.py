"""Crossing between synchronous and asynchronous code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, ParamSpec, TypeVar

__all__ = ["in_thread", "run_coroutine"]

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """`asyncio.to_thread` for code that is not ours: a `StopIteration` or a cancellation that `fn` raises comes out as
    a `RuntimeError`.

    A future cannot hold a `StopIteration`, so whoever awaits would wait for ever; and a cancellation would look like
    the caller's own.
    """

    def guarded() -> T:
        try:
            return fn(*args, **kwargs)
        except (StopIteration, CancelledError, asyncio.CancelledError) as exc:
            raise RuntimeError(f"{getattr(fn, '__qualname__', fn)} raised {type(exc).__name__}") from exc

    return await asyncio.to_thread(guarded)


def run_coroutine(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from synchronous code, also below a running event loop: then in a thread of its own,
    while the loop waits. Context variables are those of the caller."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(copy_context().run, asyncio.run, coroutine).result()
