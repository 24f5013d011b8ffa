"""The model sums up the older part; where it cannot, the oldest part goes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.compaction import SUMMARY_HEADING, DropOldest, SummaryCompaction, SummaryRequest, estimate_tokens
from chimera.errors import ContextOverflowError, ProviderCallBlocked, ProviderError
from chimera.providers.base import Response
from chimera.types import Message, ToolCall
from tests.compaction.conversations import CONVERSATIONS, exchange, latest_user, problems

RULES, REQUEST = Message.system("rules"), Message.user("please mend the build")
TURNS = [message for number in range(20) for message in exchange(number)]
LONG = [RULES, Message.user("first of all"), *TURNS[:20], REQUEST, *TURNS[20:]]


def drive(
    strategy: SummaryCompaction, messages: Sequence[Message], answer: Response | BaseException
) -> tuple[list[SummaryRequest], list[Message]]:
    """Step through a compaction; return what it asked for and what it made."""
    work, asked = strategy.compact(messages), []
    try:
        asked.append(next(work))
        if isinstance(answer, BaseException):
            asked.append(work.throw(answer))
        else:
            asked.append(work.send(answer))
    except StopIteration as stop:
        return asked, stop.value
    raise AssertionError("it asked twice")


def test_the_older_part_becomes_one_message_that_says_what_it_is() -> None:
    asked, shorter = drive(SummaryCompaction(keep_recent=0.3), LONG, Response(" all is well \n"))
    assert len(asked) == 1
    assert shorter[:3] == [RULES, Message.user(f"{SUMMARY_HEADING}\nall is well"), REQUEST]
    assert shorter[3:] == LONG[-(len(shorter) - 3) :]
    assert problems(shorter) == []


def test_the_request_holds_the_older_part_as_data() -> None:
    strategy = SummaryCompaction(kwargs={"max_tokens": 500}, instructions="Sum up.")
    (request,), shorter = drive(strategy, LONG, Response("short"))
    system, record = request.messages
    assert system == Message.system("Sum up.")
    assert record.content.startswith("<record>\nUSER:\nfirst of all\n\nASSISTANT:\nCALLS search")
    assert record.content.endswith("</record>")
    assert REQUEST.content not in record.content
    assert request.kwargs == {"max_tokens": 500}
    assert shorter[-1] == LONG[-1]


def test_the_request_is_shorter_than_the_conversation() -> None:
    messages = [*(Message.user("x" * 30_000) for _ in range(10)), Message.user("now")]
    (request,), _ = drive(SummaryCompaction(), messages, Response("short"))
    assert estimate_tokens(request.messages) < 0.7 * estimate_tokens(messages)


@pytest.mark.parametrize(
    "answer",
    [
        Response(""),
        Response(" \n"),
        Response("", [ToolCall("1", "bash", {"command": "ls"})]),
        Response("x" * 100_000),
        ProviderError("down"),
        ContextOverflowError("too long"),
    ],
)
def test_without_a_summary_the_oldest_part_goes(answer: Response | BaseException) -> None:
    fallback = DropOldest(keep=0.25)
    _, shorter = drive(SummaryCompaction(fallback=fallback), LONG, answer)
    assert shorter == fallback.shorten(LONG)
    assert len(shorter) < len(LONG)


@pytest.mark.parametrize("stop", [ProviderCallBlocked("no", "context"), KeyboardInterrupt(), RuntimeError("bug")])
def test_a_block_an_interrupt_and_a_bug_come_out(stop: BaseException) -> None:
    work = SummaryCompaction().compact(LONG)
    next(work)
    with pytest.raises(type(stop)):
        work.throw(stop)


@pytest.mark.parametrize(
    "messages", [[], [REQUEST], [RULES, REQUEST, *exchange(1)], [Message.user("a" * 999), REQUEST]]
)
def test_nothing_is_asked_when_there_is_nothing_to_sum_up(messages: list[Message]) -> None:
    asked, shorter = drive(SummaryCompaction(), messages, Response("never"))
    assert asked == []
    assert shorter == DropOldest().shorten(messages)


def test_a_summary_can_be_summed_up_again() -> None:
    _, once = drive(SummaryCompaction(), LONG, Response("first summary"))
    (request,), twice = drive(SummaryCompaction(), [*once, *TURNS], Response("second summary"))
    assert "first summary" in request.messages[1].content
    headings = [message for message in twice if message.content.startswith(SUMMARY_HEADING)]
    assert [message.content.split("\n")[1] for message in headings] == ["second summary"]


@given(CONVERSATIONS, st.floats(0.05, 0.95), st.text("ab ", max_size=80))
def test_any_conversation_becomes_a_shorter_valid_one(messages: list[Message], keep: float, summary: str) -> None:
    asked, shorter = drive(SummaryCompaction(keep_recent=keep), messages, Response(summary))
    assert problems(shorter) == []
    assert latest_user([m for m in shorter if not m.content.startswith(SUMMARY_HEADING)]) == latest_user(messages)
    assert len(shorter) < len(messages) or shorter == messages
    assert len(asked) <= 1
