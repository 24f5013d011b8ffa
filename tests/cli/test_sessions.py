"""Sessions as a person meets them: recorded by themselves, listed, shown, exported, gone on with."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from chimera.assembly.journal import Journal, Session, list_sessions, read_session
from chimera.cli.code import run_code
from chimera.cli.exits import OK, USAGE
from chimera.cli.options import LATEST, CodeOptions, Format, Mode, with_values
from chimera.cli.sessions import export_session, show_session
from chimera.cli.sessions import list_sessions as print_list
from chimera.cli.setup import open_session
from chimera.errors import ConfigError, OutsideError
from chimera.types import Message, ToolCall
from tests.cli.child import Terminal, chimera, command, environment, script

WRITE = {"name": "write_file", "arguments": {"path": "a.txt", "content": "hello\n"}}
STEPS = [{"text": "First.", "tool_calls": [WRITE]}, "Done."]


def run(folder: Path, steps: Any = STEPS, task: str = "write a.txt", **options: Any) -> int:
    return run_code(CodeOptions(model=script(folder, steps), project=folder, **options), task)


def only_session() -> Session:
    (info,) = list_sessions()
    return read_session(info.path)


def test_a_task_is_recorded_and_gone_on_with(tmp_path: Path) -> None:
    assert run(tmp_path) == OK
    first = only_session()
    assert [message.role for message in first.messages] == ["user", "assistant", "tool", "assistant"]
    assert first.project == tmp_path
    assert run(tmp_path, ["Again."], "and now?", resume=LATEST) == OK
    again = only_session()
    assert again.id == first.id
    assert again.messages[:4] == first.messages
    assert [message.content for message in again.messages[4:]] == ["and now?", "Again."]
    assert len(again.turns) == 2


@pytest.mark.parametrize("name", ["{}", "{:.12}", "latest"])
def test_a_session_is_named_by_its_id_or_its_beginning(tmp_path: Path, name: str) -> None:
    run(tmp_path)
    run(tmp_path, ["Again."], resume=name.format(only_session().id))
    assert len(only_session().turns) == 2


@pytest.mark.parametrize("words", [("--resume",), ("--resume", "{}"), ("--resume={}",)])
def test_resume_is_an_option_with_or_without_an_id(tmp_path: Path, words: tuple[str, ...]) -> None:
    run(tmp_path)
    filled = [word.format(only_session().id) for word in words]
    done = chimera("code", *filled, "-p", "more", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (OK, "Done.\n")
    assert len(only_session().turns) == 2


def test_the_latest_one_of_this_project_is_gone_on_with(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        run(tmp_path / name, task=f"work on {name}")
    run(tmp_path / "one", task="more", resume=LATEST)
    found = {info.title: len(read_session(info.path).turns) for info in list_sessions()}
    assert found == {"work on one": 2, "work on two": 1}


def test_the_model_of_a_session_is_kept_and_can_be_changed(tmp_path: Path) -> None:
    run(tmp_path)
    model = only_session().model
    assert model == f"faux:{tmp_path / 'script.json'}"
    done = chimera("code", "-p", "more", "--resume", cwd=tmp_path, CHIMERA_MODEL="no-such-model")
    assert done.returncode == OK, done.stderr
    assert chimera("code", "-p", "more", "--resume", "--model", "faux", cwd=tmp_path).returncode == OK
    assert only_session().model == "faux"


def test_no_session_records_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, records=False) == OK
    assert list_sessions() == []


def test_a_run_that_never_begins_leaves_no_session(tmp_path: Path) -> None:
    chimera("code", "-p", "x", "--model", "faux:nowhere.json", cwd=tmp_path)
    chimera("code", "--model", "faux", cwd=tmp_path)
    assert not list(tmp_path.rglob("*.jsonl"))
    assert not list(Path(os.environ["XDG_DATA_HOME"]).rglob("*.jsonl"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"resume": LATEST}, "there is no session of the project"),
        ({"resume": "zzz"}, "there is no session 'zzz' in"),
        ({"resume": LATEST, "records": False}, "choose one"),
    ],
)
def test_what_cannot_be_gone_on_with_is_told(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        run(tmp_path, **options)


def test_it_is_told_in_a_line(tmp_path: Path) -> None:
    done = chimera("code", "-p", "x", "--resume", "zzz", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert done.stderr.startswith("chimera: there is no session 'zzz' in ")


def test_a_session_of_another_project_is_not_gone_on_with_here(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    run(tmp_path / "one")
    with pytest.raises(ConfigError, match=f"is of the project {tmp_path / 'one'}"):
        run(tmp_path / "two", resume=only_session().id)


def test_a_session_that_another_process_records_is_told(tmp_path: Path) -> None:
    journal = Journal.create(project=tmp_path, model="faux")
    journal.context().add(Message.user("busy"))
    with pytest.raises(OutsideError, match="is being recorded by another process"):
        run(tmp_path, resume=LATEST)
    journal.close()


def test_where_nothing_can_be_written_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CHIMERA_SESSION_DIR", str(tmp_path / "file" / "sessions"))
    assert run(tmp_path) == OK
    assert "no session can be recorded in" in caplog.text


def test_a_model_that_nobody_named_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-0123456789abcdef")
    with open_session(CodeOptions(project=tmp_path), default_mode=Mode.ASK) as session:
        assert session.agent.journal is not None
        session.agent.load_history([Message.user("hello")])
        assert session.agent.journal.model == session.agent.model != ""
    assert only_session().model == session.agent.model


def test_a_conversation_is_recorded_and_gone_on_with(tmp_path: Path) -> None:
    with Terminal("code", "--plain", "--model", script(tmp_path, ["Hello you."]), cwd=tmp_path) as terminal:
        terminal.expect("> ")
        terminal.enter("hello there")
        terminal.expect("Hello you.")
        terminal.enter("/clear")
        terminal.expect("a new conversation begins")
        terminal.enter("and hello again")
        terminal.expect("Hello you.")
        terminal.enter("/exit")
        terminal.expect("resume with: chimera code --resume 2")
        assert terminal.end() == OK
    assert {info.title for info in list_sessions()} == {"hello there", "and hello again"}
    with Terminal("code", "--plain", "--resume", cwd=tmp_path) as terminal:
        begun = terminal.expect("> ")
        assert "goes on: and hello again (2 messages)" in begun
        assert "~ you: and hello again" in begun
        assert "~ agent: Hello you." in begun
        terminal.enter("still there?")
        terminal.expect("Hello you.")
        terminal.enter("/exit")
        assert terminal.end() == OK
    latest = read_session(list_sessions()[0].path)
    assert [message.content for message in latest.messages if message.role == "user"] == [
        "and hello again",
        "still there?",
    ]


def test_a_killed_run_is_gone_on_with(tmp_path: Path) -> None:
    sleep = {"name": "bash", "arguments": {"command": "echo $$ > begun; exec sleep 60"}}
    model = script(tmp_path, [{"text": "Waiting.", "tool_calls": [sleep]}])
    process = subprocess.Popen(
        command("code", "-p", "wait", "--model", model, "--yolo"), cwd=tmp_path, env=environment()
    )
    while not (begun := tmp_path / "begun").exists() or not begun.read_text().strip():
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    os.kill(int(begun.read_text()), signal.SIGKILL)
    assert run(tmp_path, ["Where was I?"], "go on", resume=LATEST) == OK
    roles = [message.role for message in only_session().messages]
    assert roles == ["user", "assistant", "tool", "user", "assistant"]
    assert "may have taken effect" in only_session().messages[2].content


# Looking at sessions.


def record(project: Path, *messages: Message, name: str = "20260101-000000-abcdef", lane: str = "") -> None:
    journal = Journal.create(project=project, model="m", session_id=name, lane=lane)
    context = journal.context()
    for message in messages:
        context.add(message)
    journal.close()


TALK = (
    Message.user("read \x1b[31mit\nplease"),
    Message.assistant(
        "Reading.", [ToolCall("1", "read_file", {"path": "a.md"}), ToolCall("2", "bash", {"command": "ls"})]
    ),
    Message.tool("1", "\n".join(f"line {number}" for number in range(20))),
    Message.tool("2", "```\nfenced\n````"),
    Message.assistant("Read."),
)


def test_the_list_is_of_this_project_or_of_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        record(tmp_path / name, Message.user(f"work\non {name}"), name=f"s-{name}")
    record(tmp_path / "one", Message.user("race"), name="s-lane", lane="m:tot")
    assert print_list(tmp_path / "one", everywhere=False) == OK
    here = capsys.readouterr().out
    assert "s-one" in here
    assert "work on one" in here
    assert "(lane m:tot)" in here
    assert "s-two" not in here
    print_list(tmp_path / "one", everywhere=True)
    everywhere = "".join(capsys.readouterr().out.split())
    assert "s-two" in everywhere
    assert str(tmp_path / "two")[-12:] in everywhere


def test_an_empty_list_names_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert print_list(tmp_path, everywhere=False) == OK
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("There are no sessions of this project in")


def test_a_session_is_shown_as_it_went(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path, *TALK)
    assert show_session("2026", tmp_path) == OK
    out = capsys.readouterr().out
    for text in (
        "model                     m",
        "decisions of interceptors ",
        "> read ␛[31mit",
        "  please",
        "Reading.",
        "* read_file a.md",
        "* bash ls",
        "Read.",
    ):
        assert text in out, text
    assert "read_file: line 0" in out
    assert "(12 more lines)" in out
    assert "line 9" not in out
    assert "\x1b" not in out


def test_show_takes_the_latest_of_the_project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="there is no session of this project yet"):
        show_session("latest", tmp_path)
    record(tmp_path, Message.system("be brief"), *TALK)
    show_session("latest", tmp_path)
    assert "system: be brief" in capsys.readouterr().out


def test_markdown_cannot_be_broken_out_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path, *TALK)
    assert export_session("2026", tmp_path, None, None) == OK
    out = capsys.readouterr().out
    assert out.startswith("# Session 20260101-000000-abcdef\n")
    assert '### Call of read_file\n\n```json\n{\n  "path": "a.md"\n}\n```\n' in out
    assert "### Result of bash\n\n`````\n```\nfenced\n````\n`````\n" in out


def test_json_holds_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path, *TALK, lane="m:tot")
    export_session("2026", tmp_path, None, Format.JSON)
    exported = json.loads(capsys.readouterr().out)
    assert exported["lane"] == "m:tot"
    assert exported["messages"][1]["tool_calls"][0] == {"id": "1", "name": "read_file", "arguments": {"path": "a.md"}}
    assert len(exported["messages"]) == 5


@pytest.mark.parametrize(
    ("name", "form", "begins"), [("x.json", None, "{"), ("x.md", None, "#"), ("x", Format.JSON, "{")]
)
def test_an_export_is_a_new_private_file(tmp_path: Path, name: str, form: Format | None, begins: str) -> None:
    record(tmp_path, *TALK, Message.user("half \ud83d"))
    output = tmp_path / name
    assert export_session("2026", tmp_path, output, form) == OK
    assert output.read_text("utf-8").startswith(begins)
    assert stat.S_IMODE(output.stat().st_mode) == 0o600
    with pytest.raises(OutsideError, match="cannot be written: File exists"):
        export_session("2026", tmp_path, output, form)


@pytest.mark.parametrize(
    "words", [("list",), ("list", "--all"), ("show", "latest"), ("export", "latest", "-o", "x.md")]
)
def test_the_commands_are_connected(tmp_path: Path, words: tuple[str, ...]) -> None:
    record(tmp_path, *TALK)
    done = chimera("sessions", *words, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (OK, "")
    assert done.stdout or (tmp_path / "x.md").exists()


@pytest.mark.parametrize(
    ("words", "filled"),
    [
        ([], []),
        (["--resume"], ["--resume=latest"]),
        (["--resume", "-p", "x"], ["--resume=latest", "-p", "x"]),
        (["--resume", "id", "-p"], ["--resume", "id", "-p"]),
        (["--resume=id"], ["--resume=id"]),
    ],
)
def test_resume_needs_no_id(words: list[str], filled: list[str]) -> None:
    assert list(with_values(words)) == filled
