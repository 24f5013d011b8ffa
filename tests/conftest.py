"""Every test runs in a clean room: no keys, no settings of the person who runs it, no network beyond this machine."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# Whoever starts the tests in the background may have them ignore signals, and what they start inherits that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

_PERSONAL = re.compile(
    r"(OPENAI|ANTHROPIC|CHIMERA|XDG)_|.*_(API_KEY|TOKEN|SECRET)$|(https?|all|no)_proxy$|(NO|FORCE)_COLOR$",
    re.IGNORECASE,
)
_PACKS = "chimera.plugins.packs."
_FOLDERS = {
    "HOME": "",
    "USERPROFILE": "",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
}


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Take keys and proxies out of the environment, and move the user's folders to an empty place."""
    for name in [name for name in os.environ if _PERSONAL.match(name)]:
        monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    for name, below in _FOLDERS.items():
        monkeypatch.setenv(name, str(home / below))


@pytest.fixture(autouse=True)
def plugin_chains_withdrawn() -> Iterator[None]:
    """Withdraw the chains that a test left in the process-wide registry."""
    yield
    plugins = sys.modules.get("chimera.plugins")
    if plugins is not None:
        plugins.PluginExtensionRegistry._reset()


@pytest.fixture(autouse=True)
def packs_put_back() -> Iterator[None]:
    """Put the modules of the bundled packs back that a test had imported anew: other tests hold their classes."""
    before = {name: module for name, module in sys.modules.copy().items() if name.startswith(_PACKS)}
    yield
    for name, module in before.items():
        if sys.modules.get(name) is not module:
            sys.modules[name] = module
            setattr(sys.modules[_PACKS.rstrip(".")], name.removeprefix(_PACKS), module)


class NetworkUse(BaseException):
    """A test tried to leave the machine. No `Exception`, so that nothing that is tested can swallow it."""


@pytest.fixture(autouse=True, scope="session")
def only_loopback() -> Iterator[None]:
    """Fail a test that connects to another machine."""
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

    def check(address: object) -> None:
        host = address[0] if isinstance(address, tuple) else ""
        if host not in ("", "127.0.0.1", "::1", "localhost"):
            raise NetworkUse(f"a test connects to {host!r}")

    def guarded(self: socket.socket, address: object) -> None:
        check(address)
        connect(self, address)  # type: ignore[arg-type]

    def guarded_ex(self: socket.socket, address: object) -> int:
        check(address)
        return connect_ex(self, address)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded)
        patch.setattr(socket.socket, "connect_ex", guarded_ex)
        yield
