"""Telling a new user message from a list that merely looks different."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.plugins.packs._turns import UserTurns
from chimera.types import Message

SYSTEM = Message.system("s")


def work(steps: int, tag: str = "") -> list[Message]:
    return [part for n in range(steps) for part in (Message.assistant(f"a{tag}{n}"), Message.tool(str(n), f"t{n}"))]


def rebuilt(messages: Sequence[Message]) -> list[Message]:
    """Return the same conversation in new objects, as an interceptor that rewrites every message makes it."""
    return [replace(message) for message in messages]


def test_each_user_message_is_new_once() -> None:
    turns, history = UserTurns(), [SYSTEM, Message.user("go on")]
    assert turns.look(list(history)) is True
    for _ in range(3):
        for _ in range(5):
            history += work(1)
            assert turns.look([Message.system("s"), *history[1:]]) is False
        history.append(Message.user("go on"))
        assert turns.look(list(history)) is True
        assert turns.look(list(history)) is False


def test_without_a_user_message_nothing_is_new() -> None:
    turns = UserTurns()
    assert turns.look([]) is False
    assert turns.look([SYSTEM]) is False
    assert turns.look([SYSTEM, *work(2)]) is False
    assert turns.look([SYSTEM, *work(2), Message.user("x")]) is True


def test_a_message_that_steers_a_running_turn_is_new() -> None:
    turns, history = UserTurns(), [SYSTEM, Message.user("a"), *work(10)]
    turns.look(history)
    steering = Message.user("b")
    assert turns.look([*history, steering, *work(1)]) is True
    assert turns.look([*history, steering, *work(1)]) is False


@pytest.mark.parametrize("text", ["summary", "a"])
def test_a_compacted_list_is_not_a_new_message_as_long_as_the_latest_one_is_there(text: str) -> None:
    turns, latest = UserTurns(), Message.user("a")
    tail = work(3)
    turns.look([SYSTEM, Message.user("old"), *work(20), latest, *tail])
    assert turns.look([SYSTEM, Message.user(text), latest, *tail]) is False
    assert turns.look([SYSTEM, Message.user(text), latest, *tail, *work(1)]) is False


def test_a_summary_in_the_place_of_the_latest_message_is_no_news() -> None:
    turns = UserTurns()
    history = [SYSTEM, Message.user("a"), *work(20)]
    turns.look(history)
    shorter = [SYSTEM, Message.user("summary"), *history[-4:]]
    assert turns.look(shorter) is False
    assert turns.look([SYSTEM, *history[-4:]]) is False
    assert turns.look([SYSTEM, Message.user("summary of all of it")]) is True, "nothing is left to tell it by"


@pytest.mark.parametrize("reminder", [[], [Message.user("be brief")]])
def test_a_new_message_that_arrives_with_a_compaction_is_new(reminder: list[Message]) -> None:
    turns = UserTurns()
    history = [SYSTEM, Message.user("a"), *work(20)]
    turns.look([*history, *reminder])
    assert turns.look([SYSTEM, Message.user("summary"), *history[-4:], Message.user("b"), *reminder]) is True


def test_the_same_words_after_a_compaction_are_new() -> None:
    turns = UserTurns()
    history = [SYSTEM, Message.user("go on"), *work(20)]
    turns.look(history)
    assert turns.look([SYSTEM, *history[-4:], Message.user("go on")]) is True


def test_a_conversation_that_starts_over_is_new_even_with_the_same_words() -> None:
    turns = UserTurns()
    turns.look([SYSTEM, Message.user("fix it"), *work(4)])
    assert turns.look([Message.system("s"), Message.user("fix it")]) is True


def test_lists_that_are_rebuilt_for_every_call_are_followed_all_the_same() -> None:
    turns, history = UserTurns(), [SYSTEM, Message.user("a")]
    assert turns.look(rebuilt(history)) is True
    for _ in range(20):
        history += work(1)
        assert turns.look(rebuilt(history)) is False
    history.append(Message.user("a"))
    assert turns.look(rebuilt(history)) is True
    history += work(1)
    assert turns.look(rebuilt(history)) is False
    history.append(Message.user("b"))
    assert turns.look(rebuilt(history)) is True


@pytest.mark.parametrize("same_object", [True, False])
def test_reminders_that_an_interceptor_appends_each_time_are_no_news(same_object: bool) -> None:
    turns, history = UserTurns(), [SYSTEM, Message.user("a")]
    fixed = [Message.user("remember the rules"), Message.user("be brief")]
    assert turns.look([*history, *fixed]) is True
    for _ in range(10):
        history += work(1)
        assert turns.look([*history, *(fixed if same_object else rebuilt(fixed))]) is False
    history.append(Message.user("b"))
    assert turns.look([*history, *(fixed if same_object else rebuilt(fixed))]) is True


class Counting(Sequence[Message]):
    """A list that counts how many of its items are looked at."""

    def __init__(self, messages: list[Message]) -> None:
        self.messages = messages
        self.looked_at = 0

    def __len__(self) -> int:
        return len(self.messages)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        found = self.messages[index]
        self.looked_at += len(found) if isinstance(index, slice) else 1
        return found

    def __iter__(self) -> Iterator[Message]:
        raise AssertionError("nobody walks through the whole list")


def test_a_call_looks_at_a_handful_of_messages_whatever_the_length() -> None:
    turns, history = UserTurns(), [SYSTEM, Message.user("a"), *work(5000)]
    turns.look(history)
    for _ in range(20):
        history += work(1)
        counting = Counting(history)
        assert turns.look(counting) is False
        assert counting.looked_at <= 12


def test_the_same_list_once_more_holds_nothing_new_however_much_the_user_has_said() -> None:
    turns, history = UserTurns(), [SYSTEM, *work(1), *(Message.user(f"and {n}") for n in range(20))]
    assert turns.look(history) is True
    assert turns.look(list(history)) is False
    assert turns.look([*history, Message.user("more")]) is True


def test_a_reminder_that_follows_the_first_answer_too_is_nothing_new() -> None:
    """Another interceptor appends it to every list, also to the very first one."""
    turns, reminder, go = UserTurns(), Message.user("be brief"), Message.user("go")
    assert turns.look([SYSTEM, go, reminder]) is True
    assert turns.look([SYSTEM, go, *work(1), reminder]) is False
    assert turns.look([SYSTEM, go, *work(2), reminder]) is False
    assert turns.look([SYSTEM, go, *work(2), Message.user("go"), reminder]) is True


EVENTS = st.lists(st.sampled_from(["user", "same", "work", "system", "call"]), max_size=30)


@given(EVENTS, st.sampled_from([list, rebuilt]), st.integers(0, 3))
def test_a_growing_conversation_is_told_exactly(events: list[str], view: object, reminders: int) -> None:
    """Only where nothing was answered yet, or a copy shows nothing more, "new" may be said once too often."""
    turns, history, fresh, said = UserTurns(), [SYSTEM], False, 0
    fixed = [Message.user(f"reminder {n}") for n in range(reminders)]
    looked, answered, length = False, False, 0
    for event in events:
        if event in ("user", "same"):
            history.append(Message.user("same" if event == "same" else f"new {len(history)}"))
            fresh, said = True, said + 1
        elif event == "work":
            history += work(1, str(len(history)))
        elif event == "system":
            history[0] = Message.system("s")
        else:
            first = not looked and (said or reminders)
            exact = answered and (view is list or len(history) > length)
            answer = turns.look(view([*history, *fixed]))  # type: ignore[operator]
            assert answer is bool(fresh or first) or (answer and not exact)
            fresh, looked, length = False, True, len(history)
            answered = any(item.role == "tool" for item in history)


def test_what_was_said_before_is_new_after_a_summary_that_reads_like_the_last_one() -> None:
    turns = UserTurns()
    turns.look([SYSTEM, Message.user("summary"), Message.user("a"), Message.user("go on")])
    assert turns.look([SYSTEM, Message.user("summary"), *work(1), Message.user("go on")]) is True


@given(EVENTS, st.data())
def test_no_rewriting_of_the_list_hides_a_new_message(events: list[str], data: st.DataObject) -> None:
    """Whatever is dropped, summarised or copied, the call that first carries a new user message says so."""
    turns, history, fresh, unread = UserTurns(), [SYSTEM], False, SYSTEM
    for event in events:
        if event in ("user", "same"):
            history.append(Message.user("same" if event == "same" else f"new {len(history)}"))
            fresh, unread = True, history[-1]
        elif event == "work" and not fresh:  # an answer comes after a call that carried the message
            history += work(1, str(len(history)))
        elif event == "system":
            keep = data.draw(st.integers(0, len(history) - 1))
            if fresh and unread not in history[len(history) - keep :]:
                continue
            summary = [Message.user("summary")] if data.draw(st.booleans()) else []
            history = [SYSTEM, *summary, *history[len(history) - keep :]]
        elif event == "call":
            said = turns.look(copy.copy(history))
            assert said or not fresh
            fresh = False
