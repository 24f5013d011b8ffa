"""Loading and unloading: all or nothing, exactly what was brought, and errors that say what to do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chimera.core.tool import tool
from chimera.errors import PluginError
from chimera.plugins import BasePlugin, ComponentRegistry, PluginExtensionRegistry, PluginManager, Skill
from chimera.plugins.packs import DelegateSpawnerPlugin, PlanGatePlugin, RedactorPlugin
from chimera.plugins.registry import INTERCEPTOR_SEAMS
from tests.plugins.support import Recorder, chains, interceptor, plugin_class

register = PluginExtensionRegistry.register_interceptor
PACKS: dict[str, type[BasePlugin]] = {
    "plan-gate": PlanGatePlugin,
    "redactor": RedactorPlugin,
    "delegate-spawner": DelegateSpawnerPlugin,
}


@tool
def greet(name: str) -> str:
    """Greet somebody."""
    return f"hello {name}"


def bring_everything(registry: ComponentRegistry) -> None:
    registry.register_tool(greet)
    registry.register_loop("loop", dict)
    registry.register_provider("provider", dict)
    registry.register_skill(Skill("skill"))
    registry.register_command("command", str)
    registry.register_hook("Stop", "true")
    for seam in INTERCEPTOR_SEAMS:
        register(seam, interceptor)


def everything(manager: PluginManager) -> list[Any]:
    parts = manager.components
    found = [parts.tools, parts.loops, parts.providers, parts.skills, parts.commands, parts.hooks, chains()]
    return [part for part in found if part]


def test_the_packs_are_discovered_and_loaded_by_name_with_options() -> None:
    manager = PluginManager()
    assert set(PACKS) <= set(manager.discover())
    for name, kind in PACKS.items():
        assert type(manager.load(name)) is kind
    assert list(manager.plugins) == list(PACKS)
    assert {type(item.__self__) for chain in chains().values() for item in chain} == set(PACKS.values())
    manager.unload("redactor")
    manager.load("redactor", pattern="acme-[0-9]+", replacement="***")


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("plan-gate", {"scope": 3}, "refuses its options (scope): scope is 'conversation' or 'process', not 3"),
        ("redactor", {"pattern": "("}, "refuses its options (pattern): missing ), unterminated subpattern"),
        ("redactor", {"pattern": 3}, "refuses its options (pattern): "),
    ],
)
def test_a_wrong_value_of_an_option_is_told_without_a_place_in_the_pack(
    name: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(PluginError) as caught:
        PluginManager().load(name, **options)
    assert said in str(caught.value)
    assert ".py" not in str(caught.value)


def test_loading_all_loads_what_is_not_loaded_yet() -> None:
    manager = PluginManager()
    manager.load("redactor", pattern="mine")
    assert sorted(manager.load_all()) == ["delegate-spawner", "plan-gate"]
    assert manager.load_all() == []
    assert set(manager.plugins) == set(PACKS)


def test_what_a_plugin_brings_is_there_and_goes_with_it() -> None:
    manager = PluginManager()
    plugin = plugin_class("full", bring_everything)()
    assert manager.load_plugin(plugin) is plugin
    assert manager.plugins == {"full": plugin}
    assert manager.tools == [greet]
    assert [skill.name for skill in manager.get_all_skills()] == ["skill"]
    assert len(everything(manager)) == 7
    manager.unload("full")
    assert everything(manager) == []
    assert manager.plugins == {}


class Interrupt(BaseException):
    pass


@pytest.mark.parametrize("error", [RuntimeError("boom"), PluginError("boom"), TypeError("boom")])
def test_a_plugin_whose_activation_raises_leaves_nothing_behind(error: Exception) -> None:
    def activate(registry: ComponentRegistry) -> None:
        bring_everything(registry)
        raise error

    manager = PluginManager()
    register("context", print)
    with pytest.raises(PluginError, match=r"plugin 'broken' was not loaded.*boom"):
        manager.load_plugin(plugin_class("broken", activate)())
    assert everything(manager) == [{"context": [print]}]
    assert manager.plugins == {}
    manager.load_plugin(plugin_class("broken", bring_everything)())


def test_an_interrupt_during_activation_comes_through_and_leaves_nothing() -> None:
    def activate(registry: ComponentRegistry) -> None:
        bring_everything(registry)
        raise Interrupt

    manager = PluginManager()
    with pytest.raises(Interrupt):
        manager.load_plugin(plugin_class("broken", activate)())
    assert everything(manager) == []
    assert manager.plugins == {}


def test_the_error_says_where_in_the_plugin_it_happened(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(
        "from chimera.plugins import BasePlugin\n"
        "class Bad(BasePlugin):\n"
        "    name = 'bad'\n"
        "    def activate(self, registry):\n"
        "        registry.register_loop('x', {}['missing'])\n"
    )
    with pytest.raises(PluginError, match=rf"{tmp_path}/bad.py, line 5: KeyError: 'missing'"):
        PluginManager([tmp_path]).load("bad")


def test_an_async_interceptor_keeps_the_plugin_out() -> None:
    async def gate(_call: Any) -> None: ...

    def activate(registry: ComponentRegistry) -> None:
        bring_everything(registry)
        register("tool_call", gate)  # type: ignore[arg-type]

    manager = PluginManager()
    with pytest.raises(PluginError, match="asynchronous"):
        manager.load_plugin(plugin_class("async", activate)())
    assert everything(manager) == []


def test_nobody_sees_a_plugin_before_its_activation_is_over() -> None:
    half_way, go_on, seen = threading.Event(), threading.Event(), []

    def activate(registry: ComponentRegistry) -> None:
        bring_everything(registry)
        seen.append(len(PluginExtensionRegistry.get_interceptors("context")))
        half_way.set()
        assert go_on.wait(10)

    manager = PluginManager()
    thread = threading.Thread(target=manager.load_plugin, args=[plugin_class("slow", activate)()])
    thread.start()
    assert half_way.wait(10)
    outside = everything(manager)
    go_on.set()
    thread.join()
    assert (outside, seen) == ([], [1])
    assert len(everything(manager)) == 7


def test_every_read_sees_all_chains_of_a_plugin_or_none() -> None:
    manager, stop, mixed = PluginManager(), threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            bundle = PluginExtensionRegistry.get_all_interceptors()
            lengths = {len(getattr(bundle, seam)) for seam in INTERCEPTOR_SEAMS}
            if len(lengths) != 1:
                mixed.append(lengths)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        manager.load_plugin(Recorder("a", *INTERCEPTOR_SEAMS))
        manager.unload("a")
    stop.set()
    for thread in threads:
        thread.join()
    assert mixed == []
    assert not chains()


def test_the_chains_are_in_load_order_and_in_order_within_a_plugin() -> None:
    manager = PluginManager()
    for name in ("b", "a", "c"):
        manager.load_plugin(Recorder(name, "tool_call", "context", "tool_call"))
    assert [item.__self__.name for item in chains()["tool_call"]] == ["b", "b", "a", "a", "c", "c"]
    manager.unload("a")
    manager.load_plugin(Recorder("a", "context"))
    assert [item.__self__.name for item in chains()["context"]] == ["b", "c", "a"]


def test_unloading_withdraws_what_deactivate_forgets() -> None:
    manager = PluginManager()
    manager.load_plugin(Recorder("keep", "tool_call"))
    manager.load_plugin(Recorder("go", "tool_call", "context"))
    manager.unload("go")
    assert [item.__self__.name for item in chains()["tool_call"]] == ["keep"]
    assert "context" not in chains()


def test_unloading_withdraws_everything_though_deactivate_raises() -> None:
    def raising(_plugin: BasePlugin) -> None:
        raise RuntimeError("cannot let go")

    manager = PluginManager()
    manager.load_plugin(plugin_class("stubborn", bring_everything, deactivate=raising)())
    with pytest.raises(PluginError, match=r"'stubborn' is unloaded, but .*cannot let go"):
        manager.unload("stubborn")
    assert everything(manager) == []
    assert manager.plugins == {}


def test_what_deactivate_registers_does_not_stay() -> None:
    manager = PluginManager()
    plugin = plugin_class("odd", bring_everything, deactivate=lambda _plugin: register("context", print))()
    manager.load_plugin(plugin)
    manager.unload("odd")
    assert everything(manager) == []


def test_a_method_that_a_plugin_registers_later_is_its_own() -> None:
    manager = PluginManager()
    plugin = Recorder("late")
    manager.load_plugin(plugin)
    register("tool_result", plugin.decide)
    thread = threading.Thread(target=register, args=["tool_call", plugin.decide])
    thread.start()
    thread.join()
    register("tool_result", Recorder("late").decide)
    manager.unload("late")
    assert [item.__self__ is plugin for chain in chains().values() for item in chain] == [False]


def test_a_plugin_may_take_back_during_activation_what_it_registered() -> None:
    def activate(registry: ComponentRegistry) -> None:
        undo = registry.register_loop("a", dict)
        registry.register_loop("b", dict)
        undo()
        register("context", interceptor)
        assert PluginExtensionRegistry.unregister_interceptor("context", interceptor)

    manager = PluginManager()
    manager.load_plugin(plugin_class("p", activate)())
    assert manager.components.loops == {"b": dict}
    assert not chains()


def test_a_plugin_that_loads_another_one_is_not_its_owner() -> None:
    manager = PluginManager()
    inner = plugin_class("inner", lambda registry: register("tool_call", print))()
    outer = plugin_class("outer", lambda registry: (manager.load_plugin(inner), register("context", interceptor)))()
    manager.load_plugin(outer)
    manager.unload("outer")
    assert chains() == {"tool_call": [print]}
    manager.unload("inner")
    assert not chains()


def test_two_managers_share_the_chains_and_not_the_components() -> None:
    first, second = PluginManager(), PluginManager()
    first.load_plugin(plugin_class("p", bring_everything)())
    second.load_plugin(plugin_class("p", bring_everything)())
    assert len(chains()["context"]) == 2
    first.unload("p")
    assert chains()["context"] == [interceptor]
    assert (first.tools, second.tools) == ([], [greet])


def test_a_name_that_is_loaded_already_is_refused_and_both_are_named() -> None:
    manager = PluginManager()
    manager.load("redactor")
    with pytest.raises(PluginError, match=r"'redactor', and RedactorPlugin from the entry point .* is loaded"):
        manager.load("redactor")
    with pytest.raises(PluginError, match=r"module tests.plugins.support brings a plugin 'redactor', and Redactor"):
        manager.load_plugin(Recorder("redactor", "context"))
    assert "context" not in chains()


@pytest.mark.parametrize("act", [PluginManager.unload, PluginManager.reload])
def test_a_name_that_is_not_loaded_is_a_key_error(act: Callable[[PluginManager, str], object]) -> None:
    manager = PluginManager()
    manager.load_plugin(Recorder("there"))
    with pytest.raises(KeyError, match=r"'missing' is not loaded; loaded are: there"):
        act(manager, "missing")


def test_an_unknown_name_is_answered_with_the_nearest_ones() -> None:
    with pytest.raises(PluginError, match=r"no plugin 'plan-gat'; did you mean plan-gate\?"):
        PluginManager().load("plan-gat")
    with pytest.raises(PluginError, match=r"no plugin 'zzz'; there are: .*delegate-spawner, .*plan-gate"):
        PluginManager().load("zzz")


def test_an_unknown_option_is_answered_with_the_nearest_one() -> None:
    manager = PluginManager()
    with pytest.raises(PluginError, match=r"has no option 'scop'; did you mean 'scope'\?"):
        manager.load("plan-gate", scop="process")
    with pytest.raises(PluginError, match=r"has no option 'zzz'; its options are: pattern, replacement, headers"):
        manager.load("redactor", zzz=1)
    with pytest.raises(PluginError, match=r"scope is 'conversation' or 'process', not 'galaxy'"):
        manager.load("plan-gate", scope="galaxy")
    with pytest.raises(PluginError, match="unterminated subpattern"):
        manager.load("redactor", pattern="(")
    assert (manager.plugins, chains()) == ({}, {})


@pytest.mark.parametrize("wrong", [None, "redactor", RedactorPlugin, object()])
def test_only_plugins_can_be_loaded(wrong: Any) -> None:
    with pytest.raises(PluginError, match="load_plugin takes"):
        PluginManager().load_plugin(wrong)


@pytest.mark.parametrize("name", ["", "  ", None, 3])
def test_a_plugin_needs_a_name(name: Any) -> None:
    with pytest.raises(PluginError, match="needs a name"):
        PluginManager().load_plugin(plugin_class(name, bring_everything)())
