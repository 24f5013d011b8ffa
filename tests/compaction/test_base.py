"""When a conversation is too long."""

from __future__ import annotations

from typing import Any

import pytest

from chimera.compaction import DropOldest, SummaryCompaction
from chimera.errors import MisuseError
from chimera.types import Message

SHORT, LONG = [Message.user("x")], [Message.user("x" * 4000)]


@pytest.mark.parametrize(
    ("messages", "tokens", "window", "due"),
    [
        (SHORT, 0, 1000, False),
        (SHORT, 800, 1000, False),
        (SHORT, 801, 1000, True),
        (LONG, 0, 1000, True),
        (LONG, 5, 1000, True),
        (LONG, 0, 2000, False),
        (LONG, 10**9, 0, False),
        ([], 0, 1000, False),
    ],
)
def test_the_larger_of_count_and_estimate_is_held_against_the_window(
    messages: list[Message], tokens: int, window: int, due: bool
) -> None:
    for strategy in (DropOldest(threshold=0.8), SummaryCompaction(threshold=0.8)):
        assert strategy.due(messages, input_tokens=tokens, context_window=window) is due


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, True, "0.5", None])
@pytest.mark.parametrize(
    ("strategy", "name"),
    [
        (DropOldest, "keep"),
        (DropOldest, "threshold"),
        (SummaryCompaction, "keep_recent"),
        (SummaryCompaction, "threshold"),
    ],
)
def test_shares_lie_between_nothing_and_all(strategy: Any, name: str, share: object) -> None:
    with pytest.raises(MisuseError, match=f"{name} is a share"):
        strategy(**{name: share})


def test_strategies_have_names() -> None:
    assert (DropOldest().name, SummaryCompaction().name) == ("drop-oldest", "summary")
