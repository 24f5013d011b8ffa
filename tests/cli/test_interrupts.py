from __future__ import annotations

import asyncio
import os
import signal
import threading

import pytest

from chimera.cli.interrupts import Interrupts, raising


async def watched(interrupts: Interrupts, *numbers: signal.Signals) -> None:
    with interrupts.held(), interrupts.watching():
        for number in numbers:
            os.kill(os.getpid(), number)
            await asyncio.sleep(0)
            await asyncio.sleep(0)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_asks_the_turn_to_end(number: signal.Signals, code: int) -> None:
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    calls: list[str] = []
    interrupts = Interrupts(lambda: calls.append("stop"))
    asyncio.run(watched(interrupts, number))
    assert calls == ["stop"]
    assert interrupts.exit_code == code
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


def test_the_second_one_cancels_the_task() -> None:
    calls: list[str] = []
    interrupts = Interrupts(lambda: calls.append("stop"))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(watched(interrupts, signal.SIGINT, signal.SIGINT))
    assert calls == ["stop"]


def test_one_that_comes_before_the_task_keeps_it_from_working() -> None:
    async def work() -> None:
        with interrupts.watching():
            await asyncio.sleep(0)
            pytest.fail("it worked")

    interrupts = Interrupts(lambda: pytest.fail("there was nothing to stop"))
    with interrupts.held():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(work())
    assert interrupts.exit_code == 130


def test_an_ignored_hang_up_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts(lambda: None).held():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_without_a_signal_nothing_happens() -> None:
    interrupts = Interrupts(lambda: pytest.fail("stopped"))
    asyncio.run(watched(interrupts))
    assert interrupts.exit_code is None


def test_a_question_can_be_interrupted_within_a_watched_turn() -> None:
    async def ask(interrupts: Interrupts) -> None:
        with interrupts.held(), interrupts.watching():
            with pytest.raises(KeyboardInterrupt), raising():
                os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0)

    interrupts = Interrupts(lambda: None)
    asyncio.run(ask(interrupts))
    assert interrupts.exit_code == 143


def test_elsewhere_than_in_the_main_thread_signals_are_left_alone() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen: list[object] = []

    def ask() -> None:
        with raising():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert seen == [before]
