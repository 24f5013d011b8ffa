"""The memo: the same answers as without it, each message looked at once, and no more remembered than allowed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.plugins.packs import _memo
from chimera.plugins.packs._memo import ConversationMemo, Memos
from chimera.types import Message, ToolCall


class Scrubber:
    """Replaces X, and counts the messages it looks at."""

    def __init__(self) -> None:
        self.looked_at = 0

    def __call__(self, message: Message) -> Message:
        self.looked_at += 1
        return replace(message, content=message.content.replace("X", "-")) if "X" in message.content else message


def texts(messages: list[Message]) -> list[str]:
    return [message.content for message in messages]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from(["a", "X", "bX", "c"])),
        st.tuples(st.just("cut"), st.integers(0, 8)),
        st.tuples(st.just("copy"), st.integers(0, 8)),
        st.tuples(st.just("swap"), st.integers(0, 8)),
        st.just(("call", 0)),
    ),
    max_size=40,
)


@given(STEPS)
def test_whatever_happens_to_the_list_the_answer_is_the_same_as_without_memory(steps: list[tuple[str, Any]]) -> None:
    scrub, memo, history = Scrubber(), ConversationMemo(Scrubber()), [Message.system("sX")]
    for kind, value in steps:
        if kind == "add":
            history.append(Message.user(value))
        elif kind == "cut":
            history = history[:1] + history[1 + value :]
        elif kind == "copy" and value < len(history):
            history[value] = replace(history[value])
        elif kind == "swap" and value < len(history):
            history[value] = Message.user("X?" if value % 2 else "y")
        else:
            given_list = list(history)
            result = memo.messages(given_list)
            assert texts(result) == texts([scrub(message) for message in history])
            changed = any("X" in message.content for message in history)
            assert (result is given_list) is not changed
            assert all(new is old for new, old in zip(result, history, strict=True) if "X" not in old.content)


def test_each_message_is_looked_at_once_however_long_the_conversation_gets() -> None:
    scrub = Scrubber()
    memo, history = ConversationMemo(scrub), []
    for number in range(500):
        history.append(Message.user(f"{number} X"))
        memo.messages([Message.system("the same prompt, a new object each time"), *history])
    assert scrub.looked_at == 501


def test_messages_that_move_are_known_again() -> None:
    scrub = Scrubber()
    memo = ConversationMemo(scrub)
    history = [Message.user(f"{number} X") for number in range(100)]
    memo.messages(history)
    for cut in range(1, 90):
        memo.messages([Message.system("s"), *history[cut:]])
    assert scrub.looked_at <= 100 + 90


@pytest.mark.parametrize(
    "other",
    [
        Message("user", "X", (ToolCall("1", "t"),)),
        Message("user", "X", content_blocks=({"a": 1},)),
        Message("assistant", "X"),
        Message("user", "X", call_id="1"),
    ],
)
def test_the_same_text_in_another_message_is_another_message(other: Message) -> None:
    memo = ConversationMemo(Scrubber())
    for message in (Message.user("X"), other, Message.user("X")):
        (clean,) = memo.messages([message])
        assert clean == replace(message, content="-")


def test_the_callers_list_and_the_remembered_one_are_apart() -> None:
    memo = ConversationMemo(Scrubber())
    history = [Message.user("X"), Message.user("b")]
    first = memo.messages(history)
    first.clear()
    history.append(Message.user("X2"))
    assert texts(memo.messages(history)) == ["-", "b", "-2"]


def test_what_is_remembered_does_not_grow_beyond_the_conversation() -> None:
    memo = ConversationMemo(Scrubber())
    for number in range(3000):
        memo.messages([Message.system(f"{number}"), Message.user(f"X{number}")])
    assert len(memo) <= 2 * 2 + _memo._SLACK + 2


def test_a_scrubber_that_fails_leaves_the_memo_usable() -> None:
    class Failing(Scrubber):
        def __call__(self, message: Message) -> Message:
            if message.content == "bad" and self.looked_at < 5:
                self.looked_at += 1
                raise RuntimeError
            return super().__call__(message)

    memo = ConversationMemo(Failing())
    history = [Message.user("X"), Message.user("bad"), Message.user("X2")]
    for _ in range(4):
        with pytest.raises(RuntimeError):
            memo.messages(list(history))
    assert texts(memo.messages(list(history))) == ["-", "bad", "-2"]


def test_tools_are_scrubbed_once_for_the_same_object() -> None:
    memo, tools, calls = ConversationMemo(Scrubber()), [{"a": 1}], []

    def scrub(value: Any) -> Any:
        calls.append(value)
        return "clean"

    assert [memo.tools(tools, scrub) for _ in range(3)] == ["clean"] * 3
    assert len(calls) == 1
    memo.tools([{"a": 1}], scrub)
    assert len(calls) == 2


def test_silent_conversations_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_memo, "_CONVERSATIONS", 3)
    memos = Memos(Scrubber())
    kept = memos.of("a")
    for name in ("b", "c", "a", "d"):
        assert texts(memos.messages(name, [Message.user("X")])) == ["-"]
    assert memos.of("a") is kept
    assert list(memos._memos) == ["c", "d", "a"]
    assert memos._total == 3
    memos.clear()
    assert memos.of("a") is not kept


def test_very_many_messages_are_forgotten_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_memo, "_MESSAGES", 100)
    memos = Memos(Scrubber())
    for name in "abcdef":
        memos.messages(name, [Message.user(str(number)) for number in range(40)])
    assert list(memos._memos) == ["e", "f"]
    assert memos._total == 80
    memos.messages("g", [Message.user(str(number)) for number in range(500)])
    assert list(memos._memos) == ["g"]


def test_many_threads_in_one_conversation() -> None:
    memo = ConversationMemo(Scrubber())
    history = [Message.user(f"{number} X") for number in range(200)]

    def work(number: int) -> bool:
        mine = history[: 1 + number % 200]
        return texts(memo.messages(mine)) == [text.replace("X", "-") for text in texts(mine)]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(800)))
