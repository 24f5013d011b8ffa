"""delegate-spawner: which calls become which calls."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.plugins import PluginManager
from chimera.plugins.packs import DelegateSpawnerPlugin
from tests.plugins.packs.support import Seams
from tests.plugins.support import chains

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    max_leaves=8,
)


def rewritten(name: str, arguments: dict[str, Any], **options: Any) -> tuple[str, dict[str, Any]]:
    seams = Seams(DelegateSpawnerPlugin(**options).interceptors())
    call, blocked = seams.call(name, **arguments)
    assert blocked is None
    assert call.id == "call-1"
    return call.name, dict(call.arguments)


@pytest.mark.parametrize(
    ("arguments", "task"),
    [
        ({"task": "count"}, "count"),
        ({"prompt": "count"}, "count"),
        ({"task": "count", "prompt": "other", "model": "big"}, "count"),
        ({"task": "", "prompt": "other"}, "other"),
        ({"task": "  ", "prompt": 3}, 'spawn_x: {"task": "  ", "prompt": 3}'),
        ({"task": ["a", {"b": 1}]}, 'spawn_x: {"task": ["a", {"b": 1}]}'),
        ({"path": "é", "n": 1}, 'spawn_x: {"path": "é", "n": 1}'),
        ({}, "spawn_x: {}"),
    ],
)
def test_the_one_argument_is_the_task(arguments: dict[str, Any], task: str) -> None:
    assert rewritten("spawn_x", arguments) == ("delegate", {"task": task})


@given(st.dictionaries(st.text().filter(lambda key: key not in ("task", "prompt")), JSON))
def test_a_task_that_is_rendered_holds_all_arguments(arguments: dict[str, Any]) -> None:
    _, told = DelegateSpawnerPlugin(), rewritten_any("spawn_x", arguments)
    name, _, text = told.partition(": ")
    assert name == "spawn_x"
    assert json.loads(text) == arguments


def rewritten_any(name: str, arguments: dict[str, Any]) -> str:
    from chimera.types import ToolCall

    (rewrite,) = DelegateSpawnerPlugin().interceptors().tool_call
    decision = rewrite(ToolCall("1", name, arguments))
    assert decision is not None
    task: str = decision.value.arguments["task"]
    return task


@pytest.mark.parametrize("name", ["spawn_", "spawn_agent", "spawn_x_y"])
def test_the_prefix_matches(name: str) -> None:
    assert rewritten(name, {"task": "t"})[0] == "delegate"


@pytest.mark.parametrize("name", ["spawn", "Spawn_x", "respawn_x", "bash", "delegate"])
def test_other_names_pass_untouched(name: str) -> None:
    seams = Seams(DelegateSpawnerPlugin().interceptors())
    from chimera.core.interception import intercept_tool_call
    from chimera.types import ToolCall

    call = ToolCall("1", name, {"task": "t"})
    assert intercept_tool_call(seams.bundle.tool_call, call) == (call, None)
    assert intercept_tool_call(seams.bundle.tool_call, call)[0] is call


def test_exact_names_and_another_delegate_tool() -> None:
    options = {"prefix": "", "names": ["helper"], "delegate_tool": "run_agent"}
    assert rewritten("helper", {"task": "t"}, **options) == ("run_agent", {"task": "t"})
    assert rewritten("helpers", {"task": "t"}, **options) == ("helpers", {"task": "t"})
    assert rewritten("spawn_x", {"task": "t"}, **options) == ("spawn_x", {"task": "t"})
    both = {"prefix": "go_", "names": ["helper"]}
    assert rewritten("helper", {"task": "t"}, **both)[0] == rewritten("go_x", {"task": "t"}, **both)[0] == "delegate"


def test_the_delegate_tool_itself_is_never_rewritten() -> None:
    options = {"prefix": "del", "names": ["delegate"]}
    assert rewritten("delegate", {"task": "t", "model": "m"}, **options) == ("delegate", {"task": "t", "model": "m"})
    assert rewritten("delete", {"task": "t"}, **options)[0] == "delegate"


def test_as_a_plugin_it_puts_the_same_chain_in_force() -> None:
    plugin = DelegateSpawnerPlugin()
    PluginManager().load_plugin(plugin)
    assert chains() == {"tool_call": plugin.interceptors().tool_call}
