"""The registries: names are checked, undo removes only itself, nothing of anyone else's goes."""

from __future__ import annotations

import functools
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.core.interception import Interceptors, merge_interceptors
from chimera.core.tool import tool
from chimera.errors import ConfigError, PluginError
from chimera.hooks import HookRunner
from chimera.plugins import ComponentRegistry, PluginExtensionRegistry, PluginManager, Skill
from chimera.plugins.registry import INTERCEPTOR_SEAMS
from chimera.types import Message, ToolCall
from tests.plugins.support import Recorder, chains, interceptor, plugin_class

register = PluginExtensionRegistry.register_interceptor
unregister = PluginExtensionRegistry.unregister_interceptor


def test_the_seams_are_the_fields_of_interceptors() -> None:
    assert INTERCEPTOR_SEAMS == ("context", "provider_request", "tool_call", "tool_result")


@pytest.mark.parametrize("seam", ["tool_calls", "", "Context", "tool-call", None])
def test_an_unknown_seam_is_refused_everywhere(seam: Any) -> None:
    for call in (
        lambda: register(seam, interceptor),
        lambda: unregister(seam, interceptor),
        lambda: PluginExtensionRegistry.get_interceptors(seam),
    ):
        with pytest.raises(ValueError, match=r"^unknown interceptor seam"):
            call()
    assert not chains()


async def coroutine(_messages: list[Message]) -> None: ...


async def generator(_messages: list[Message]) -> AsyncIterator[None]:
    yield None


class AsyncCallable:
    async def __call__(self, _messages: list[Message]) -> None: ...

    async def method(self, _messages: list[Message]) -> None: ...


@pytest.mark.parametrize(
    "fn",
    [
        coroutine,
        generator,
        AsyncCallable(),
        AsyncCallable().method,
        functools.partial(coroutine),
        functools.partial(functools.partial(generator)),
        functools.partial(AsyncCallable()),
        functools.partial(AsyncCallable().method),
    ],
)
def test_what_would_have_to_be_awaited_is_refused(fn: Any) -> None:
    with pytest.raises(TypeError, match="asynchronous"):
        register("context", fn)
    assert not chains()


@pytest.mark.parametrize("fn", [None, "x", 3, [interceptor], InterruptedError()])
def test_what_cannot_be_called_is_refused(fn: Any) -> None:
    with pytest.raises(TypeError, match="callable"):
        register("tool_call", fn)
    assert not chains()


def test_a_chain_is_in_order_of_registration_and_the_callers_own_list() -> None:
    first, second = Recorder("a"), Recorder("b")
    register("context", first.decide)
    register("context", second.decide)
    chain = PluginExtensionRegistry.get_interceptors("context")
    assert [item.__self__ for item in chain] == [first, second]  # type: ignore[attr-defined]
    chain.clear()
    PluginExtensionRegistry.get_all_interceptors().context.clear()
    assert len(PluginExtensionRegistry.get_interceptors("context")) == 2


def test_all_chains_come_as_one_bundle_that_merges() -> None:
    assert isinstance(PluginExtensionRegistry.get_all_interceptors(), Interceptors)
    assert merge_interceptors(PluginExtensionRegistry.get_all_interceptors()) is None
    register("tool_call", interceptor)
    merged = merge_interceptors(PluginExtensionRegistry.get_all_interceptors(), Interceptors(tool_call=[print]))
    assert merged is not None
    assert merged.tool_call == [interceptor, print]


def test_a_method_is_known_again_though_each_access_makes_a_new_object() -> None:
    plugin = Recorder("a")
    register("tool_call", plugin.decide)
    assert unregister("tool_call", plugin.decide) is True
    assert not chains()
    assert unregister("tool_call", plugin.decide) is False


def test_two_plugins_that_are_equal_are_not_the_same() -> None:
    mine, other = Recorder("a"), Recorder("b")
    assert mine == other
    register("tool_call", mine.decide)
    assert unregister("tool_call", other.decide) is False
    register("tool_call", other.decide)
    assert unregister("tool_call", other.decide) is True
    (left,) = PluginExtensionRegistry.get_interceptors("tool_call")
    assert left.__self__ is mine  # type: ignore[attr-defined]


def test_equal_callables_are_told_apart_and_methods_of_builtins_known() -> None:
    first, second = functools.partial(interceptor), functools.partial(interceptor)
    register("context", first)
    assert unregister("context", second) is False
    assert unregister("context", first) is True
    log: list[Any] = []
    register("context", log.append)
    assert unregister("context", log.extend) is False
    assert unregister("context", log.append) is True


def test_registered_twice_it_stands_twice_and_one_goes_at_a_time() -> None:
    register("context", interceptor)
    register("context", interceptor)
    assert len(chains()["context"]) == 2
    assert unregister("context", interceptor)
    assert len(chains()["context"]) == 1


def test_undo_removes_only_itself_however_often_it_is_called() -> None:
    undo_first = register("context", interceptor)
    register("context", interceptor)
    undo_first()
    undo_first()
    assert chains() == {"context": [interceptor]}


def test_the_program_takes_its_own_registration_back_before_a_plugins() -> None:
    manager = PluginManager()
    manager.load_plugin(plugin_class("p", lambda registry: registry.register_interceptor("context", interceptor))())
    register("context", interceptor)
    assert unregister("context", interceptor)
    manager.unload("p")
    assert not chains()


def test_a_plugin_takes_back_only_what_is_its_own() -> None:
    """Two plugins share a module's function; the one that is unloaded leaves the other's registration alone."""

    def add(_registry: ComponentRegistry) -> None:
        register("context", interceptor)

    def remove(_plugin: Any) -> None:
        while unregister("context", interceptor):
            pass

    register("context", interceptor)
    manager = PluginManager()
    for name in ("a", "b"):
        manager.load_plugin(plugin_class(name, add, deactivate=remove)())
    manager.unload("a")
    assert len(chains()["context"]) == 2
    manager.unload("b")
    assert chains() == {"context": [interceptor]}


def test_many_threads_lose_and_double_nothing() -> None:
    plugins = [Recorder(str(number)) for number in range(64)]
    start = threading.Barrier(8)

    def work(mine: list[Recorder]) -> None:
        start.wait()
        for plugin in mine:
            register("tool_call", plugin.decide)
            undo = register("tool_result", plugin.decide)
            PluginExtensionRegistry.get_all_interceptors()
            undo()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, [plugins[number::8] for number in range(8)]))
    assert sorted(int(item.__self__.name) for item in chains()["tool_call"]) == list(range(64))
    assert "tool_result" not in chains()


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "remove", "undo"]), st.integers(0, 3), st.sampled_from(INTERCEPTOR_SEAMS))
    )
)
def test_any_sequence_leaves_what_a_list_would_hold(steps: list[tuple[str, int, str]]) -> None:
    PluginExtensionRegistry._reset()
    plugins = [Recorder(str(number)) for number in range(4)]
    model: list[tuple[str, int, object]] = []
    undos: list[Any] = []
    for kind, number, seam in steps:
        if kind == "add":
            token = object()
            model.append((seam, number, token))
            undos.append((token, register(seam, plugins[number].decide)))
        elif kind == "remove":
            there = [item for item in model if item[:2] == (seam, number)]
            assert unregister(seam, plugins[number].decide) is bool(there)
            if there:
                model.remove(there[-1])
        elif undos:
            token, undo = undos[number % len(undos)]
            undo()
            model = [item for item in model if item[2] is not token]
    for seam in INTERCEPTOR_SEAMS:
        found = [int(item.__self__.name) for item in chains().get(seam, [])]
        assert found == [number for home, number, _ in model if home == seam]


@tool
def greet(name: str) -> str:
    """Greet somebody."""
    return f"hello {name}"


def test_components_of_every_kind() -> None:
    registry = ComponentRegistry()
    skill = Skill("review", "how to review", "Read it twice.")
    registry.register_tool(greet)
    registry.register_loop("mine", dict)
    registry.register_provider("local", dict)
    registry.register_skill(skill)
    registry.register_command("hi", str.upper, "greets")
    registry.register_hook("PreToolUse", "true", matcher="Bash", timeout=5)
    registry.register_hook("Stop", "true")
    registry.register_hook("PreToolUse", "false")
    registry.register_interceptor("context", interceptor)
    assert registry.tools == [greet]
    assert registry.skills == [skill]
    assert registry.loops == {"mine": dict}
    assert registry.providers == {"local": dict}
    assert (registry.commands["hi"].handler, registry.commands["hi"].help) == (str.upper, "greets")
    assert {event: [hook.command for hook in hooks] for event, hooks in registry.hooks.items()} == {
        "PreToolUse": ["true", "false"],
        "Stop": ["true"],
    }
    first, second = registry.hooks["PreToolUse"]
    assert (first.timeout, first.matches("bash"), first.matches("read_file")) == (5, True, False)
    assert second.matches("read_file")
    assert chains() == {"context": [interceptor]}


def test_loops_are_there_for_every_agent_of_the_process_and_go_with_their_plugin() -> None:
    manager = PluginManager()
    manager.load_plugin(plugin_class("p", lambda registry: registry.register_loop("mine", dict))())
    assert PluginExtensionRegistry.get_loops() == {"mine": dict}
    assert not chains()
    manager.unload("p")
    assert PluginExtensionRegistry.get_loops() == {}
    ComponentRegistry().register_loop("own", list)()
    assert PluginExtensionRegistry.get_loops() == {}


def test_the_hooks_of_a_plugin_are_what_a_runner_takes(tmp_path: Path) -> None:
    registry = ComponentRegistry()
    undo = registry.register_hook("PreToolUse", "echo no >&2; exit 2", matcher="Bash")
    verdict = HookRunner(registry.hooks, cwd=tmp_path).pre_tool_use(ToolCall("1", "bash", {"command": "ls"}))
    assert (verdict.decision, "no" in verdict.reason) == ("deny", True)
    undo()
    assert registry.hooks == {}


def test_a_bundle_is_registered_and_taken_back_as_one() -> None:
    registry = ComponentRegistry()
    undo = registry.register_interceptors(Interceptors(context=[interceptor], tool_result=[interceptor, print]))
    assert chains() == {"context": [interceptor], "tool_result": [interceptor, print]}
    undo()
    assert not chains()


def test_undo_of_a_component_removes_only_itself() -> None:
    registry = ComponentRegistry()
    undo = registry.register_loop("a", dict)
    registry.register_loop("b", dict)
    undo()
    undo()
    assert registry.loops == {"b": dict}
    registry.register_loop("a", list)
    undo()
    assert registry.loops == {"b": dict, "a": list}


@pytest.mark.parametrize(
    "register_it",
    [
        lambda registry: registry.register_tool(greet),
        lambda registry: registry.register_loop("x", dict),
        lambda registry: registry.register_provider("x", dict),
        lambda registry: registry.register_skill(Skill("x")),
        lambda registry: registry.register_command("x", str),
    ],
)
def test_a_collision_names_both_owners_and_records_nothing(register_it: Any) -> None:
    manager = PluginManager()
    manager.load_plugin(plugin_class("first", register_it)())
    with pytest.raises(PluginError, match=r"plugin 'first' and the program itself both register"):
        register_it(manager.components)
    with pytest.raises(PluginError, match=r"plugin 'first' and plugin 'second' both register"):
        manager.load_plugin(plugin_class("second", register_it)())
    manager.unload("first")
    register_it(manager.components)


@pytest.mark.parametrize(
    ("register_it", "text"),
    [
        (lambda registry: registry.register_tool(type(greet)), "not its class"),
        (lambda registry: registry.register_tool(object()), "has no description"),
        (lambda registry: registry.register_loop("x", "not callable"), "must be callable"),
        (lambda registry: registry.register_command("x", None), "must be callable"),
        (lambda registry: registry.register_loop("", dict), "needs a name"),
        (lambda registry: registry.register_provider(None, dict), "needs a name"),
        (lambda registry: registry.register_skill(Skill("  ")), "needs a name"),
        (lambda registry: registry.register_skill("text"), "needs a name"),
        (lambda registry: registry.register_hook("PreTool", "true"), "PreToolUse"),
        (lambda registry: registry.register_hook("Stop", ""), "command"),
        (lambda registry: registry.register_hook("PreToolUse", "true", matcher="("), "matcher"),
        (lambda registry: registry.register_hook("Stop", "true", timeout=-1), "timeout"),
    ],
)
def test_what_cannot_be_used_is_refused_before_it_is_recorded(register_it: Any, text: str) -> None:
    registry = ComponentRegistry()
    with pytest.raises((PluginError, ConfigError), match=text):
        register_it(registry)
    assert registry.hooks == {}
    assert (registry.tools, registry.loops, registry.skills, registry.commands) == ([], {}, [], {})
