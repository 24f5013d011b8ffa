"""`chimera plugins list` and `chimera plugins show`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chimera.assembly.settings import load_settings
from chimera.cli.exits import OK
from chimera.cli.screen import make_console
from chimera.cli.setup import load_plugins, plugin_folders, project_folder, unload_plugins
from chimera.text import clean, one_line

if TYPE_CHECKING:
    from chimera.plugins import PluginManager
    from chimera.plugins.sources import Source

__all__ = ["list_plugins", "show_plugin"]

_PARTS = ("tools", "loops", "providers", "skills", "commands")


def list_plugins(project: Path) -> int:
    """Print every plugin that can be loaded, without importing any."""
    from rich.table import Table
    from rich.text import Text

    from chimera.plugins.sources import find_sources

    project = project_folder(project)
    settings = load_settings(project)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("name", "configured", "from"):
        table.add_column(heading, overflow="fold")
    for name, sources in sorted(find_sources(plugin_folders(project)).items()):
        configured = "yes" if name in settings.plugins else "no"
        table.add_row(*(Text(clean(cell)) for cell in (name, configured, "; ".join(map(_origin, sources)))))
    make_console().print(table)
    return OK


def show_plugin(name: str, project: Path) -> int:
    """Print what a plugin is and brings, with the options that the settings give it. Loads it for that."""
    from chimera.plugins import PluginManager
    from chimera.plugins.sources import find_sources

    console = make_console()
    project = project_folder(project)
    settings = load_settings(project)
    manager = PluginManager(plugin_folders(project))
    load_plugins(manager, {name: settings.plugins.get(name, {})}, settings)
    try:
        source = find_sources(plugin_folders(project))[name][0]
        plugin = next(iter(manager.plugins.values()))
        console.print(clean(name), style="bold")
        console.print(clean(_paragraphs(inspect.getdoc(type(plugin)) or "It says nothing about itself.")))
        for heading, lines in _facts(source, plugin, manager, settings.sources.get(f"plugins.{name}", ())):
            console.print()
            console.print(heading, style="bold")
            for line in lines:
                console.print(f"  {clean(line)}", soft_wrap=True)
    finally:
        unload_plugins(manager)
    return OK


def _facts(
    source: Source, plugin: Any, manager: PluginManager, configured: tuple[str, ...]
) -> Iterator[tuple[str, list[str]]]:
    yield "from", [_origin(source)]
    yield "options", list(_options(type(plugin))) or ["none"]
    yield "seams", list(_seams()) or ["none"]
    for part in _PARTS:
        names = [getattr(item, "name", item) for item in getattr(manager.components, part)]
        if names:
            yield part, [str(name) for name in names]
    yield "configured in", list(configured) or ["no file: load it with --plugin, or name it in .chimera/config.toml"]


def _paragraphs(text: str) -> str:
    """Return `text` with one line a paragraph, for the console to wrap."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _options(kind: type) -> Iterator[str]:
    for parameter in inspect.signature(kind).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        default = "required" if parameter.default is parameter.empty else f"= {one_line(repr(parameter.default))}"
        yield f"{parameter.name} {default}"


def _seams() -> Iterator[str]:
    from chimera.core.decisions import interceptor_name
    from chimera.plugins import INTERCEPTOR_SEAMS, PluginExtensionRegistry

    for seam in INTERCEPTOR_SEAMS:
        for fn in PluginExtensionRegistry.get_interceptors(seam):
            yield f"{seam:<17} {interceptor_name(fn)}"


def _origin(source: Source) -> str:
    point = getattr(source, "point", None)
    if point is None:
        return source.place.removeprefix("the file ")
    return f"{point.dist.name} {point.dist.version} ({point.value})" if point.dist else str(point.value)
