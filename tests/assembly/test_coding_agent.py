"""What an assembled agent is made of, and who answers what its policy asks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from chimera.assembly import CodingAgent
from chimera.assembly.presets import PRESETS
from chimera.core import tool
from chimera.core.context import Context
from chimera.hooks import HookRunner
from chimera.permissions import PermissionAction, RuleSet
from chimera.plugins import BasePlugin, PluginManager
from chimera.providers.faux import FauxProvider
from chimera.types import Message

WRITE: list[Any] = [{"tool_calls": [{"name": "write_file", "arguments": {"path": "new.txt", "content": "hi"}}]}, "done"]


def names(agent: CodingAgent) -> list[str]:
    return [item.name for item in agent.tools]


def test_presets_have_the_tools_they_promise(tmp_path: Path) -> None:
    made = {name: names(CodingAgent(preset=name, project_dir=tmp_path, provider=FauxProvider())) for name in PRESETS}
    assert sorted(made["minimal"]) == ["bash", "edit_file", "read_file", "write_file"]
    assert set(made["minimal"]) < set(made["coding_agent"])
    assert {"bash", "write_file", "edit_file", "replace_in_file", "apply_patch"}.isdisjoint(made["explore"])
    assert "read_file" in made["explore"]
    assert "delegate" not in made["coding_agent"]


def test_the_prompt_names_the_folder_and_holds_the_projects_instructions(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs.", encoding="utf-8")
    provider = FauxProvider("ok")
    asyncio.run(CodingAgent(project_dir=tmp_path, provider=provider).run("go"))
    system = provider.requests[0].messages[0]
    assert system.role == "system"
    assert str(tmp_path) in system.content
    assert "Use tabs." in system.content


def test_extra_tools_and_plugin_tools_join(tmp_path: Path) -> None:
    @tool
    def mine(x: int) -> str:
        """Mine."""
        return str(x)

    class Bringer(BasePlugin):
        name = "bringer"

        def register_tools(self, registry: Any) -> None:
            @tool
            def brought(x: int) -> str:
                """Brought."""
                return str(x + 1)

            registry.register_tool(brought)

    manager = PluginManager()
    agent = CodingAgent(project_dir=tmp_path, provider=FauxProvider(), extra_tools=[mine], manager=manager)
    assert "mine" in names(agent)
    manager.load_plugin(Bringer())
    assert "brought" in names(agent)
    manager.unload("bringer")
    assert "brought" not in names(agent)


def test_hooks_of_plugins_have_a_say_beside_those_of_the_agent(tmp_path: Path) -> None:
    class Watchful(BasePlugin):
        name = "watchful"

        def register_hooks(self, registry: Any) -> None:
            registry.register_hook("PreToolUse", "echo not today >&2; exit 2", matcher="write_file")

    manager = PluginManager()
    own = HookRunner.from_settings(
        {"PostToolUse": [{"hooks": [{"type": "command", "command": "touch seen"}]}]}, cwd=tmp_path
    )
    manager.load_plugin(Watchful())
    written, answer = run_writing(tmp_path, manager=manager, hooks=own)
    assert (written, answer) == (False, "Blocked by hook: not today")
    manager.unload("watchful")
    assert run_writing(tmp_path, manager=manager, hooks=own)[0]
    assert (tmp_path / "seen").exists()


def test_an_agent_keeps_nothing_between_runs_unless_it_is_given_a_context(tmp_path: Path) -> None:
    provider = FauxProvider(["a", "b", "c"])
    agent = CodingAgent(provider=provider, tools_override=[])
    asyncio.run(agent.run("one"))
    asyncio.run(agent.run("two"))
    assert [len(request.messages) for request in provider.requests] == [2, 2]
    context = Context(messages=[Message.user("x"), Message.assistant("y")])
    asyncio.run(agent.run("three", context=context))
    assert [message.content for message in context.messages] == ["x", "y", "three", "c"]


def run_writing(tmp_path: Path, **kwargs: Any) -> tuple[bool, str]:
    agent = CodingAgent(project_dir=tmp_path, provider=FauxProvider(WRITE), **kwargs)
    result = asyncio.run(agent.run("write"))
    answer = next(message.content for message in result.messages if message.role == "tool")
    return (tmp_path / "new.txt").exists(), answer


def test_without_a_callback_tools_run_unasked(tmp_path: Path) -> None:
    assert run_writing(tmp_path)[0]


def test_a_callback_is_asked_before_writes(tmp_path: Path) -> None:
    asked = []

    def refuse(approval: Any) -> bool:
        asked.append(approval.tool_name)
        return False

    written, answer = run_writing(tmp_path, permission_callback=refuse)
    assert (written, asked) == (False, ["write_file"])
    assert answer == "Permission denied: the user denied it"


@pytest.mark.parametrize("kind", ["sync", "async", "deciding"])
def test_a_callback_may_approve_in_every_way_it_can_be_written(tmp_path: Path, kind: str) -> None:
    async def later(approval: Any) -> bool:
        await asyncio.sleep(0)
        return True

    callbacks = {"sync": lambda approval: True, "async": later, "deciding": lambda approval: approval.approve()}
    assert run_writing(tmp_path, permission_callback=callbacks[kind])[0]


@pytest.mark.parametrize("answer", [None, "yes", 1, object()], ids=["None", "text", "number", "object"])
def test_a_callback_that_does_not_decide_denies(tmp_path: Path, answer: Any) -> None:
    written, text = run_writing(tmp_path, permission_callback=lambda approval: answer)
    assert not written
    assert "did not decide" in text


def test_a_callback_that_raises_denies_and_the_text_says_that_it_failed(tmp_path: Path) -> None:
    def broken(approval: Any) -> bool:
        raise ValueError("token-abcdef12345")

    written, text = run_writing(tmp_path, permission_callback=broken)
    assert not written
    assert "asking failed: ValueError" in text
    assert "token-abcdef12345" not in text


def test_deny_rules_hold_without_a_callback_and_ask_rules_deny_saying_why(tmp_path: Path) -> None:
    deny = RuleSet(deny=["Edit"], default=PermissionAction.ALLOW)
    assert not run_writing(tmp_path, permissions=deny)[0]
    ask = RuleSet(ask=["Edit"], default=PermissionAction.ALLOW)
    written, text = run_writing(tmp_path, permissions=ask)
    assert not written
    assert "nobody is there to be asked" in text
    assert run_writing(tmp_path, permissions=RuleSet(allow=["Edit"], default=PermissionAction.ASK))[0]
