from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from chimera.cli.code import run_code
from chimera.cli.exits import FAILED, OK, USAGE
from chimera.cli.main import main
from chimera.cli.options import CodeOptions, Output
from chimera.errors import ConfigError
from tests.cli.child import chimera, script
from tests.providers.vendors import VENDORS, VendorCase
from tests.providers.wire_server import WireServer


def test_a_task_runs_in_the_project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = CodeOptions(model=script(tmp_path, ["Fine."]), project=tmp_path)
    assert run_code(options, "go") == OK
    assert capsys.readouterr().out == "Fine.\n"


@pytest.mark.parametrize("task", ["", "  \n"])
def test_an_empty_task_is_refused(tmp_path: Path, task: str) -> None:
    with pytest.raises(ConfigError, match="the task is empty"):
        run_code(CodeOptions(model="faux", project=tmp_path), task)


def test_json_without_a_task_is_refused() -> None:
    with pytest.raises(ConfigError, match="--output json needs a task"):
        run_code(CodeOptions(output=Output.JSON), None)


def test_the_task_may_come_from_standard_input(tmp_path: Path) -> None:
    done = chimera("code", "-p", "-", "--model", script(tmp_path, ["Fine."]), cwd=tmp_path, stdin="do it\n")
    assert (done.returncode, done.stdout, done.stderr) == (OK, "Fine.\n", "")


def test_a_conversation_needs_a_terminal(tmp_path: Path) -> None:
    done = chimera("code", "--model", "faux", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert "needs a terminal; give the task with -p TASK" in done.stderr


@pytest.mark.parametrize("words", [("code",), ("code", "-p", "x"), ("code", "-p", "x", "--output", "json")])
def test_without_a_model_the_ways_to_get_one_are_named(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = chimera(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (USAGE, "")
    lines = done.stderr.splitlines()
    assert lines[0].startswith("chimera: No model is configured.")
    assert [line[:5] for line in lines[1:]] == ["  (1)", "  (2)", "  (3)", "  (4)"]
    assert all(word in done.stderr for word in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "--base-url", "--model faux"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--model", "faux:nowhere.json"), "nowhere.json"),
        (("--model", "faux", "--preset", "minimall"), "there is no preset 'minimall'"),
        (("--model", "faux", "--plugin", "redacter"), "did you mean redactor?"),
        (("--model", "faux", "--loop", "reflection"), "did you mean 'reflexion'?"),
        (("--model", "faux", "--project", "nowhere"), "does not exist"),
        (("--model", "gpt-5.5"), "There is no key for gpt-5.5"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["chimera", "code", "-p", "x", *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("chimera: ")
    assert said in err


def test_a_fault_in_the_settings_is_told(tmp_path: Path) -> None:
    (tmp_path / ".chimera").mkdir()
    (tmp_path / ".chimera" / "config.toml").write_text("modle = 'x'\n")
    done = chimera("code", "-p", "x", "--model", "faux", cwd=tmp_path)
    assert done.returncode == USAGE
    assert "config.toml: unknown key 'modle'; did you mean 'model'?" in done.stderr


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.name)
@pytest.mark.parametrize("output", [Output.JSON, Output.STREAM_JSON])
def test_an_endpoint_of_either_vendor_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], vendor: VendorCase, output: Output
) -> None:
    answer = vendor.whole("hello") if output is Output.JSON else vendor.streamed("hel", "lo")
    with WireServer(answer) as server:
        options = CodeOptions(f"{vendor.name}:m", server.url, tmp_path, plugins=("redactor",), output=output)
        assert run_code(options, "hi") == OK
        (request,) = server.requests
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["text"] == "hello"
    assert request.json["model"] == "m"


def test_a_service_that_refuses_fails_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with WireServer(VENDORS[0].error(401)) as server:
        assert run_code(CodeOptions(f"{VENDORS[0].name}:m", server.url, tmp_path), "hi") == FAILED
    assert "✗ ProviderAuthError" in capsys.readouterr().err


def test_settings_of_the_project_make_a_run(tmp_path: Path) -> None:
    """Model, plugin with options, rules and hooks, all from the file."""
    (tmp_path / ".chimera").mkdir()
    steps = [
        {"tool_calls": [{"name": "bash", "arguments": {"command": "cat secret.txt"}}]},
        {"tool_calls": [{"name": "bash", "arguments": {"command": "rm secret.txt"}}]},
        {"tool_calls": [{"name": "write_file", "arguments": {"path": ".chimera/config.toml", "content": ""}}]},
        "Done.",
    ]
    (tmp_path / "secret.txt").write_text("acme-123\n")
    (tmp_path / ".chimera" / "config.toml").write_text(
        f'model = "{script(tmp_path, steps)}"\n'
        '[permissions]\nallow = ["Bash(cat:*)", "Edit(**)"]\ndeny = ["Bash(rm:*)"]\n'
        '[plugins.redactor]\npattern = "acme-[0-9]+"\nreplacement = "<gone>"\n'
        '[[hooks.PostToolUse]]\nmatcher = "bash"\n[[hooks.PostToolUse.hooks]]\ntype = "command"\n'
        'command = "cat > hooked.json"\n'
    )
    done = chimera("code", "-p", "go", "--output", "stream-json", cwd=tmp_path)
    assert done.returncode == OK, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    read, removed, loosened = [event for event in events if event["type"] == "tool_result"]
    assert read["output"] == "<gone>\n"
    assert "the rule Bash(rm:*) denies it" in removed["error"]
    assert "nobody is there to be asked" in loosened["error"]
    assert "acme" not in done.stdout
    assert "<gone>" in (tmp_path / "hooked.json").read_text()


def test_bytes_that_are_no_text_become_marks(tmp_path: Path) -> None:
    argument = b"caf\xe9".decode("utf-8", "surrogateescape")
    done = chimera("code", "-p", argument, "--model", script(tmp_path, ["Fine."]), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (OK, "Fine.\n")


def test_without_a_terminal_there_is_no_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert run_code(CodeOptions(model="faux"), None) == USAGE
