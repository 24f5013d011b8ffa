from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from chimera.cli.exits import INTERRUPTED, OK
from chimera.cli.options import CodeOptions, Mode
from chimera.cli.repl import Repl
from chimera.cli.screen import Screen
from chimera.cli.setup import open_session
from tests.cli.child import Terminal, script
from tests.cli.consoles import recorded
from tests.providers.vendors import OPENAI
from tests.providers.wire_server import Reply, WireServer, events, stream_reply

LIST = {"name": "bash", "arguments": {"command": "echo listed"}}


@contextmanager
def talk(folder: Path, lines: list[Any], steps: Any = (), **options: Any) -> Iterator[tuple[int, str, Repl]]:
    """Run a conversation in which the person types `lines`; exceptions in it are raised, the end is `/exit`."""
    console, out = recorded()
    answers = iter([*lines, "/exit"])

    def read_line(prompt: str) -> str:
        answer = next(answers)
        console.print(f"{prompt}{answer if isinstance(answer, str) else type(answer).__name__}")
        if isinstance(answer, BaseException):
            raise answer
        return str(answer)

    chosen = CodeOptions(model=script(folder, list(steps)), project=folder, **options)
    with open_session(chosen, default_mode=Mode.YOLO) as session:
        repl = Repl(session, Screen(console), read_line)
        code = repl.run()
        yield code, out.getvalue(), repl


def said(folder: Path, lines: list[Any], steps: Any = (), **options: Any) -> str:
    with talk(folder, lines, steps, **options) as (code, text, _):
        assert code == OK
        return text


def test_a_conversation_goes_on_from_line_to_line(tmp_path: Path) -> None:
    with talk(tmp_path, ["one", "two"], ["First.", "Second."]) as (code, text, repl):
        history = [message.content for message in repl._session.agent.history]
    assert code == OK
    assert history == ["one", "First.", "two", "Second."]
    assert "> one\nFirst.\n\n> two\nSecond.\n\n> /exit\n" in text


def test_the_banner_says_what_is_in_force(tmp_path: Path) -> None:
    (tmp_path / ".chimera").mkdir()
    (tmp_path / ".chimera" / "config.toml").write_text('preset = "minimal"\n[plugins.redactor]\n')
    banner = said(tmp_path, [], plugins=("plan-gate",)).split("> /exit")[0]
    assert banner.startswith("Chimera  faux\n")
    assert "minimal, permissions: yolo, plugins: redactor, plan-gate" in banner
    assert "~ settings .chimera/config.toml\n" in banner


def test_tools_and_decisions_are_shown(tmp_path: Path) -> None:
    text = said(tmp_path, ["go", "/decisions"], [{"tool_calls": [LIST]}, "Done."], plugins=("plan-gate",))
    assert "● bash echo listed\n  ✗ Blocked by interceptor: plan-gate: no plan" in text
    assert "tool_call  blocked" in text
    assert "PlanGatePlugin._gate" in text


def test_sub_agents_are_shown(tmp_path: Path) -> None:
    spawn = {"tool_calls": [{"name": "spawn_x", "arguments": {"task": "list"}}]}
    steps = [spawn, {"tool_calls": [LIST]}, "Listed.", "Done."]
    text = said(tmp_path, ["go"], steps, plugins=("delegate-spawner",))
    assert "● delegate list\n    ● bash echo listed\n    Listed.\nDone.\n" in text


def test_a_failing_model_does_not_end_the_conversation(tmp_path: Path) -> None:
    text = said(tmp_path, ["one", "two"], [{"error": "it is down"}, "Back."])
    assert "✗ ProviderError: it is down" in text
    assert "> two\nBack.\n" in text


def test_the_cost_adds_up_over_turns(tmp_path: Path) -> None:
    steps: Any = [{"text": "a", "usage": {"input_tokens": 1000, "output_tokens": 2}}] * 2
    assert "2 turns, 2,000 tokens in, 4 out, $0.0000" in said(tmp_path, ["x", "y", "/cost"], steps)
    assert "1 turn, 1,000 tokens in, 2 out" in said(tmp_path, ["x", "/cost"], steps)


def test_clear_begins_a_new_conversation(tmp_path: Path) -> None:
    with talk(tmp_path, ["one", "/clear", "two"], ["A", "B"]) as (_, text, repl):
        assert [message.content for message in repl._session.agent.history] == ["two", "B"]
    assert "a new conversation begins" in text


def test_commands_that_say_something(tmp_path: Path) -> None:
    text = said(tmp_path, ["/help", "/plugins", "/decisions", "/cots", "/zzzz", "", "   "])
    assert "/cost        tokens and money spent so far" in text
    assert "none; load some with --plugin NAME" in text
    assert "nothing was blocked, replaced or denied yet" in text
    assert "there is no command /cots; did you mean /cost?" in text
    assert "there is no command /zzzz; /help lists the commands" in text
    assert "redactor  Scrubs secrets" in said(tmp_path, ["/plugins"], plugins=("redactor",))


def test_commands_of_plugins(tmp_path: Path) -> None:
    plugins = tmp_path / ".chimera" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "greeter.py").write_text(
        "from chimera.plugins import BasePlugin\n"
        "class Greeter(BasePlugin):\n    name = 'greeter'\n    def register_commands(self, registry):\n"
        "        registry.register_command('greet', lambda text: f'Hello {text}', 'says hello')\n"
        "        registry.register_command('quiet', lambda text: None)\n"
        "        registry.register_command('crash', lambda text: 1 / 0)\n"
    )
    text = said(tmp_path, ["/greet  you ", "/quiet", "/crash", "/help"], plugins=("greeter",))
    assert "> /greet  you \nHello you\n" in text
    assert "> /quiet\ndone\n" in text
    assert "/crash failed: ZeroDivisionError: division by zero" in text
    assert "/greet       says hello" in text


def test_a_backslash_continues_a_line(tmp_path: Path) -> None:
    with talk(tmp_path, ["one\\", "two"], ["ok"]) as (_, _, repl):
        assert repl._session.agent.history[0].content == "one\ntwo"


def test_ways_to_leave(tmp_path: Path) -> None:
    for lines, expected in (
        (["/quit"], OK),
        ([EOFError()], OK),
        ([KeyboardInterrupt(), KeyboardInterrupt()], INTERRUPTED),
        ([KeyboardInterrupt(), "", KeyboardInterrupt(), "/exit"], OK),
    ):
        with talk(tmp_path, lines) as (code, text, _):
            assert code == expected
    assert "press Ctrl-C again" in text


SLEEP = {"name": "bash", "arguments": {"command": "sleep 60"}}


def test_ctrl_c_in_a_turn_ends_the_turn_and_not_the_conversation(tmp_path: Path) -> None:
    loop_signals = iter([signal.SIGINT])
    steps = [{"tool_calls": [SLEEP, LIST]}, "Going on."]
    console, _ = recorded()
    with open_session(CodeOptions(model=script(tmp_path, steps), project=tmp_path), default_mode=Mode.YOLO) as session:
        repl = Repl(session, Screen(console), lambda prompt: "")
        show = repl._screen.show

        def watch(event: Any) -> None:
            show(event)
            if event.type == "tool_use":
                for number in loop_signals:
                    os.kill(os.getpid(), number)

        repl._screen.show = watch  # type: ignore[method-assign]
        with asyncio.Runner() as runner:
            repl._turn("go", runner)
            repl._turn("go on", runner)
        roles = [message.role for message in session.agent.history]
    assert roles == ["user", "assistant", "tool", "tool", "user", "assistant"]


def tool_call_reply(command: str) -> Reply:
    """A streamed answer of the OpenAI protocol that asks for a command."""
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    call = {"index": 0, "id": "call_a", "type": "function", "function": function}
    deltas: list[dict[str, Any]] = [{"delta": {"tool_calls": [call]}}, {"delta": {}, "finish_reason": "tool_calls"}]
    return stream_reply(events(*({"choices": [{"index": 0, **delta}]} for delta in deltas), "[DONE]"))


def service(terminal_command: str) -> WireServer:
    return WireServer(tool_call_reply(terminal_command), OPENAI.streamed("Going ", "on."))


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    """A file that the command of the agent writes when it has begun."""
    return tmp_path / "ready"


def test_after_ctrl_c_a_real_service_is_sent_a_conversation_that_it_accepts(tmp_path: Path, ready: Path) -> None:
    with (
        service("echo begun; touch ready; sleep 60") as server,
        Terminal(
            "code", "--plain", "--model", "m", "--base-url", f"{server.url}/v1", "--yolo", cwd=tmp_path
        ) as terminal,
    ):
        terminal.expect("> ")
        terminal.enter("wait")
        terminal.expect("● bash")
        while not ready.exists():
            pass
        terminal.press("\x03")
        terminal.expect("the run ended: aborted")
        terminal.expect("> ")
        terminal.enter("go on")
        terminal.expect("Going on.")
        terminal.expect("> ")
        terminal.press("\x04")
        assert terminal.end() == OK
        messages = server.requests[-1].json["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "user"]
    assert messages[3]["tool_call_id"] == messages[2]["tool_calls"][0]["id"]
    assert "Traceback" not in terminal.text


def test_approvals_on_a_terminal(tmp_path: Path) -> None:
    write = {"name": "write_file", "arguments": {"path": "a.txt", "content": "hello\n"}}
    steps = [{"text": "Two things.", "tool_calls": [LIST, write]}, "Done."]
    with Terminal("code", "--plain", "--model", script(tmp_path, steps), cwd=tmp_path) as terminal:
        terminal.expect("> ")
        terminal.enter("go")
        assert "command: echo listed" in terminal.expect("why not: ")
        terminal.enter("y")
        assert "content:" in terminal.expect("why not: ")
        terminal.enter("use another name")
        assert "the user denied it: use another name" in terminal.expect("Done.")
        terminal.expect("> ")
        terminal.enter("/decisions")
        assert "approved  bash" in terminal.expect("> ")
        terminal.enter("/exit")
        assert terminal.end() == OK
    assert not (tmp_path / "a.txt").exists()


def test_what_was_typed_before_a_question_does_not_answer_it(tmp_path: Path) -> None:
    """A line typed ahead, or pasted with the task, consents to a call that nobody has seen."""
    call = {"name": "bash", "arguments": {"command": "touch ran"}}
    model = script(tmp_path, [{"tool_calls": [call]}, {"tool_calls": [call]}, "Finished."])
    with Terminal("code", "--plain", "--model", model, cwd=tmp_path) as terminal:
        terminal.expect("> ")
        terminal.enter("go\ny\ny")
        terminal.expect("Run it?")
        terminal.enter("no")
        terminal.expect("Run it?")
        assert not (tmp_path / "ran").exists()
        terminal.enter("y")
        terminal.expect("Finished.")
        assert (tmp_path / "ran").exists()


def test_ctrl_c_at_a_question_cancels_the_turn(tmp_path: Path) -> None:
    with Terminal(
        "code", "--plain", "--model", script(tmp_path, [{"tool_calls": [LIST]}, "Next."]), cwd=tmp_path
    ) as terminal:
        terminal.expect("> ")
        terminal.enter("go")
        terminal.expect("why not: ")
        terminal.press("\x03")
        terminal.expect("the run ended: aborted")
        terminal.expect("> ")
        terminal.enter("again")
        terminal.expect("Next.")
        terminal.expect("> ")
        terminal.press("\x03")
        terminal.expect("press Ctrl-C again")
        terminal.expect("> ")
        terminal.press("\x03")
        assert terminal.end() == INTERRUPTED


def test_sigterm_at_a_question_ends_the_program(tmp_path: Path) -> None:
    with Terminal("code", "--plain", "--model", script(tmp_path, [{"tool_calls": [LIST]}]), cwd=tmp_path) as terminal:
        terminal.expect("> ")
        terminal.enter("go")
        terminal.expect("why not: ")
        os.kill(terminal.pid, signal.SIGTERM)
        assert terminal.end() == -signal.SIGTERM


DEAF = """
import asyncio
from chimera.core import tool
from chimera.plugins import BasePlugin

@tool(effect="read")
async def deaf() -> str:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        print("not yet", flush=True)
        await asyncio.sleep(60)

class Deaf(BasePlugin):
    name = "deaf"
    def register_tools(self, registry):
        registry.register_tool(deaf)
"""


def test_a_second_ctrl_c_ends_a_turn_that_does_not_listen(tmp_path: Path) -> None:
    plugins = tmp_path / ".chimera" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "deaf.py").write_text(DEAF)
    model = script(tmp_path, [{"tool_calls": [{"name": "deaf"}]}, "Next."])
    with Terminal("code", "--plain", "--model", model, "--plugin", "deaf", cwd=tmp_path) as terminal:
        terminal.expect("> ")
        terminal.enter("go")
        terminal.expect("● deaf")
        terminal.press("\x03")
        terminal.expect("not yet")
        terminal.press("\x03")
        terminal.expect("~ interrupted")
        terminal.expect("> ")
        terminal.enter("again")
        terminal.expect("Next.")
        terminal.expect("> ")
        terminal.enter("/exit")
        assert terminal.end() == OK
