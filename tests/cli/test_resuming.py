from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from chimera.cli.resuming import how_to_resume, where_it_stood
from chimera.types import Message, ToolCall


def test_the_last_exchange_is_told_in_short() -> None:
    messages = [
        Message.user("first\nthing " + "x" * 100),
        Message.assistant("An answer."),
        Message.user("second thing"),
        Message.assistant("Looking.\x1b[2J " + "y" * 300),
        Message.assistant("", [ToolCall("1", "bash", {"command": "ls"})]),
        Message.tool("1", "listed"),
    ]
    session, you, agent = where_it_stood("abc", messages)
    assert session.startswith("session abc goes on: first thing xxx")
    assert session.endswith("... (6 messages)")
    assert you == "you: second thing"
    assert agent.startswith("agent: Looking.\u241b[2J yyy")
    assert len(agent) < 220


def test_of_nothing_nothing_is_told() -> None:
    assert list(where_it_stood("abc", [])) == []
    assert list(where_it_stood("abc", [Message.user("hi")])) == ["session abc goes on: hi (1 message)", "you: hi"]


def test_the_command_names_a_project_that_is_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "my project"
    project.mkdir()
    words = shlex.split(how_to_resume("abc", project))
    assert words == ["chimera", "code", "--resume", "abc", "-C", str(project)]
    monkeypatch.chdir(project)
    assert how_to_resume("abc", project) == "chimera code --resume abc"
