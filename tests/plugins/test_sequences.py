"""Whatever is loaded, swapped, unloaded and refused, in whatever order: what stands in the end is what a fresh start
with the same plugins would build."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chimera.errors import PluginError
from chimera.plugins import INTERCEPTOR_SEAMS, PluginExtensionRegistry, PluginManager
from chimera.plugins.inventory import inventory

PLUGIN = """\
from chimera.core import tool
from chimera.plugins import BasePlugin, PluginExtensionRegistry, Skill

class Plugin(BasePlugin):
    name = {name!r}

    def register_tools(self, registry):
        @tool(name={tool!r}, effect="read")
        def run() -> str:
            "A tool."
            return {answer!r}
        registry.register_tool(run)
        registry.register_skill(Skill({name!r} + "-skill", {answer!r}))

    def register_interceptors(self, registry):
        for seam in {seams!r}:
            PluginExtensionRegistry.register_interceptor(seam, self.decide)
        {activating}

    def decide(self, *args):
        return {answer!r}

    def deactivate(self):
        PluginExtensionRegistry.unregister_interceptor("tool_call", self.decide)
        {deactivating}

    def self_check(self):
        return {checking}
"""
PLUGINS = range(5)


@dataclass(frozen=True)
class Text:
    """What one version says; the faults are what keeps it out, or keeps it from going."""

    seams: tuple[str, ...]
    tool: int
    fault: str

    def source(self, number: int, answer: str) -> str:
        if self.fault == "syntax":
            return "def broken(:\n"
        return PLUGIN.format(
            name=f"p{number}",
            tool=f"tool-{number}" if self.tool == number else f"shared-{self.tool}",
            seams=self.seams,
            answer=answer,
            activating="1 / 0" if self.fault == "activation" else "pass",
            deactivating="1 / 0" if self.fault == "deactivation" else "pass",
            checking=self.fault != "self-check",
        )


TEXTS = st.builds(
    Text,
    st.lists(st.sampled_from(INTERCEPTOR_SEAMS), max_size=5).map(tuple),
    st.integers(0, 4),
    st.sampled_from(["", "", "", "", "syntax", "activation", "self-check", "deactivation"]),
)
STEPS = st.lists(st.tuples(st.sampled_from(["load", "reload", "reload", "unload"]), st.sampled_from(PLUGINS), TEXTS))
BREAKS = {"syntax", "activation", "self-check"}


@settings(max_examples=60)
@given(STEPS)
def test_any_sequence_leaves_what_a_fresh_start_builds(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, Text]]
) -> None:
    PluginExtensionRegistry._reset()
    folder = tmp_path_factory.mktemp("plugins")
    manager = PluginManager([folder])
    in_force: dict[int, tuple[Text, str]] = {}
    for count, (kind, number, text) in enumerate(steps):
        source = text.source(number, f"answer {count}")
        (folder / f"p{number}.py").write_text(source)
        before, known = standing(manager), in_force.get(number)
        try:
            getattr(manager, kind)(f"p{number}")
        except (PluginError, KeyError):
            assert not certain(kind, number, text, known)
            if kind == "unload":  # it is unloaded all the same
                in_force.pop(number, None)
            else:
                assert standing(manager) == before, "a refusal changes nothing"
            continue
        assert kind == "unload" or text.fault not in BREAKS
        if kind == "unload":
            del in_force[number]
        else:
            in_force[number] = (text, source)
    assert standing(manager) == fresh_start(tmp_path_factory.mktemp("fresh"), in_force)


def certain(kind: str, number: int, text: Text, known: tuple[Text, str] | None) -> bool:
    """Tell whether a step must work out: nothing is broken, and nobody else can have taken the plugin's tool."""
    sound = text.fault not in BREAKS and text.tool == number
    if kind == "load":
        return known is None and sound
    return known is not None and known[0].fault != "deactivation" and (sound or kind == "unload")


def standing(manager: PluginManager) -> list[tuple[Any, ...]]:
    """Return everything that is registered, in order, with what it says."""
    return [(item.kind, item.label, item.plugin, says(item.value)) for item in inventory(manager)]


def says(value: Any) -> Any:
    if callable(value):
        return value()
    return value.description if hasattr(value, "content") else getattr(value, "name", None)


def fresh_start(folder: Path, in_force: dict[int, tuple[Text, str]]) -> list[tuple[Any, ...]]:
    PluginExtensionRegistry._reset()
    manager = PluginManager([folder])
    for number, (_, source) in in_force.items():
        (folder / f"p{number}.py").write_text(source)
        manager.load(f"p{number}")
    return standing(manager)
