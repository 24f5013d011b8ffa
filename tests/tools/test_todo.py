"""todo keeps one list for each conversation."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest

from chimera.tools import TodoTool
from tests.tools.support import Env

TODOS = [
    {"content": "read", "status": "completed"},
    {"content": "write", "status": "in_progress"},
    {"content": "test"},
]


async def test_the_list_is_replaced_and_returned() -> None:
    tool = TodoTool()
    assert tool.execute({}).output == "[the list is empty]"
    result = await tool.async_execute({"todos": TODOS})
    assert result.output == "[x] read\n[>] write\n[ ] test\n1 of 3 done"
    assert result.metadata == {"total": 3, "completed": 1}
    assert tool.execute({}).output == result.output
    assert tool.execute({"todos": [{"content": "new"}]}).output == "[ ] new\n0 of 1 done"
    assert tool.execute({"todos": []}).output == "[the list is empty]"


class Bare:
    """An environment that knows of no conversation."""


ENVIRONMENTS: list[tuple[Any, Any, Any]] = [
    (Env(conversation="a"), Env(conversation="a"), Env(conversation="b")),
    (bare := Bare(), bare, Bare()),
    (None, None, Env()),
    (Path("/x"), "/x", Bare()),
]


@pytest.mark.parametrize(("one", "same", "other"), ENVIRONMENTS)
def test_lists_do_not_mix(one: Any, same: Any, other: Any) -> None:
    tool = TodoTool()
    tool.execute({"todos": TODOS}, one)
    assert [item["content"] for item in tool.items(same)] == ["read", "write", "test"]
    assert tool.items(other) == []
    assert TodoTool().items(one) == []


def test_what_is_handed_in_or_out_is_not_the_list_itself() -> None:
    tool, todos = TodoTool(), [{"content": "a"}]
    tool.execute({"todos": todos})
    todos[0]["content"] = "changed"
    tool.items()[0]["content"] = "changed"
    assert tool.items() == [{"content": "a", "status": "pending"}]


def test_old_conversations_are_forgotten() -> None:
    tool = TodoTool()
    for number in range(300):
        tool.execute({"todos": TODOS}, Env(conversation=str(number)))
        tool.execute({"todos": TODOS}, Env(conversation="kept"))
    assert tool.items(Env(conversation="0")) == []
    assert len(tool.items(Env(conversation="299"))) == 3
    assert len(tool.items(Env(conversation="kept"))) == 3


def test_lists_end_with_their_environment() -> None:
    tool = TodoTool()
    bare: Any = Bare()
    tool.execute({"todos": TODOS}, bare)
    del bare
    gc.collect()
    assert len(tool._lists._of_environments) == 0
