from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chimera.assembly.journal import Journal
from chimera.plugins import BasePlugin, ComponentRegistry
from chimera.types import Message
from tests.tui.desk import Desk, Wait, texts_of, typed, wait_for

SIZE = (100, 40)


class Talker(BasePlugin):
    """Says things."""

    name = "talker"

    def register_commands(self, registry: ComponentRegistry) -> None:
        registry.register_command("greet", lambda rest: f"hello {rest}\x1b[2J", help="greets")
        registry.register_command("break", self.broken, help="breaks")

    def broken(self, rest: str) -> str:
        raise RuntimeError(rest)


def shows(desk: Desk, text: str) -> bool:
    return any(text in line for line in texts_of(desk))


async def test_help_lists_commands_and_keys(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "x")
    desk.manager.load_plugin(Talker())
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "/help", "escape", "enter")
        for text in ("/compact ", "/greet        greets", "Ctrl-T         the decision timeline"):
            assert shows(desk, text)
        assert not shows(desk, "/apply")
    desk.close()


async def test_commands_of_plugins_run_and_may_fail(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "x")
    desk.manager.load_plugin(Talker())
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "/greet you", "enter")
        await wait_for(pilot, lambda: shows(desk, "hello you␛[2J"))
        await typed(pilot, "/break it", "enter")
        await wait_for(pilot, lambda: shows(desk, "✗ /break failed: RuntimeError: it"))
    desk.close()


async def test_a_slip_is_mended(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "x")
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "/decision", "escape", "enter")
        await typed(pilot, "/zzzzqq", "enter")
        assert shows(desk, "! there is no command /decision; did you mean /decisions?")
        assert shows(desk, "! there is no command /zzzzqq; /help lists the commands")
    assert desk.provider.requests == []
    desk.close()


async def test_the_model_is_shown_and_changed(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('["From the other one."]')
    desk = Desk(tmp_path, "x")
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "/model", "escape", "enter")
        assert shows(desk, "the model is scripted-1")
        await typed(pilot, f"/model faux:{tmp_path / 'other.json'}", "enter")
        await typed(pilot, "/model faux:/nowhere.json", "enter")
        assert shows(desk, "✗ the script /nowhere.json of the faux model cannot be read")
        await typed(pilot, "go", "enter")
        await wait_for(pilot, lambda: shows(desk, "From the other one."))
        assert desk.agent.model == "faux"
    desk.close()


async def test_cost_plugins_and_theme(tmp_path: Path) -> None:
    desk = Desk(
        tmp_path, [{"text": "Yes.", "usage": {"input_tokens": 2_000, "output_tokens": 10}}], plugins=["plan-gate"]
    )
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, lambda: shows(desk, "Yes."))
        await typed(pilot, "/cost", "escape", "enter")
        assert shows(desk, "1 turn, 2.0k tokens in, 10 out, $0.0201")
        await typed(pilot, "/plugins", "escape", "enter")
        assert shows(desk, "plan-gate  ")
        for name, dark in (("", False), ("light", False), ("dark", True)):
            await typed(pilot, f"/theme {name}".strip(), "escape", "enter")
            assert desk.app.current_theme.dark is dark
    desk.close()


async def test_plugins_are_brought_in_line_with_the_settings(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "x", plugins=["plan-gate"])
    (tmp_path / ".chimera").mkdir()
    (tmp_path / ".chimera" / "config.toml").write_text('[plugins.redactor]\npattern = "acme-[0-9]+"\n')
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "/resync", "enter")
        await wait_for(pilot, lambda: shows(desk, "plugins: added redactor"))
        assert "plan-gate, redactor" in str(desk.app.status.render())
        (tmp_path / ".chimera" / "config.toml").write_text("broken")
        await typed(pilot, "/resync", "enter")
        await wait_for(pilot, lambda: shows(desk, "this is not TOML"))
    desk.close()


async def test_without_plugins_it_says_how_to_load_some(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "x")
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "/plugins", "escape", "enter")
        assert shows(desk, "no plugins; load some with --plugin NAME")
    desk.close()


async def test_a_new_conversation_knows_nothing_of_the_last(tmp_path: Path) -> None:
    desk = Desk(tmp_path, ["One.", "Two."])
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "first", "enter")
        await wait_for(pilot, lambda: shows(desk, "One."))
        await typed(pilot, "/clear", "escape", "enter")
        assert not shows(desk, "One.")
        await typed(pilot, "second", "enter")
        await wait_for(pilot, lambda: shows(desk, "Two."))
        assert [message.content for message in desk.agent.history] == ["second", "Two."]
    desk.close()


async def test_the_conversation_is_shortened_when_it_is_asked_for(tmp_path: Path) -> None:
    desk = Desk(tmp_path, ["One. " * 200, "Two. " * 200, "A summary.", "Three."])
    async with desk.app.run_test(size=SIZE) as pilot:
        for number, text in enumerate(("first", "second"), 1):
            await typed(pilot, text, "enter")
            await wait_for(pilot, lambda number=number: desk.app.state.lane.turns == number)  # type: ignore[misc]
        await typed(pilot, "/compact", "escape", "enter")
        await typed(pilot, "third", "enter")
        await wait_for(pilot, lambda: desk.app.state.lane.turns == 3)
        assert shows(desk, "~ conversation shortened from 5 to")
    desk.close()


@pytest.mark.parametrize("options", [{"compaction": None}, {"loop": "plan-execute"}])
async def test_what_cannot_be_shortened_says_so(tmp_path: Path, options: dict[str, Any]) -> None:
    desk = Desk(tmp_path, "x", agent_options=options)
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "/compact", "escape", "enter")
        assert shows(desk, "! this lane shortens nothing")
    desk.close()


@pytest.mark.parametrize("command", ["/clear", "/model faux", "/resume x"])
async def test_what_needs_rest_waits_for_it(tmp_path: Path, command: str) -> None:
    wait = Wait()
    desk = Desk(tmp_path, [{"tool_calls": [{"name": "wait"}]}, "Done."], agent_options={"extra_tools": [wait]})
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "go", "enter")
        await wait_for(pilot, wait.begun.is_set)
        await typed(pilot, command, "enter")
        assert shows(desk, "while a turn runs: wait for it, or press Esc")
        wait.go_on.set()
        await wait_for(pilot, lambda: shows(desk, "Done."))
    desk.close()


@pytest.mark.parametrize("command", ["/exit", "/quit"])
async def test_leaving(tmp_path: Path, command: str) -> None:
    desk = Desk(tmp_path, "x")
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, command, "escape", "enter")
    assert desk.app.return_value == 0
    desk.close()


@pytest.mark.parametrize("command", ["/diff", "/apply 1"])
async def test_what_is_for_a_race_says_so(tmp_path: Path, command: str) -> None:
    desk = Desk(tmp_path, "x")
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, command, "enter")
        assert shows(desk, "! this is for a race: start one with --models")
    desk.close()


def recorded(folder: Path, project: Path, *texts: str) -> str:
    journal = Journal.create(folder, project=project, model="scripted-1")
    context = journal.context()
    for text in texts:
        context.add(Message.user(text))
        context.add(Message.assistant(f"About {text}."))
    journal.close()
    return journal.id


async def test_an_earlier_conversation_is_gone_on_with(tmp_path: Path) -> None:
    project, folder = tmp_path / "shop", tmp_path / "sessions"
    project.mkdir()
    (tmp_path / "elsewhere").mkdir()
    earlier = recorded(folder, project, "the cart")
    other = recorded(folder, tmp_path / "elsewhere", "the sea")
    journal = Journal.create(folder, project=project, model="scripted-1")
    desk = Desk(project, ["More."], agent_options={"journal": journal})
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "/resume", "escape", "enter")
        assert shows(desk, f"{earlier}  the cart")
        assert not shows(desk, "the sea")
        for wanted, said in ((other, "that session is of the project"), ("nonsense", "there is no session 'nonsense'")):
            await typed(pilot, f"/resume {wanted}", "enter")
            assert shows(desk, f"✗ {said}")
        await typed(pilot, f"/resume {earlier}", "enter")
        assert shows(desk, "● About the cart.")
        await typed(pilot, "go on", "enter")
        await wait_for(pilot, lambda: shows(desk, "● More."))
        assert [message.content for message in desk.provider.requests[-1].messages][1:] == [
            "the cart", "About the cart.", "go on"
        ]  # fmt: skip
    desk.close()
    assert desk.agent.journal is not None
    assert desk.agent.journal.id == earlier
    desk.agent.journal.close()


async def test_without_other_sessions_it_says_so(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "x")
    async with desk.app.run_test(size=SIZE) as pilot:
        await typed(pilot, "/resume", "escape", "enter")
        assert shows(desk, "no other session")
    desk.close()
