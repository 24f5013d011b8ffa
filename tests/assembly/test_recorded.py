"""RecordedContext: whoever is told of its changes can rebuild it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.assembly.recorded import RecordedContext
from chimera.core.context import Context
from chimera.types import Message


class Copyist:
    """Keeps its own list by what it is told, and counts how it was told."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.added_times = self.replaced_times = 0

    def added(self, context: RecordedContext, messages: list[Message]) -> None:
        self.messages.extend(messages)
        self.added_times += 1

    def replaced(self, context: RecordedContext) -> None:
        self.messages = list(context.messages)
        self.replaced_times += 1


def say(text: str) -> Message:
    return Message.user(text)


Change = Callable[[Context, int], Any]
CHANGES: list[Change] = [
    lambda context, n: context.add(say(f"add {n}")),
    lambda context, n: context.messages.append(say(f"append {n}")),
    lambda context, n: context.messages.extend([say(f"extend {n}"), say("more")]),
    lambda context, n: context.messages.extend([]),
    lambda context, n: context.messages.insert(n, say(f"insert {n}")),
    lambda context, n: context.messages.__setitem__(slice(None, n), [say(f"cut {n}")]),
    lambda context, n: context.messages.__setitem__(n, say(f"set {n}")),
    lambda context, n: context.messages.__delitem__(n),
    lambda context, n: context.messages.pop(n),
    lambda context, n: context.messages.remove(say(f"add {n}")),
    lambda context, n: context.messages.clear(),
    lambda context, n: context.messages.reverse(),
    lambda context, n: context.messages.sort(key=lambda message: message.content),
    lambda context, n: context.messages.__imul__(n % 3),
    lambda context, n: setattr(context, "messages", [say(f"new {n}")]),
]


def plus_assigned(context: Context, n: int) -> None:
    context.messages += [say(f"plus {n}")]


@given(st.lists(st.tuples(st.sampled_from([*CHANGES, plus_assigned]), st.integers(0, 4)), max_size=30))
def test_every_change_is_told(changes: list[tuple[Change, int]]) -> None:
    copyist = Copyist()
    context, plain = RecordedContext(copyist), Context()
    for change, number in changes:
        for target in (context, plain):
            try:
                change(target, number)
            except (IndexError, ValueError):
                continue
        assert context.messages == plain.messages == copyist.messages


def test_growth_is_told_as_growth() -> None:
    copyist = Copyist()
    context = RecordedContext(copyist, [say("before")])
    context.add(say("a"))
    context.messages.append(say("b"))
    context.messages += [say("c")]
    assert (copyist.added_times, copyist.replaced_times) == (3, 0)
    assert [message.content for message in copyist.messages] == ["a", "b", "c"]


def test_a_change_that_fails_half_way_is_told_too() -> None:
    copyist = Copyist()
    context = RecordedContext(copyist, [say("b"), say("a")])

    def fail(message: Message) -> str:
        raise RuntimeError(message.content)

    with pytest.raises(RuntimeError):
        context.messages.sort(key=fail)
    assert copyist.messages == context.messages


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, list, lambda m: m[:]])
def test_a_copy_of_the_list_tells_nothing(copied: Callable[[list[Message]], list[Message]]) -> None:
    copyist = Copyist()
    context = RecordedContext(copyist, [say("a")])
    other = copied(context.messages)
    other.append(say("elsewhere"))
    assert copyist.added_times == copyist.replaced_times == 0
    assert context.messages == [say("a")]


def test_a_list_that_the_conversation_has_no_more_tells_nothing() -> None:
    copyist = Copyist()
    context = RecordedContext(copyist, [say("a")])
    old = context.messages
    context.messages = [say("b")]
    old.append(say("late"))
    assert copyist.messages == context.messages == [say("b")]
