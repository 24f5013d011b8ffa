"""`chimera doctor`: what is configured, what is missing, and what to do next."""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Collection, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from chimera.assembly.scrubbing import scrubbed_text
from chimera.assembly.settings import Settings, config_paths, load_settings
from chimera.cli.exits import OK, USAGE
from chimera.cli.screen import make_console, print_beside
from chimera.cli.setup import plugin_folders, project_folder
from chimera.core.interception import intercepted_complete
from chimera.errors import ChimeraError, ConfigError, ProviderError
from chimera.text import clean, lay_out
from chimera.types import Message

if TYPE_CHECKING:
    from chimera.providers.base import Provider

__all__ = ["Finding", "examine", "run_doctor"]

_STYLES = {"ok": "green", "none": "dim", "warning": "yellow", "missing": "bold red", "wrong": "bold red"}
_PATIENCE = 30.0
_LIMIT_REACHED = "output limit was reached"
_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "CHIMERA_API_KEY")


class Finding(NamedTuple):
    """One line. `state` is `ok`, `none` (not there, and not needed), `warning`, `missing` or `wrong`."""

    state: str
    subject: str
    text: str

    @property
    def bad(self) -> bool:
        return self.state in ("missing", "wrong")


def run_doctor(project: Path, *, offline: bool = False) -> int:
    """Print the findings, and return 0 when a session could start, 2 when it could not."""
    from rich.text import Text

    console = make_console()
    findings = []
    for finding in examine(project_folder(project), offline=offline):
        findings.append(finding)
        state = (f"{finding.state:<8} ", _STYLES[finding.state])
        label = Text.assemble(state, f"{clean(finding.subject):<17} ")
        print_beside(console, label, Text(lay_out(clean(scrubbed_text(finding.text)))))
    console.print()
    bad = list(dict.fromkeys(finding.subject for finding in findings if finding.bad))
    console.print(f"Not ready: {', '.join(bad)}." if bad else "Ready: start with `chimera code`.", style="bold")
    return USAGE if bad else OK


def examine(project: Path, *, offline: bool = False) -> Iterator[Finding]:
    """Yield what there is to say about this machine, this user and this project.

    Unless `offline`, the model is asked for one token; nothing else reaches for the network.
    """
    yield Finding("ok", "chimera", f"{version('chimera-harness')} on Python {platform.python_version()}")
    yield _program("bash", "commands of the agent run in it")
    yield from _files(project)
    try:
        settings = load_settings(project)
    except ConfigError as problem:
        for line in str(problem).splitlines():
            yield Finding("wrong", "settings", line)
        return
    yield from _model(settings, offline)
    yield _keys()
    for package in ("anthropic", "openai"):
        yield _package(package, f"{package} SDK", package, "models that need it")
    yield _package("xllamacpp", "local models", "local", "models that need it")
    yield _package("textual", "full screen", "tui", "conversations on the full screen; without it they go line by line")
    yield _permissions(settings)
    tools: set[str] = set()
    yield from _plugins(settings, project, tools)
    yield from _rules(settings, project, tools)
    yield _hooks(settings)
    yield _sessions()


def _program(name: str, use: str) -> Finding:
    found = shutil.which(name)
    return Finding("ok", name, found) if found else Finding("missing", name, f"{use}; install it")


def _files(project: Path) -> Iterator[Finding]:
    for owner, path in zip(("user settings", "project settings"), config_paths(project), strict=True):
        yield Finding("ok" if path.is_file() else "none", owner, str(path))


def _model(settings: Settings, offline: bool) -> Iterator[Finding]:
    from chimera.providers.factory import create_provider

    try:
        provider = create_provider(settings.model, base_url=settings.base_url)
    except ChimeraError as problem:
        yield Finding("missing", "model", str(problem))
        return
    source = settings.sources.get("model", ("chosen by the key that is set",))[-1]
    address = f" at {settings.base_url}" if settings.base_url else ""
    yield Finding("ok", "model", f"{provider.model_name}{address} ({source})")
    try:
        yield Finding("none", "model's answer", "not asked for, as --offline says") if offline else _answer(provider)
    finally:
        close = getattr(provider, "close", None)
        if close is not None:
            close()


def _answer(provider: Provider) -> Finding:
    began = time.monotonic()
    try:
        intercepted_complete(provider, [Message.user("Say hello.")], max_tokens=1, timeout=_PATIENCE)
    except ProviderError as problem:
        # Models that think first refuse to stop after one token, and show thereby that they answer.
        if _LIMIT_REACHED not in str(problem):
            return Finding("wrong", "model's answer", str(problem))
    return Finding("ok", "model's answer", f"came after {time.monotonic() - began:.1f} s; asked for was one token")


def _keys() -> Finding:
    found = [name for name in _KEYS if os.environ.get(name)]
    return Finding(
        "ok" if found else "none", "keys", f"{', '.join(found or _KEYS)} {'set' if found else 'are not set'}"
    )


def _package(package: str, subject: str, extra: str, use: str) -> Finding:
    if find_spec(package) is not None:
        return Finding("ok", subject, f"{package} {version(package)}")
    return Finding("none", subject, f"pip install 'chimera-harness[{extra}]' for {use}")


def _permissions(settings: Settings) -> Finding:
    rules = settings.permissions
    mode = settings.permission_mode or "ask (accept-edits with -p)"
    counts = f"{len(rules.deny)} deny, {len(rules.ask)} ask, {len(rules.allow)} allow"
    return Finding("ok", "permissions", f"mode {mode}; rules: {counts}")


def _rules(settings: Settings, project: Path, tools: Collection[str]) -> Iterator[Finding]:
    """Warn of rules for tools that are neither bundled nor brought by a plugin of the settings."""
    from chimera.permissions.families import BUNDLED
    from chimera.permissions.rule import parse_rule

    for kind in ("deny", "ask", "allow"):
        for rule in getattr(settings.permissions, kind):
            try:
                parse_rule(rule, root=project, tools={*BUNDLED, *tools}, permits=kind == "allow")
            except ConfigError as problem:
                yield Finding("warning", f"{kind} rule", f"{settings.sources[f'permissions.{kind}'][-1]}: {problem}")


def _plugins(settings: Settings, project: Path, tools: set[str]) -> Iterator[Finding]:
    """Load each plugin of the settings and unload it again. The names of the tools that they bring go to `tools`."""
    from chimera.plugins import PluginManager

    manager = PluginManager(plugin_folders(project))
    for name, options in settings.plugins.items():
        subject, place = f"plugin {name}", settings.sources[f"plugins.{name}"][-1]
        try:
            manager.load(name, **options)
            tools.update(tool.name for tool in manager.tools)
            manager.unload(name)
        except ChimeraError as problem:
            yield Finding("wrong", subject, f"{place}: {problem}")
        else:
            yield Finding("ok", subject, place)
    others = [name for name in manager.discover() if name not in settings.plugins]
    if others:
        yield Finding("none", "more plugins", f"{', '.join(others)}; load one with --plugin NAME")


def _sessions() -> Finding:
    from chimera.assembly.journal import sessions_folder

    folder = sessions_folder()
    return Finding("ok" if folder.is_dir() else "none", "sessions", str(folder))


def _hooks(settings: Settings) -> Finding:
    counts = [
        f"{event} {sum(len(group['hooks']) for group in groups)}" for event, groups in settings.hooks.items() if groups
    ]
    return Finding("ok" if counts else "none", "hooks", ", ".join(counts) or "none configured")
