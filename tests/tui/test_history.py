from __future__ import annotations

from chimera.tui.history import History


def test_back_and_forth_with_the_draft_at_the_end() -> None:
    history = History()
    for text in ("one", "two", "two", " "):
        history.add(text)
    assert [history.older("draft"), history.older("two"), history.older("one")] == ["two", "one", None]
    assert [history.newer(), history.newer(), history.newer()] == ["two", "draft", None]


def test_an_empty_history_has_nothing() -> None:
    history = History()
    assert history.older("x") is None
    assert history.newer() is None


def test_it_does_not_grow_for_ever() -> None:
    history = History()
    for number in range(3_000):
        history.add(str(number))
    seen = []
    while (text := history.older("")) is not None:
        seen.append(text)
    assert len(seen) == 1_000
    assert (seen[0], seen[-1]) == ("2999", "2000")
