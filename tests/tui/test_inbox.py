from __future__ import annotations

from threading import Thread

from hypothesis import given
from hypothesis import strategies as st

from chimera.core.loop_events import LoopEvent, LoopEventType
from chimera.tui.inbox import Inbox, Item, TurnEnded

CHUNK, THOUGHT = LoopEventType.ASSISTANT_CHUNK, LoopEventType.THINKING_CHUNK


def chunk(text: str, kind: LoopEventType = CHUNK) -> LoopEvent:
    return LoopEvent(kind, text, 1)


def test_neighbouring_chunks_become_one() -> None:
    inbox = Inbox()
    for text in ("a", "b", "c"):
        inbox.put("one", chunk(text))
    inbox.put("one", chunk("d", THOUGHT))
    inbox.put("two", chunk("e"))
    inbox.put("two", chunk("f"))
    inbox.put("two", TurnEnded())
    assert len(inbox) == 7
    assert inbox.take(100) == [
        Item("one", chunk("abc")),
        Item("one", chunk("d", THOUGHT)),
        Item("two", chunk("ef")),
        Item("two", TurnEnded()),
    ]
    assert inbox.take(100) == []


def test_no_more_is_taken_than_is_wanted() -> None:
    inbox = Inbox()
    for number in range(10):
        inbox.put("one", chunk(str(number)))
    assert inbox.take(4) == [Item("one", chunk("0123"))]
    assert len(inbox) == 6


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([CHUNK, THOUGHT]), st.text(max_size=3))), st.data())
def test_text_and_order_survive_however_it_is_taken(
    given_items: list[tuple[str, LoopEventType, str]], data: st.DataObject
) -> None:
    inbox = Inbox()
    for lane, kind, text in given_items:
        inbox.put(lane, chunk(text, kind))
    taken: list[Item] = []
    while len(inbox):
        taken += inbox.take(data.draw(st.integers(1, 4)))

    def letters(items: list[tuple[str, LoopEventType, str]]) -> list[tuple[str, LoopEventType, str]]:
        return [(lane, kind, letter) for lane, kind, text in items for letter in text]

    events = [(item.lane, item.what.type, item.what.data) for item in taken if isinstance(item.what, LoopEvent)]
    assert letters(events) == letters(given_items)


def test_many_threads_may_put() -> None:
    inbox = Inbox()

    def fill() -> None:
        for _ in range(500):
            inbox.put("x", TurnEnded())

    threads = [Thread(target=fill) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(inbox.take(10_000)) == 2_000
