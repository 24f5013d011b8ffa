"""Asking a person from wherever a run happens to be."""

from __future__ import annotations

import asyncio
import functools
import threading
from typing import Any

import pytest

from chimera.core.asking import AtHome, is_asynchronous, running_loop
from chimera.core.cancellation import CancellationToken
from chimera.threads import in_thread
from chimera.types import PendingApproval, ToolCall

APPROVAL = PendingApproval(ToolCall("1", "note", {}), "note", {}, "why")


async def yes(_approval: PendingApproval) -> bool:
    return True


async def test_elsewhere_it_is_awaited_on_its_own_loop() -> None:
    here = asyncio.get_running_loop()

    async def ask(approval: PendingApproval) -> bool:
        assert asyncio.get_running_loop() is here
        await asyncio.sleep(0)
        return approval is APPROVAL

    at_home = AtHome(ask, here, CancellationToken())
    assert await asyncio.to_thread(at_home, APPROVAL) is True


async def test_at_home_it_is_an_ordinary_coroutine() -> None:
    at_home = AtHome(yes, asyncio.get_running_loop(), CancellationToken())
    assert await at_home(APPROVAL) is True


async def test_what_it_raises_comes_out() -> None:
    async def broken(_approval: PendingApproval) -> bool:
        raise OSError("no screen")

    at_home = AtHome(broken, asyncio.get_running_loop(), CancellationToken())
    with pytest.raises(OSError, match="no screen"):
        await asyncio.to_thread(at_home, APPROVAL)


async def test_a_cancelled_run_gives_its_question_up() -> None:
    token, asked, given_up = CancellationToken(), asyncio.Event(), []

    async def ask(_approval: PendingApproval) -> bool:
        asked.set()
        try:
            await asyncio.sleep(10)
        finally:
            given_up.append(True)
        return True

    question = asyncio.ensure_future(in_thread(AtHome(ask, asyncio.get_running_loop(), token), APPROVAL))
    await asked.wait()
    token.cancel()
    with pytest.raises(RuntimeError, match="raised CancelledError"):
        await question
    await asyncio.sleep(0)
    assert given_up == [True]
    assert token._callbacks == []


class _Callable:
    async def __call__(self, approval: PendingApproval) -> bool:
        return True

    async def method(self, approval: PendingApproval) -> bool:
        return True


@pytest.mark.parametrize(
    ("fn", "answer"),
    [
        (yes, True),
        (_Callable(), True),
        (_Callable().method, True),
        (functools.partial(yes), True),
        (lambda approval: True, False),
        (print, False),
        (None, False),
    ],
)
def test_what_is_asynchronous(fn: Any, answer: bool) -> None:
    assert is_asynchronous(fn) is answer


async def test_the_loop_of_this_thread() -> None:
    assert running_loop() is asyncio.get_running_loop()
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(running_loop()))
    thread.start()
    thread.join()
    assert found == [None]
