"""Journal: the file follows the conversation, whatever happens to either."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chimera.assembly import AgentDriver
from chimera.assembly.journal import Journal, list_sessions, read_session
from chimera.core.decisions import InterceptDecision, Interceptors
from chimera.core.loop_events import LoopEvent, LoopEventType, LoopResult
from chimera.errors import ConfigError, OutsideError
from chimera.events import InterceptorEvent
from chimera.providers.faux import FauxProvider
from chimera.session import AgentSession
from chimera.types import Message, ToolCall, ToolResult
from tests.assembly.disks import files_at_most
from tests.assembly.lanes import load_loop
from tests.assembly.long_session import Probe, driver_of, path_of, records_of, run_turns
from tests.core.driving import assert_acceptable

CALL: dict[str, Any] = {"tool_calls": [{"name": "probe", "arguments": {"text": "x"}}]}


def make(folder: Path, script: Any, **options: Any) -> AgentDriver:
    journal = options.pop("journal", None) or Journal.create(folder / "sessions", project=folder, model="faux")
    options.setdefault("tools_override", [Probe()])
    return AgentDriver(provider=FauxProvider(script), project_dir=folder, journal=journal, **options)


def stored(driver: AgentDriver) -> list[Message]:
    return list(read_session(path_of(driver)).messages)


def kinds(path: Path) -> list[str]:
    return [record["type"] for record in records_of(path)]


def test_the_file_follows_the_conversation_event_by_event(tmp_path: Path) -> None:
    """With steering, several calls at once, and compaction in the middle of turns."""
    driver = driver_of(Journal.create(tmp_path, project=tmp_path, model="faux"))

    def compare() -> None:
        found = stored(driver)
        assert_acceptable(found)
        assert found[: len(driver.history)] == driver.history
        assert {message.role for message in found[len(driver.history) :]} <= {"tool"}

    run_turns(driver, range(9), compare)
    assert stored(driver) == driver.history
    assert {"conversation", "message", "turn"} <= set(kinds(path_of(driver)))
    assert any("steered" in message.content for message in driver.history)


def test_what_policies_took_out_is_stored_nowhere(tmp_path: Path) -> None:
    def result(call: ToolCall, result: ToolResult) -> InterceptDecision:
        if call.arguments.get("text") == "withhold":
            return InterceptDecision.block("it names a customer")
        return InterceptDecision.replace(ToolResult("[scrubbed]"))

    def call(call: ToolCall) -> InterceptDecision | None:
        if call.arguments.get("text") == "rewrite":
            return InterceptDecision.replace(ToolCall(call.id, call.name, {"text": "rewritten"}))
        return InterceptDecision.block("no") if call.arguments.get("text") == "block" else None

    def context(messages: list[Message]) -> InterceptDecision:
        return InterceptDecision.replace([*messages, Message.user("only on the wire")])

    probe = Probe()
    texts = ("withhold", "rewrite", "block", "other")
    calls = [{"name": "probe", "arguments": {"text": text}} for text in texts]
    chains = Interceptors(tool_call=[call], tool_result=[result], context=[context])
    driver = make(tmp_path, [{"tool_calls": calls}, "done"], interceptors=chains, tools_override=[probe])
    asyncio.run(driver.send("go"))
    session = read_session(path_of(driver))
    assert list(session.messages) == driver.history
    text = path_of(driver).read_text()
    assert probe.count == 3
    for word in ("what it found", "only on the wire", '"rewrite"', '"before"', '"after"'):
        assert word not in text, word
    assert "[tool result withheld by interceptor: it names a customer]" in text
    assert [entry["decision"] for entry in session.decisions if entry["seam"] == "tool_result"] == [
        "blocked",
        "replaced",
        "replaced",
    ]
    assert {entry["seam"] for entry in session.decisions} == {"tool_call", "tool_result", "context"}


def test_decisions_and_turns_hold_no_secret_and_no_value(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, project=tmp_path, model="faux")
    key = "sk-ant-api03-" + "Ab1_" * 12
    event = InterceptorEvent(
        seam="context", decision="error", reason=f"cannot parse {key}", interceptor="x", before="B", after="A"
    )
    journal.append(LoopEvent(LoopEventType.INTERCEPTOR, event))
    journal.append(LoopEvent(LoopEventType.RESULT, LoopResult(f"error: 401 for {key}", cost_usd=0.5)))
    journal.append(LoopEvent(LoopEventType.ASSISTANT_CHUNK, "a chunk"))
    session = read_session(journal.path)
    assert key not in journal.path.read_text()
    assert not {"before", "after"} & set(session.decisions[0])
    assert session.decisions[0]["reason"].startswith("cannot parse ")
    assert session.turns[0]["reason"].startswith("error: 401 for ")
    assert session.cost_usd == 0.5
    assert len(records_of(journal.path)) == 3


@pytest.mark.parametrize("loop", ["reflexion", "plan-execute", "tot"])
def test_strategy_loops_are_recorded(tmp_path: Path, loop: str) -> None:
    driver = make(tmp_path, [CALL, "VERDICT: PASS"], loop=loop)
    asyncio.run(driver.send("go"))
    assert stored(driver) == driver.history
    assert len(driver.history) > 2


def test_loops_that_run_in_threads_of_their_own_are_recorded(tmp_path: Path) -> None:
    load_loop("self-driving")
    driver = make(tmp_path, [CALL, "done"], loop="self-driving")
    asyncio.run(driver.send("go"))
    assert stored(driver) == driver.history
    assert [message.role for message in driver.history] == ["user", "assistant", "tool", "assistant"]


def test_a_cancelled_turn_is_stored_whole(tmp_path: Path) -> None:
    driver = make(tmp_path, [CALL, "never"])
    probe = driver.tools[0]
    assert isinstance(probe, Probe)
    probe.count, probe.say = 3, lambda _text: driver.cancel()
    assert asyncio.run(driver.send("go")).reason == "aborted"
    assert stored(driver) == driver.history
    assert read_session(path_of(driver)).turns[-1]["reason"] == "aborted"


def test_files_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        journal = Journal.create(tmp_path / "data" / "sessions", project=tmp_path, model="faux")
    finally:
        os.umask(before)
    assert stat.S_IMODE(journal.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(journal.path.parent.stat().st_mode) == 0o700


def test_nothing_said_leaves_nothing(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, project=tmp_path, model="faux")
    journal.use_model("another")
    journal.close()
    journal.close()
    assert list(tmp_path.iterdir()) == []


def test_a_resumed_session_stays_when_nothing_more_is_said(tmp_path: Path) -> None:
    driver = make(tmp_path, "one")
    asyncio.run(driver.send("a"))
    path = path_of(driver)
    content = path.read_bytes()
    assert driver.journal is not None
    driver.journal.close()
    Journal.resume(path).close()
    assert path.read_bytes() == content


def test_clearing_ends_the_session_and_begins_another_one(tmp_path: Path) -> None:
    driver = make(tmp_path, ["one", "two"])
    first = path_of(driver)
    asyncio.run(driver.send("a"))
    driver.clear()
    asyncio.run(driver.send("b"))
    assert path_of(driver) != first
    assert [message.content for message in read_session(first).messages] == ["a", "one"]
    assert [message.content for message in stored(driver)] == ["b", "two"]


def test_clearing_where_no_other_session_can_begin(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    driver = make(tmp_path, ["one", "two"])
    asyncio.run(driver.send("a"))
    folder = path_of(driver).parent
    folder.rename(tmp_path / "elsewhere")
    folder.touch()
    driver.clear()
    assert driver.journal is None
    assert "no session can be recorded in" in caplog.text
    assert asyncio.run(driver.send("b")).reason == "completed"
    assert [message.content for message in driver.history] == ["b", "two"]


def test_a_history_that_is_loaded_takes_the_place_of_what_was_said(tmp_path: Path) -> None:
    driver = make(tmp_path, ["one", "two"])
    asyncio.run(driver.send("a"))
    driver.load_history([Message.user("other"), Message.assistant("past")])
    asyncio.run(driver.send("b"))
    assert [message.content for message in stored(driver)] == ["other", "past", "b", "two"]
    assert stored(driver) == driver.history


def test_another_session_is_gone_on_with(tmp_path: Path) -> None:
    first = make(tmp_path, "one")
    asyncio.run(first.send("a"))
    assert first.journal is not None
    first.journal.close()
    driver = make(tmp_path, ["two", "three"])
    asyncio.run(driver.send("b"))
    second = path_of(driver)
    driver.go_on_with(Journal.resume(path_of(first)))
    asyncio.run(driver.send("c"))
    assert [message.content for message in driver.history] == ["a", "one", "c", "three"]
    assert stored(driver) == driver.history
    assert path_of(driver) == path_of(first)
    assert [message.content for message in read_session(second).messages] == ["b", "two"]
    Journal.resume(second).close()


def test_another_model_is_noted(tmp_path: Path) -> None:
    driver = make(tmp_path, "one")
    asyncio.run(driver.send("a"))
    assert driver.journal is not None
    driver.journal.close()
    Journal.resume(path_of(driver), model="faux").close()
    Journal.resume(path_of(driver), model="bigger").close()
    assert kinds(path_of(driver)).count("model") == 1
    assert read_session(path_of(driver)).model == "bigger"


def test_a_session_that_is_recorded_cannot_be_gone_on_with_elsewhere(tmp_path: Path) -> None:
    driver = make(tmp_path, "one")
    asyncio.run(driver.send("a"))
    with pytest.raises(OutsideError, match="recorded by another process"):
        Journal.resume(path_of(driver))
    assert read_session(path_of(driver)).messages


def test_closing_an_agent_session_closes_its_journal(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, project=tmp_path, model="faux")
    with AgentSession(provider=FauxProvider("one"), project_dir=tmp_path, journal=journal) as session:
        session.run("a")
    Journal.resume(journal.path).close()


def test_writers_in_many_threads_each_have_a_file_of_their_own(tmp_path: Path) -> None:
    def one(number: int) -> AgentDriver:
        driver = make(tmp_path, [CALL, f"answer {number}"] * 3)
        for turn in range(3):
            asyncio.run(driver.send(f"{number}.{turn}"))
        return driver

    with ThreadPoolExecutor(8) as pool:
        drivers = list(pool.map(one, range(8)))
    assert len({path_of(driver) for driver in drivers}) == 8
    for driver in drivers:
        assert stored(driver) == driver.history


def test_one_conversation_may_grow_from_many_threads(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, project=tmp_path, model="faux")
    context = journal.context()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: context.add(Message.user(str(number))), range(200)))
    found = sorted(int(message.content) for message in read_session(journal.path).messages)
    assert found == list(range(200))


def test_a_full_disk_stops_no_run_and_is_made_up_for(tmp_path: Path) -> None:
    driver = make(tmp_path, [CALL, "one", CALL, "two", "three"])
    assert driver.journal is not None
    journal = driver.journal
    with files_at_most(journal.path.stat().st_size + 150):
        assert asyncio.run(driver.send("a")).reason == "completed"
    assert journal.problem is not None
    assert "File too large" in journal.problem
    for record in journal.path.read_bytes().splitlines():
        json.loads(record)
    asyncio.run(driver.send("b"))
    assert journal.problem is None
    assert stored(driver) == driver.history
    assert len(driver.history) == 8


def test_a_disk_that_is_full_from_the_start_is_told(tmp_path: Path) -> None:
    with files_at_most(10), pytest.raises(OutsideError, match=r"no session can be recorded in .*: File too large"):
        Journal.create(tmp_path, project=tmp_path, model="faux")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutsideError, match="no session can be recorded in"):
        Journal.create(tmp_path / "file" / "sessions", project=tmp_path, model="faux")


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "a b", "x" * 101, "nul\0"])
def test_ids_are_plain_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="a session id is made of"):
        Journal.create(tmp_path, project=tmp_path, model="faux", session_id=name)


def test_an_id_is_taken_once(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, project=tmp_path, model="faux", session_id="mine")
    with pytest.raises(ConfigError, match="exists already"):
        Journal.create(tmp_path, project=tmp_path, model="faux", session_id="mine")
    journal.context().add(Message.user("x"))
    journal.close()
    assert [info.id for info in list_sessions(tmp_path)] == ["mine"]


def test_what_is_said_after_the_end_is_not_recorded(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, project=tmp_path, model="faux")
    context = journal.context()
    context.add(Message.user("in time"))
    journal.close()
    context.add(Message.user("late"))
    assert [message.content for message in read_session(journal.path).messages] == ["in time"]


def test_a_conversation_that_was_given_up_is_not_recorded(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, project=tmp_path, model="faux")
    old = journal.context()
    old.add(Message.user("old"))
    new = journal.context([Message.user("new")])
    old.add(Message.user("stray"))
    old.messages.clear()
    assert list(read_session(journal.path).messages) == new.messages == [Message.user("new")]


TEXTS = st.text(max_size=20) | st.just("half \ud83d") | st.just("line\nfeed\u2028and\x00nul")
JSON = st.recursive(st.none() | st.booleans() | st.integers() | TEXTS, lambda inner: st.lists(inner, max_size=3))
MESSAGES = st.builds(
    lambda role, content, arguments, blocks: Message(
        role, content, (ToolCall("1", "probe", arguments),) if role == "assistant" else (), None, tuple(blocks)
    ),
    st.sampled_from(["user", "assistant", "system"]),
    TEXTS,
    st.dictionaries(TEXTS, JSON, max_size=3),
    st.lists(st.dictionaries(TEXTS, JSON, max_size=2), max_size=2),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(MESSAGES, max_size=6))
def test_messages_of_every_kind_come_back_as_they_were(tmp_path: Path, messages: list[Message]) -> None:
    journal = Journal.create(tmp_path, project=tmp_path, model="faux")
    context = journal.context()
    for message in messages:
        context.add(message)
    found = [message for message in read_session(journal.path).messages if message.role != "tool"]
    assert found == messages
    journal.close()


def test_arguments_that_are_no_json_are_stored_as_text(tmp_path: Path) -> None:
    """A policy may build such a call; the run must not end for that."""
    journal = Journal.create(tmp_path, project=tmp_path, model="faux")
    odd: dict[Any, Any] = {("a", 1): {2: b"bytes"}, "path": Path("x")}
    journal.context().add(Message.assistant("", [ToolCall("1", "probe", odd)]))
    (message, _answer) = read_session(journal.path).messages
    assert message.tool_calls[0].arguments == {"('a', 1)": {"2": "b'bytes'"}, "path": "x"}
