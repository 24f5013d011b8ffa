from __future__ import annotations

import pytest

from chimera.cli.demo.script import HELPER_TASK, SPAWN, TASKS, answer
from chimera.providers.faux import FauxRequest
from chimera.types import Message, ToolCall


def tools_after(task: str, *results: str) -> list[str]:
    """Return the tools that the model asks for once its calls so far were answered with `results`."""
    messages = [Message.system("be good"), Message.user(task)]
    for index, result in enumerate(results):
        messages += [Message.assistant("", [ToolCall(str(index), "x")]), Message.tool(str(index), result)]
    return [str(call["name"]) for call in answer(FauxRequest(tuple(messages))).get("tool_calls", ())]


REFUSED = "Blocked by interceptor: plan-gate: no plan"


def test_it_answers_to_what_happened_to_its_call() -> None:
    assert tools_after(TASKS[0]) == ["edit_file"]
    assert tools_after(TASKS[0], REFUSED) == ["todo"]
    assert tools_after(TASKS[0], REFUSED, "ok") == ["edit_file"]
    assert tools_after(TASKS[0], REFUSED, "ok", "ok") == ["bash"]
    assert tools_after(TASKS[0], REFUSED, "ok", "ok", "OK") == []
    assert tools_after(TASKS[0], "Edited") == ["bash"]
    assert tools_after(TASKS[0], "Edited", "OK") == []


def test_the_other_tasks() -> None:
    assert tools_after(TASKS[1]) == ["think", "bash"]
    assert tools_after(TASKS[2].format(credential="[redacted]")) == [SPAWN]
    assert tools_after(HELPER_TASK) == ["write_file"]
    assert tools_after(HELPER_TASK, REFUSED) == ["think", "write_file"]


def test_it_says_what_it_was_told() -> None:
    messages = [Message.user(TASKS[2]), Message.assistant("", [ToolCall("1", SPAWN)])]
    lost = FauxRequest((*messages, Message.tool("1", f"Unknown tool: {SPAWN}")))
    assert f"Unknown tool: {SPAWN}" in answer(lost)["text"]
    helped = FauxRequest((*messages, Message.tool("1", "NOTES.md is written.")))
    assert "NOTES.md" in answer(helped)["text"]


def test_a_conversation_that_goes_on_past_the_script_is_an_error() -> None:
    with pytest.raises(IndexError):
        tools_after(TASKS[1], "a", "b", "c")
