"""plan-gate: what is gated, what opens it, what closes it again, and whose gate it is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from chimera.plugins import PluginManager
from chimera.plugins.packs import PlanGatePlugin
from chimera.plugins.packs import plan_gate as module
from chimera.types import Message
from tests.plugins.packs.support import Seams
from tests.plugins.support import chains

GATED = ("write_file", "edit_file", "replace_in_file", "apply_patch", "bash")
SYSTEM = Message.system("s")


def turn(text: str = "do it") -> list[Message]:
    return [SYSTEM, Message.user(text)]


@pytest.mark.parametrize("plan", ["think", "todo"])
def test_writing_and_commands_wait_for_a_plan(plan: str) -> None:
    seams = Seams(PlanGatePlugin().interceptors())
    seams.context(turn())
    for tool in GATED:
        reason = seams.blocked(tool, path="x")
        assert reason is not None
        assert f"Call think or todo with your plan first, then call {tool} again" in reason
    for tool in ("read_file", "list_files", "search", "bash2", "Bash", "mcp__bash"):
        assert seams.blocked(tool) is None
    assert seams.blocked(plan) is None
    assert [seams.blocked(tool) for tool in GATED] == [None] * 5


def test_the_gate_is_closed_before_the_first_provider_call() -> None:
    seams = Seams(PlanGatePlugin().interceptors())
    assert seams.blocked("bash")
    seams.blocked("todo")
    assert seams.blocked("bash") is None


def test_every_new_user_message_closes_it_and_other_messages_do_not() -> None:
    seams, history = Seams(PlanGatePlugin().interceptors()), turn()
    seams.context(history)
    seams.blocked("think")
    for _ in range(3):
        history = [*history, Message.assistant("a"), Message.tool("1", "t")]
        seams.context(history)
        assert seams.blocked("bash") is None
    history = [*history, Message.user("and now that")]
    seams.context(history)
    assert seams.blocked("bash")
    seams.blocked("think")
    assert seams.blocked("bash") is None


def test_a_compaction_neither_opens_nor_closes_it() -> None:
    for opened in (True, False):
        seams = Seams(PlanGatePlugin().interceptors())
        history = [*turn(), *(Message.assistant(str(n)) for n in range(20))]
        seams.context(history)
        if opened:
            seams.blocked("think")
        seams.context([SYSTEM, Message.user("summary"), *history[-3:]])
        assert (seams.blocked("bash") is None) is opened


def test_names_match_exactly_and_are_configured() -> None:
    seams = Seams(PlanGatePlugin(gated_tools=["deploy"], plan_tools=iter(["plan", "plan"])).interceptors())
    assert seams.blocked("bash") is None
    assert seams.blocked("deploys") is None
    reason = seams.blocked("deploy")
    assert reason is not None
    assert "Call plan with your plan" in reason
    seams.blocked("think")
    assert seams.blocked("deploy")
    seams.blocked("plan")
    assert seams.blocked("deploy") is None


def test_each_conversation_has_its_own_gate() -> None:
    bundle = PlanGatePlugin().interceptors()
    first, second = Seams(bundle, "first"), Seams(bundle, "second")
    first.context(turn())
    second.context(turn())
    first.blocked("think")
    assert first.blocked("bash") is None
    assert second.blocked("bash")
    second.context([*turn(), Message.user("more")])
    assert first.blocked("bash") is None


def test_the_process_scope_is_one_gate_for_all() -> None:
    bundle = PlanGatePlugin(scope="process").interceptors()
    first, second = Seams(bundle, "first"), Seams(bundle, "second")
    history = turn()
    first.context(history)
    second.context(turn())
    first.blocked("think")
    assert second.blocked("bash") is None
    second.context([*turn(), Message.assistant("a"), Message.user("more")])
    assert first.blocked("bash"), "a new message anywhere closes it everywhere"
    second.blocked("think")
    first.context([*history, Message.assistant("a")])
    assert first.blocked("bash") is None


def test_two_gates_know_nothing_of_each_other() -> None:
    first, second = (Seams(PlanGatePlugin(scope="process").interceptors()) for _ in range(2))
    first.blocked("think")
    assert second.blocked("bash")


def test_outside_a_run_there_is_one_gate() -> None:
    bundle = PlanGatePlugin().interceptors()
    (watch,), (gate,) = bundle.context, bundle.tool_call
    from chimera.types import ToolCall

    watch(turn())
    assert gate(ToolCall("1", "bash")) is not None
    assert gate(ToolCall("1", "todo")) is None
    assert gate(ToolCall("1", "bash")) is None


def test_of_very_many_conversations_the_silent_ones_are_forgotten_and_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CONVERSATIONS", 10)
    plugin = PlanGatePlugin()
    bundle = plugin.interceptors()
    seams = [Seams(bundle, str(number)) for number in range(30)]
    for one in seams:
        one.context(turn())
        one.blocked("think")
        seams[0].context(turn())
        seams[0].blocked("think")
    assert [one.blocked("bash") is None for one in seams] == [True] + [False] * 20 + [True] * 9
    assert len(vars(plugin)["_turns"]) == 10
    assert len(vars(plugin)["_open"]) == 10


def test_many_threads_in_many_conversations() -> None:
    bundle = PlanGatePlugin().interceptors()

    def work(number: int) -> list[bool]:
        seams, history, seen = Seams(bundle, str(number)), turn(), []
        for _ in range(30):
            seams.context(history)
            seen.append(seams.blocked("bash") is not None)
            seams.blocked("think")
            seen.append(seams.blocked("bash") is None)
            history = [*history, Message.assistant("a"), Message.user("next")]
        return seen

    with ThreadPoolExecutor(8) as pool:
        assert all(all(seen) for seen in pool.map(work, range(16)))


def test_as_a_plugin_it_puts_the_same_chains_in_force() -> None:
    plugin = PlanGatePlugin()
    PluginManager().load_plugin(plugin)
    bundle = plugin.interceptors()
    assert chains() == {"context": bundle.context, "tool_call": bundle.tool_call}
