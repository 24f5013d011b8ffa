"""Handing events from the threads of lanes to the screen, at the pace of the screen."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from chimera.core.loop_events import LoopEvent, LoopEventType
from chimera.events import Event
from chimera.tui.lane_state import LaneState

__all__ = ["Inbox", "Item", "RaceBegun", "TurnEnded"]

_CHUNKS = (LoopEventType.ASSISTANT_CHUNK, LoopEventType.THINKING_CHUNK)


class TurnEnded(NamedTuple):
    """The lane is at rest again; `failure` says why when it ended without a result."""

    failure: str = ""


class RaceBegun(NamedTuple):
    """Several lanes begin a task, in place of those before. `scores` tells how they stand, the best first."""

    lanes: list[LaneState]
    task: str
    scores: Callable[[], Sequence[Any]]


class Item(NamedTuple):
    """What happened in a lane: an event of its loop, one of its bus, or the end of a turn."""

    lane: str
    what: LoopEvent | Event | TurnEnded | RaceBegun


class Inbox:
    """A queue that any thread may fill. Whoever empties it gets neighbouring chunks of text in one piece."""

    def __init__(self) -> None:
        self._items: deque[Item] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def put(self, lane: str, what: LoopEvent | Event | TurnEnded | RaceBegun) -> None:
        self._items.append(Item(lane, what))

    def take(self, at_most: int) -> list[Item]:
        """Return and forget the oldest items, at most so many of those that were put in."""
        taken: list[Item] = []
        pieces: list[str] = []
        for _ in range(min(at_most, len(self._items))):
            item = self._items.popleft()
            if pieces and _continues(taken[-1], item):
                pieces.append(item.what.data)  # type: ignore[union-attr]
                continue
            _join(taken, pieces)
            pieces = [item.what.data] if _is_chunk(item) else []  # type: ignore[union-attr]
            taken.append(item)
        _join(taken, pieces)
        return taken


def _is_chunk(item: Item) -> bool:
    return isinstance(item.what, LoopEvent) and item.what.type in _CHUNKS


def _continues(item: Item, following: Item) -> bool:
    return (
        item.lane == following.lane
        and isinstance(item.what, LoopEvent)
        and isinstance(following.what, LoopEvent)
        and item.what.type is following.what.type
        and _is_chunk(following)
    )


def _join(taken: list[Item], pieces: list[str]) -> None:
    """Put collected text into the last item that was taken."""
    if len(pieces) > 1:
        last = taken[-1]
        assert isinstance(last.what, LoopEvent)
        taken[-1] = Item(last.lane, LoopEvent(last.what.type, "".join(pieces), last.what.turn))
    pieces.clear()
