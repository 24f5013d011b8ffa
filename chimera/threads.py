"""Running blocking code off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

__all__ = ["in_thread"]

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """`asyncio.to_thread` for code that is not ours: a `StopIteration` comes out as a `RuntimeError`.

    A future cannot hold a `StopIteration`; without this, whoever awaits would wait for ever.
    """

    def guarded() -> T:
        try:
            return fn(*args, **kwargs)
        except StopIteration as exc:
            raise RuntimeError(f"{getattr(fn, '__qualname__', fn)} raised StopIteration") from exc

    return await asyncio.to_thread(guarded)
