"""Journal: the process is killed, or the file cut short, at any moment."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chimera.assembly import AgentDriver
from chimera.assembly.journal import Journal, list_sessions, read_session
from chimera.errors import OutsideError
from chimera.providers.faux import FauxProvider
from chimera.types import Message, ToolCall
from tests.assembly.long_session import Probe, driver_of, path_of, records_of, run_turns
from tests.core.driving import assert_acceptable


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    driver = driver_of(Journal.create(folder, project=folder, model="faux"))
    run_turns(driver, range(5), lambda: None)
    assert driver.journal is not None
    driver.journal.close()
    return driver.journal.path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(data=st.data())
def test_a_file_that_is_cut_anywhere_loads_without_its_last_record_at_most(
    tmp_path: Path, finished: Path, data: st.DataObject
) -> None:
    whole = finished.read_bytes()
    header = whole.index(b"\n") + 1
    ends = [place + 1 for place, byte in enumerate(whole) if byte == 10 and place >= header]
    near = st.sampled_from(ends).flatmap(lambda end: st.integers(end - 1, min(end + 1, len(whole))))
    cut = data.draw(st.integers(header, len(whole)) | near)
    path = tmp_path / "cut.jsonl"
    path.write_bytes(whole[:cut])
    assert records_of(path) == records_of(finished)[: whole[:cut].count(b"\n")]
    session = read_session(path)
    assert_acceptable(list(session.messages))
    journal = Journal.resume(path)
    try:
        assert tuple(journal.context().messages) == session.messages == read_session(path).messages
        assert path.read_bytes()[: whole.rfind(b"\n", 0, cut) + 1] == whole[: whole.rfind(b"\n", 0, cut) + 1]
    finally:
        journal.close()


def test_a_file_that_is_cut_in_its_first_line_is_no_session(tmp_path: Path, finished: Path) -> None:
    path = tmp_path / "cut.jsonl"
    path.write_bytes(finished.read_bytes()[:40])
    with pytest.raises(OutsideError, match="is no session of Chimera"):
        read_session(path)
    assert list_sessions(tmp_path) == []


def test_killed_at_fifty_moments_every_session_loads_and_goes_on(tmp_path: Path) -> None:
    program = Path(__file__).with_name("long_session.py")
    root = Path(__file__).parents[2]
    command = [sys.executable, str(program), str(tmp_path / "killed"), "50", str(os.getpid())]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, text=True, check=True, timeout=100
    )
    witnessed = json.loads(done.stdout)
    lines, expected = undisturbed(tmp_path, max(witnessed) + 1)
    for number, seen in enumerate(witnessed):
        path = tmp_path / "killed" / f"killed-{number}.jsonl"
        if not path.exists():  # killed before anything was said
            assert seen == 0
            continue
        records = records_of(path)
        assert records == expected[: len(records)]
        assert len(records) >= lines[seen]
        go_on(path)


def undisturbed(folder: Path, events: int) -> tuple[list[int], list[dict[str, Any]]]:
    """Run the same session to its end, a bit longer than the killed ones. Return how many records there are after each
    number of events, and the records."""
    driver = driver_of(Journal.create(folder, project=folder, model="faux"))
    path, lines = path_of(driver), [1]
    count = path.read_bytes().count(b"\n")
    size = path.stat().st_size

    def witness() -> None:
        nonlocal count, size
        with path.open("rb") as file:
            file.seek(size)
            new = file.read()
        count, size = count + new.count(b"\n"), size + len(new)
        lines.append(count)

    number = 0
    while len(lines) <= events + 40:
        run_turns(driver, range(number, number + 1), witness)
        number += 1
    return lines, records_of(path)


def go_on(path: Path) -> None:
    before = read_session(path)
    assert_acceptable(list(before.messages))
    journal = Journal.resume(path)
    provider = FauxProvider("Here again.")
    driver = AgentDriver(provider=provider, tools_override=[Probe()], journal=journal, system_prompt="x")
    asyncio.run(driver.send("are you there?"))
    journal.close()
    assert tuple(driver.history[:-2]) == before.messages
    assert tuple(driver.history) == read_session(path).messages
    assert list(provider.requests[0].messages[1:]) == driver.history[:-1]


def test_a_batch_that_was_cut_short_is_answered_where_it_belongs(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, project=tmp_path, model="faux")
    context = journal.context()
    calls = [ToolCall("1", "probe", {}), ToolCall("2", "probe", {}), ToolCall("3", "probe", {})]
    for message in (Message.user("go"), Message.assistant("", calls), Message.tool("1", "one")):
        context.add(message)
    found = read_session(journal.path).messages
    assert [(message.role, message.call_id) for message in found[2:]] == [("tool", "1"), ("tool", "2"), ("tool", "3")]
    assert all("may have taken effect" in message.content for message in found[3:])
    journal.close()
    again = Journal.resume(journal.path)
    again.close()
    assert len(records_of(journal.path)) == 6
    assert read_session(journal.path).messages == found
