"""Session files: finding them, and what is said of those that cannot be read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from chimera.assembly.journal import (
    Journal,
    find_session,
    latest_session,
    list_sessions,
    read_session,
    sessions_folder,
)
from chimera.assembly.session_files import whole
from chimera.errors import ConfigError, OutsideError
from chimera.types import Message, ToolCall

HEADER: dict[str, Any] = {
    "type": "session",
    "version": 1,
    "id": "x",
    "project": "/p",
    "model": "m",
    "created": "2026-01-02T03:04:05.678Z",
}
SAID = {"type": "message", "role": "user", "content": "hello"}


def write(path: Path, *records: Any) -> Path:
    path.write_text("".join((item if isinstance(item, str) else json.dumps(item)) + "\n" for item in records))
    return path


def record(folder: Path, name: str, project: Path, *texts: str, lane: str = "", when: int = 0) -> Path:
    journal = Journal.create(folder, project=project, model="m", session_id=name, lane=lane)
    context = journal.context()
    for text in texts:
        context.add(Message.user(text))
    journal.close()
    if journal.path.exists():
        os.utime(journal.path, (when, when))
    return journal.path


def test_what_a_file_tells(tmp_path: Path) -> None:
    decision = {"type": "decision", "seam": "tool_call", "decision": "blocked"}
    turn = {"type": "turn", "reason": "completed", "cost_usd": 0.25}
    path = write(tmp_path / "x.jsonl", HEADER, SAID, decision, turn, turn, {"type": "model", "model": "n"})
    session = read_session(path)
    assert (session.id, session.project, session.model, session.lane) == ("x", Path("/p"), "n", "")
    assert session.created.isoformat() == "2026-01-02T03:04:05.678000+00:00"
    assert session.messages == (Message.user("hello"),)
    assert session.decisions == (decision,)
    assert session.turns == (turn, turn)
    assert session.cost_usd == 0.5


def test_records_of_a_kind_that_is_not_known_are_skipped(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.jsonl", HEADER, SAID, {"type": "mood", "good": True}, {**SAID, "content": "bye", "new": 1}
    )
    assert [message.content for message in read_session(path).messages] == ["hello", "bye"]


@pytest.mark.parametrize(
    "line",
    [
        "no json",
        "[]",
        "null",
        "{}",
        '{"type": "message"}',
        '{"type": "message", "role": 1, "content": "x"}',
        '{"type": "message", "role": "user", "content": "x", "tool_calls": [{"id": "1"}]}',
        '{"type": "message", "role": "user", "content": "x", "tool_calls": [1]}',
        '{"type": "message", "role": "user", "content": "x", "tool_calls": 1}',
        '{"type": "message", "role": "user", "content": "x", "content_blocks": [1]}',
        '{"type": "message", "role": "tool", "content": "x", "call_id": 1}',
        '{"type": "conversation"}',
        '{"type": "conversation", "messages": [null]}',
        '{"type": "model"}',
        "[" * 100_000,
    ],
)
def test_damage_in_the_middle_is_told_with_its_line(tmp_path: Path, line: str) -> None:
    path = write(tmp_path / "x.jsonl", HEADER, SAID, line, SAID)
    with pytest.raises(OutsideError, match=r"x\.jsonl is damaged in line 3"):
        read_session(path)
    with pytest.raises(OutsideError, match="is damaged in line 3"):
        Journal.resume(path)


@pytest.mark.parametrize("header", ["{}", "[]", "text", json.dumps({**HEADER, "created": 1}), json.dumps(SAID)])
def test_a_file_without_a_header_is_none(tmp_path: Path, header: str) -> None:
    path = write(tmp_path / "x.jsonl", header, SAID)
    with pytest.raises(OutsideError, match="line 1"):
        read_session(path)
    assert list_sessions(tmp_path) == []


@pytest.mark.parametrize("version", [2, "1", None, True])
def test_a_later_version_is_refused(tmp_path: Path, version: Any) -> None:
    path = write(tmp_path / "x.jsonl", {**HEADER, "version": version}, SAID)
    with pytest.raises(OutsideError, match="reads up to 1"):
        read_session(path)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(OutsideError, match="cannot be read: No such file"):
        read_session(tmp_path / "x.jsonl")
    with pytest.raises(OutsideError, match="cannot be read"):
        Journal.resume(tmp_path / "x.jsonl")
    assert list_sessions(tmp_path / "nowhere") == []


def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", HEADER, SAID)
    (tmp_path / "link.jsonl").symlink_to(path)
    with pytest.raises(OutsideError, match="cannot be gone on with"):
        Journal.resume(tmp_path / "link.jsonl")


def test_the_list_is_by_last_use_and_by_project(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    for number, (name, project) in enumerate([("c", mine), ("a", other), ("b", mine)]):
        record(tmp_path, name, project, f"first of {name}", "second", when=100 + number)
    record(tmp_path, "empty", mine)
    record(tmp_path, "lane", mine, "race", lane="a:tot", when=500)
    (tmp_path / "notes.jsonl").write_text("none\n")
    assert [info.id for info in list_sessions(tmp_path)] == ["lane", "b", "a", "c"]
    found = list_sessions(tmp_path, project=mine)
    assert [(info.id, info.title, info.lane) for info in found] == [
        ("lane", "race", "a:tot"),
        ("b", "first of b", ""),
        ("c", "first of c", ""),
    ]
    latest = latest_session(mine, tmp_path)
    assert latest is not None
    assert latest.id == "b"
    assert latest.updated.timestamp() == 102
    assert latest_session(tmp_path / "third", tmp_path) is None


def test_of_two_that_were_used_at_once_the_newer_one_is_the_latest(tmp_path: Path) -> None:
    for name, second in (("b", 1), ("a", 2)):
        header = {**HEADER, "id": name, "created": f"2026-01-02T03:04:0{second}Z"}
        os.utime(write(tmp_path / f"{name}.jsonl", header, SAID), (100, 100))
    assert [info.id for info in list_sessions(tmp_path)] == ["a", "b"]


def test_the_title_of_a_loaded_conversation_is_in_it(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, project=tmp_path, model="m")
    journal.context([Message.system("be good"), Message.user("from before")])
    journal.close()
    (info,) = list_sessions(tmp_path)
    assert info.title == "from before"


def test_a_session_whose_first_line_is_endless_has_no_title(tmp_path: Path) -> None:
    write(tmp_path / "x.jsonl", HEADER, {"type": "mood"}, {**SAID, "content": "x" * (2 << 20)})
    assert [info.title for info in list_sessions(tmp_path)] == [""]


def test_finding_by_id_and_by_its_beginning(tmp_path: Path) -> None:
    for name in ("20260101-a", "20260101-ab", "20260102-c"):
        record(tmp_path, name, tmp_path, "x")
    assert find_session("20260101-a", tmp_path).name == "20260101-a.jsonl"
    assert find_session("20260102", tmp_path).name == "20260102-c.jsonl"
    with pytest.raises(ConfigError, match="2 sessions begin with '20260101': 20260101-a, 20260101-ab"):
        find_session("20260101", tmp_path)
    for name in ("", "x", "../x", "20260102-c.jsonl"):
        with pytest.raises(ConfigError, match="there is no session"):
            find_session(name, tmp_path)


def test_where_sessions_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sessions_folder() == Path(os.environ["XDG_DATA_HOME"]) / "chimera" / "sessions"
    monkeypatch.setenv("CHIMERA_SESSION_DIR", str(tmp_path / "variable"))
    assert sessions_folder() == tmp_path / "variable"
    assert sessions_folder(tmp_path / "argument") == tmp_path / "argument"


CALLS = [ToolCall("1", "t", {}), ToolCall("2", "t", {})]


@pytest.mark.parametrize(
    ("before", "roles"),
    [
        ([Message.assistant("", CALLS)], "att"),
        ([Message.assistant("", CALLS), Message.tool("2", "x")], "att"),
        ([Message.assistant("", CALLS), Message.user("u")], "attu"),
        ([Message.assistant("", CALLS), Message.assistant("", CALLS)], "attatt"),
        ([Message.assistant("", CALLS), Message.tool("1", "x"), Message.tool("2", "y"), Message.user("u")], "attu"),
        ([], ""),
    ],
)
def test_every_call_is_answered_once(before: list[Message], roles: str) -> None:
    found = whole(before)
    assert "".join(message.role[0] for message in found) == roles
    assert [message for message in found if message in before] == before
    assert whole(found) == found
