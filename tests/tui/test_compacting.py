from __future__ import annotations

import pytest

from chimera.compaction import DropOldest
from chimera.tui.compacting import OnDemand
from chimera.types import Message


def test_it_shortens_once_when_it_is_asked_to() -> None:
    strategy = OnDemand(DropOldest())
    messages = [Message.user("x")]
    assert not strategy.due(messages, input_tokens=1, context_window=1_000)
    strategy.wanted = True
    assert strategy.due(messages, input_tokens=1, context_window=1_000)
    assert not strategy.due(messages, input_tokens=1, context_window=1_000)


def test_it_does_what_the_inner_one_does() -> None:
    strategy = OnDemand(DropOldest(threshold=0.5))
    messages = [Message.user("x" * 4_000)]
    assert strategy.due(messages, input_tokens=0, context_window=1_000)
    assert (strategy.name, strategy.threshold) == ("drop-oldest", 0.5)
    with pytest.raises(StopIteration) as end:
        next(strategy.compact(messages))
    assert end.value.value == messages
