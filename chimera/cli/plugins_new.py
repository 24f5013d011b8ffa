"""`chimera plugins new`: a plugin to begin with, and a test that passes."""

from __future__ import annotations

import re
from pathlib import Path

from chimera.cli.exits import OK
from chimera.cli.options import Kind
from chimera.cli.screen import make_console
from chimera.cli.setup import plugin_folders, project_folder
from chimera.cli.skeletons import skeleton
from chimera.errors import ConfigError
from chimera.text import clean

__all__ = ["new_plugin"]

_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")


def new_plugin(name: str, kind: Kind, project: Path) -> int:
    """Write a plugin and its test into the project's plugin folder, and say what to do with them.

    Raises `ConfigError` for a name that is no plain one, or that is taken; nothing is written then.
    """
    from chimera.plugins.sources import find_sources

    if not _NAME.fullmatch(name):
        raise ConfigError(f"a plugin's name is made of small letters, digits and single dashes, not {name!r}")
    project = project_folder(project)
    taken = find_sources(plugin_folders(project)).get(name)
    folder = plugin_folders(project)[-1] / name
    if taken or folder.exists():
        raise ConfigError(f"there is a plugin {name!r} already: {taken[0].place if taken else folder}")
    plugin, test = folder / "__init__.py", folder / f"test_{name.replace('-', '_')}.py"
    folder.mkdir(parents=True)
    for path, source in zip((plugin, test), skeleton(name, kind), strict=True):
        path.write_text(source, encoding="utf-8")
    _say_what_next(name, folder.relative_to(project), (plugin.relative_to(project), test.relative_to(project)))
    return OK


def _say_what_next(name: str, folder: Path, written: tuple[Path, ...]) -> None:
    console = make_console()
    for path in written:
        console.print(clean(f"wrote {path}"))
    console.print()
    for line in (
        f"pytest {folder}",
        f"chimera plugins check {folder}",
        f"chimera code --plugin {name} --watch-plugins",
    ):
        console.print(f"  {clean(line)}", soft_wrap=True)
