"""Queues that are filled from anywhere while a run goes on."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from chimera.core.steering import MessageQueue
from chimera.types import Message


def test_steering_is_taken_all_at_once_and_follow_ups_one_by_one() -> None:
    queue = MessageQueue()
    assert not queue
    queue.follow_up("f1")
    queue.follow_up(Message.user("f2"))
    queue.steer("s1")
    queue.steer("s2")
    assert queue
    assert queue.take_steering() == [Message.user("s1"), Message.user("s2")]
    assert queue.take_steering() == []
    assert queue.take_next() == [Message.user("f1")]
    queue.steer("late")
    assert queue.take_next() == [Message.user("late")]
    assert queue.take_next() == [Message.user("f2")]
    assert queue.take_next() == []
    assert not queue


def test_clearing_forgets_both() -> None:
    queue = MessageQueue()
    queue.steer("s")
    queue.follow_up("f")
    queue.clear()
    assert (queue.take_steering(), queue.take_next(), bool(queue)) == ([], [], False)


@pytest.mark.parametrize("junk", [3, ["a"], {"content": "x"}])
def test_only_messages_and_texts(junk: Any) -> None:
    with pytest.raises(TypeError, match="content of a message is text"):
        MessageQueue().steer(junk)


def test_nothing_is_lost_or_doubled_between_threads() -> None:
    queue = MessageQueue()
    taken: list[str] = []

    def fill(start: int) -> None:
        for number in range(start, start + 200):
            queue.follow_up(str(number))
            queue.steer(str(-number - 1))

    def drain() -> None:
        while len(taken) < 1600:
            taken.extend(message.content for message in (*queue.take_steering(), *queue.take_next()))

    threads = [threading.Thread(target=fill, args=(start,)) for start in range(0, 800, 200)]
    reader = threading.Thread(target=drain)
    reader.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reader.join(10)
    assert sorted(map(int, taken)) == list(range(-800, 800))
