"""The values that travel through every part of the system."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from chimera.errors import MisuseError
from chimera.frozen import FrozenDict
from chimera.types import AgentResult, Message, PendingApproval, StepResult, ToolCall, ToolResult

CALL = ToolCall("c1", "note", {"n": [1]})


def test_messages_by_role() -> None:
    assert Message.system("s") == Message("system", "s")
    assert Message.user("u") == Message("user", "u")
    assert Message.assistant("a") == Message.assistant("a", []) == Message("assistant", "a")
    assert Message.assistant("a", iter([CALL])) == Message("assistant", "a", (CALL,))
    assert Message.tool("c1", "t") == Message("tool", "t", (), "c1")


def test_a_message_takes_nothing_for_no_text_and_no_calls() -> None:
    built = Message("assistant", None, None, None, None)  # type: ignore[arg-type]
    assert (built.content, built.tool_calls, built.content_blocks) == ("", (), ())


@pytest.mark.parametrize("content", [b"bytes", 3, ["text"], {"text": "x"}])
def test_a_message_has_text(content: Any) -> None:
    with pytest.raises(TypeError, match="the content of a message is text, not"):
        Message.user(content)


def test_what_a_message_was_built_from_may_change_and_the_message_does_not() -> None:
    arguments, block, calls = {"n": [1]}, {"image": {"data": [1]}}, [CALL]
    message = Message("assistant", "a", [*calls, ToolCall("c2", "note", arguments)], None, [block])  # type: ignore[arg-type]
    arguments["n"].append(2)
    block["image"]["data"].append(2)
    calls.clear()
    assert message.tool_calls[1].arguments == {"n": [1]}
    assert message.content_blocks == ({"image": {"data": [1]}},)


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, dataclasses.replace])
def test_a_copied_message_is_as_read_only_as_the_first(clone: Any) -> None:
    message = Message("assistant", "a", (CALL,), None, ({"k": [1]},))
    copied = clone(message)
    assert copied == message
    edits: list[Callable[[], Any]] = [
        lambda: copied.tool_calls[0].arguments.clear(),
        lambda: copied.tool_calls[0].arguments["n"].append(2),
        lambda: copied.content_blocks[0].update(k=2),
    ]
    for edit in edits:
        with pytest.raises(TypeError, match="read-only"):
            edit()
    make, arguments = message.__reduce__()
    assert make(*arguments) == message


def test_a_copied_conversation_is_read_only_too() -> None:
    conversation = copy.deepcopy([Message.assistant("a", [CALL])])
    with pytest.raises(TypeError, match="read-only"):
        conversation[0].tool_calls[0].arguments["n"] = 2


@pytest.mark.parametrize(
    "value", [CALL, Message.user("x"), ToolResult("x"), StepResult(), AgentResult("", 0, 0, 0, True)]
)
def test_values_have_no_attributes_to_set(value: Any) -> None:
    for field in dataclasses.fields(value):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, field.name, None)


def test_sealing_a_call() -> None:
    sealed = CALL.sealed()
    assert sealed == CALL
    assert type(sealed.arguments) is FrozenDict
    assert sealed.sealed() is sealed

    class Special(ToolCall):
        pass

    assert type(Special("c1", "note", sealed.arguments).sealed()) is ToolCall


def test_sealing_a_result() -> None:
    metadata: dict[str, Any] = {"k": [1]}
    sealed = ToolResult("out", "err", metadata).sealed()
    metadata["k"].append(2)
    assert sealed == ToolResult("out", "err", {"k": [1]})
    assert sealed.sealed() is sealed
    with pytest.raises(TypeError, match="read-only"):
        sealed.metadata.clear()
    with pytest.raises(TypeError, match="read-only"):
        ToolResult("x").sealed().metadata["a"] = 1
    metadata["k"] = metadata
    assert list(ToolResult("out", None, metadata).sealed().metadata) == ["left_out"]

    class Unreadable(dict[str, Any]):
        def items(self) -> Any:
            raise RuntimeError("not for you")

    assert ToolResult("out", None, Unreadable()).sealed().metadata == {"left_out": "RuntimeError: not for you"}


def test_success_is_the_absence_of_an_error() -> None:
    assert ToolResult("out").success
    assert not ToolResult("out", "").success


class TestPendingApproval:
    def approval(self) -> PendingApproval:
        return PendingApproval(CALL, CALL.name, CALL.arguments, "why")

    def test_it_starts_undecided(self) -> None:
        fresh = self.approval()
        assert (fresh.decided, fresh.approved, fresh.message) == (False, False, "")

    def test_approving(self) -> None:
        approval = self.approval()
        approval.approve()
        approval.approve()
        assert (approval.decided, approval.approved) == (True, True)

    def test_denying_with_a_message(self) -> None:
        approval = self.approval()
        approval.deny("not now")
        assert (approval.decided, approval.approved, approval.message) == (True, False, "not now")
        approval.deny("really")
        assert approval.message == "really"

    def test_nobody_can_have_it_both_ways(self) -> None:
        first, second = self.approval(), self.approval()
        first.approve()
        with pytest.raises(MisuseError, match="'note' was already approved"):
            first.deny()
        second.deny()
        with pytest.raises(MisuseError, match="'note' was already denied"):
            second.approve()
        assert (first.approved, second.approved) == (True, False)
