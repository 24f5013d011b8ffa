"""Conversations for tests: random ones, and what a provider would say about them."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from chimera.types import Message, ToolCall

__all__ = ["CONVERSATIONS", "exchange", "latest_user", "problems"]


def exchange(number: int, calls: int = 1, size: int = 40) -> list[Message]:
    """Return a message with calls and the results that answer them."""
    made = [ToolCall(f"call-{number}-{index}", "search", {"pattern": "x" * size}) for index in range(calls)]
    return [Message.assistant("", made), *(Message.tool(call.id, "r" * size) for call in made)]


@st.composite
def _conversations(draw: st.DrawFn) -> list[Message]:
    messages = [Message.system("rules")] if draw(st.booleans()) else []
    for number in range(draw(st.integers(0, 12))):
        kind, size = draw(st.sampled_from("uuacccs")), draw(st.integers(0, 400))
        if kind == "u":
            messages.append(Message.user(f"u{number}" + "x" * size))
        elif kind == "a":
            messages.append(Message.assistant(f"a{number}" + "x" * size))
        elif kind == "s":
            messages.append(Message.system(f"s{number}" + "x" * size))
        else:
            turn = exchange(number, draw(st.integers(1, 3)), size)
            if draw(st.booleans()):  # somebody spoke while the tools were running
                turn.insert(draw(st.integers(1, len(turn))), Message.user(f"steer {number}"))
            messages += turn
    return messages


CONVERSATIONS = _conversations()


def latest_user(messages: Sequence[Message]) -> Message | None:
    """Return the last thing that the user said."""
    return next((message for message in reversed(messages) if message.role == "user"), None)


def problems(messages: Sequence[Message]) -> list[str]:
    """Say what a provider would refuse: results without calls before them, and calls without results after them."""
    found, called, answered = [], set(), set()
    for message in messages:
        called |= {call.id for call in message.tool_calls}
        if message.role == "tool":
            answered.add(message.call_id)
            if message.call_id not in called:
                found.append(f"{message.call_id} answers nothing")
    return found + [f"{name} has no answer" for name in sorted(called - answered)]
