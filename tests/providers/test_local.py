"""The server of a local model as a process: how it starts, what it says when it cannot, and that it never stays."""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import IO, Any
from urllib.parse import urlsplit

import pytest

from chimera.errors import ConfigError, MissingExtraError, ProviderConnectionError, ProviderError
from chimera.providers import local
from chimera.providers.compatible import OpenAICompatibleProvider
from chimera.providers.factory import create_provider
from chimera.providers.local import LocalProvider, LocalServer
from chimera.types import Message
from tests.providers.local_model import MODELS, eventually, model_file, needs_model

ROOT = Path(__file__).parents[2]
RUNS = 20
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")


def environment(**changes: str) -> dict[str, str]:
    return {"CHIMERA_MODELS_DIR": str(MODELS), "CHIMERA_LOCAL_CONTEXT": "512", "CHIMERA_LOCAL_THREADS": "1", **changes}


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def status(url: str) -> int:
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    try:
        connection.request("GET", parts.path)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("package", ["xllamacpp", "openai"])
def test_what_is_not_installed_is_told_with_the_command(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'chimera-harness\[local\]'"):
        create_provider("local", environ={})


pytestmark = needs_model()


def test_a_missing_model_is_offered(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"98 MB.*chimera models pull smollm2"):
        create_provider("local", environ={"CHIMERA_MODELS_DIR": str(tmp_path)})
    with pytest.raises(ConfigError, match=r"no file .*nothing\.gguf"):
        create_provider(f"local:{tmp_path / 'nothing.gguf'}", environ={})


@pytest.mark.parametrize("name", ["CHIMERA_LOCAL_CONTEXT", "CHIMERA_LOCAL_THREADS"])
@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5"])
def test_numbers_of_the_environment_are_checked(name: str, value: str) -> None:
    model_file()
    with pytest.raises(ConfigError, match=f"{name} is '{value}'"):
        create_provider("local", environ=environment(**{name: value}))


@pytest.mark.parametrize("content", [b"", b"no model", b"GGUF" + bytes(1000)])
def test_a_file_that_is_no_model(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "some.gguf"
    path.write_bytes(content)
    with pytest.raises(ProviderError, match=r"The local model cannot be served: .*[a-z]"):
        LocalServer(path)


def test_a_server_that_cannot_even_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHOME", str(tmp_path / "nowhere"))
    with pytest.raises(ProviderError, match=r"The local model cannot be served: .*[a-z]"):
        LocalServer(model_file())


def test_waiting_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_REMIND_AFTER", 0.01)
    said: list[str] = []
    server = LocalServer(model_file(), context=256, threads=1, say=said.append)
    server.close()
    first, *between, last = said
    assert (first.split()[0], last.split()[0]) == ("Loading", "Ready")
    assert between
    assert all(text.startswith("Still loading after ") for text in between)


def test_the_provider_is_one_like_any_other(capsys: pytest.CaptureFixture[str]) -> None:
    path = model_file()
    provider: Any = create_provider(f"local:{path}", environ=environment())
    try:
        assert isinstance(provider, OpenAICompatibleProvider)
        assert (provider.model_name, provider.context_window) == (f"local:{path}", 512)
        assert provider.request_headers == {}
        assert provider.complete([Message.user("hi")], max_tokens=2).usage["output_tokens"] == 2
        assert provider.cost_usd({"input_tokens": 1000, "output_tokens": 1000}) == 0.0
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.startswith(f"Loading the model {path.name} (98 MB)\nReady after ")
    finally:
        provider.close()


@pytest.fixture
def served() -> Iterator[LocalServer]:
    server = LocalServer(model_file(), context=256, threads=1)
    yield server
    server.close()


def test_nobody_can_use_it_who_was_not_told_where(served: LocalServer) -> None:
    """Neither another user of the machine nor a page in a browser knows the path; the command line does not show it."""
    parts = urlsplit(served.base_url)
    origin, prefix = f"{parts.scheme}://{parts.netloc}", parts.path.split("/")[1]
    assert parts.hostname == "127.0.0.1"
    assert status(f"{served.base_url}/models") == 200
    for path in ("/", "/v1/models", "/health", "/slots", "/props", f"/{prefix[:-1]}/v1/models"):
        assert status(origin + path) == 404
    if sys.platform == "linux":
        assert prefix not in Path(f"/proc/{served.pid}/cmdline").read_text()


def test_stopping(served: LocalServer) -> None:
    assert alive(served.pid)
    served.close()
    assert not alive(served.pid)
    served.close()
    provider = LocalProvider("local", served, max_retries=0)
    with pytest.raises(ProviderConnectionError):
        provider.complete([Message.user("hi")])


def test_closing_the_provider_stops_the_server(served: LocalServer) -> None:
    with_server = LocalProvider("local", served)
    with_server.close()
    assert not alive(served.pid)


def test_a_server_that_nobody_holds_is_stopped() -> None:
    server = LocalServer(model_file(), context=256, threads=1)
    pid = server.pid
    del server
    gc.collect()
    assert not alive(pid)


def test_it_outlives_the_thread_that_started_it() -> None:
    started: list[LocalServer] = []
    thread = Thread(target=lambda: started.append(LocalServer(model_file(), context=256, threads=1)))
    thread.start()
    thread.join()
    [server] = started
    time.sleep(0.1)
    assert alive(server.pid)
    assert status(f"{server.base_url}/models") == 200
    server.close()


def test_no_module_of_the_folder_one_works_in_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("xllamacpp", "json", "chimera"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('taken from the project')\n")
    monkeypatch.chdir(tmp_path)
    server = LocalServer(model_file(), context=256, threads=1)
    server.close()


_PARENT = """
import signal, sys, time
from pathlib import Path
from chimera.providers.local import LocalServer
if "deaf" in sys.argv:
    signal.signal(signal.SIGINT, lambda *_: print("heard", flush=True))
print("begun", flush=True)
server = LocalServer(Path(sys.argv[1]), context=256, threads=1)
print("ready", server.pid, server.base_url, flush=True)
while True:
    time.sleep(1)
"""


@contextmanager
def parent_process(mark: str, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """Start a process that has begun to start a server; give it and what it prints. It is killed at the end."""
    command = [sys.executable, "-c", _PARENT, str(model_file()), *words]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "KILL_TEST": mark}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, start_new_session=True) as parent:
        try:
            assert parent.stdout is not None
            assert parent.stdout.readline() == b"begun\n"
            yield parent, parent.stdout
        finally:
            parent.kill()


def marked(mark: str) -> list[int]:
    """Return the processes in whose environment the mark stands."""
    return [int(folder.name) for folder in Path("/proc").glob("[0-9]*") if _has(folder / "environ", mark)]


def _has(path: Path, mark: str) -> bool:
    try:
        return f"KILL_TEST={mark}\0".encode() in path.read_bytes()
    except OSError:  # ended, or somebody else's
        return False


@on_linux
def test_no_server_outlives_a_process_that_was_killed() -> None:
    """At random moments: before the server runs, while the model loads, and while it serves."""
    chance = random.Random(20)
    marks = [f"{os.getpid()}-{number}" for number in range(RUNS)]
    seen = 0
    for mark in marks:
        with parent_process(mark) as (parent, _):
            time.sleep(chance.uniform(0, 0.9))
            seen += len(marked(mark)) == 2
            parent.send_signal(signal.SIGKILL)
    assert seen > 0, "some servers did run"
    eventually(lambda: not any(marked(mark) for mark in marks))


@on_linux
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_no_server_outlives_a_process_that_was_told_to_end(end: signal.Signals) -> None:
    mark = f"{os.getpid()}-{end.name}"
    with parent_process(mark) as (parent, printed):
        assert printed.readline().startswith(b"ready")
        assert len(marked(mark)) == 2
        parent.send_signal(end)
        parent.wait()
    eventually(lambda: not marked(mark))


def test_an_interrupt_from_the_terminal_is_not_for_the_server() -> None:
    """Ctrl-C goes to the whole group of processes; it is to end a turn, and not the model."""
    with parent_process("", "deaf") as (parent, printed):
        _, pid, url = printed.readline().decode().split()
        os.killpg(parent.pid, signal.SIGINT)
        assert printed.readline() == b"heard\n"
        time.sleep(0.2)  # for a server that had heard it too to be gone
        assert status(f"{url}/models") == 200
    eventually(lambda: not alive(int(pid)))
