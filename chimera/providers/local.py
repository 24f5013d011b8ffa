"""Models that run on this machine: a llama.cpp server as a child process, reached like any other service."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, Any

from chimera.errors import ConfigError, MissingExtraError, ProviderError
from chimera.providers.compatible import OpenAICompatibleProvider, ToolCalling
from chimera.providers.local_models import find_model, known_model
from chimera.providers.local_probe import get_json

__all__ = ["LocalProvider", "LocalServer", "create_local_provider"]

DEFAULT_CONTEXT = 8192
_LANES = 4
_REMIND_AFTER = 5.0
_LONGEST_LOG = 1 << 16
_LOG_MARK = re.compile(r"^[\d.]+ [A-Z] +")

Say = Callable[[str], object]


def create_local_provider(
    name: str, environ: Mapping[str, str], tool_calling: ToolCalling | None = None
) -> LocalProvider:
    """Start a server for `name`, a file of a model or the name of a known one (empty for the first of these).

    `CHIMERA_LOCAL_CONTEXT` and `CHIMERA_LOCAL_THREADS` in `environ` say how many tokens a conversation may hold and how
    many processors the server uses. What goes on is told on standard error. Raises `ConfigError` when there is no such
    file, `MissingExtraError` when the extra is not installed, and `ProviderError` when the model cannot be served.
    """
    for package in ("xllamacpp", "openai"):
        if find_spec(package) is None:
            raise MissingExtraError("a model on this machine", "local")
    path = find_model(name, environ)
    known = known_model(path)
    server = LocalServer(
        path,
        longest_answer=known.longest_answer if known else None,
        sampling=known.sampling if known else {},
        context=_number(environ, "CHIMERA_LOCAL_CONTEXT") or DEFAULT_CONTEXT,
        threads=_number(environ, "CHIMERA_LOCAL_THREADS"),
        say=_to_stderr,
    )
    return LocalProvider(f"local:{name}" if name else "local", server, tool_calling=tool_calling or "schema")


class LocalProvider(OpenAICompatibleProvider):
    """An `OpenAICompatibleProvider` that owns the server it talks to: `close` stops it, for good.

    `options` are those of `OpenAICompatibleProvider`.
    """

    def __init__(self, model: str, server: LocalServer, **options: Any) -> None:
        super().__init__(model, base_url=server.base_url, context_window=server.context, **options)
        self._server = server

    @property
    def server(self) -> LocalServer:
        return self._server

    def close(self) -> None:
        super().close()
        self._server.close()


class LocalServer:
    """A llama.cpp server that serves one model on loopback, in a child process that ends when this object or its
    process does, also when that one is killed.

    Everything is served below a path that nobody can guess, so that neither other users of the machine nor pages in a
    browser can use the server. `context` is the number of tokens that conversations may hold, together; the model's own
    limit may be lower. Half of the processors are used where `threads` says nothing. No answer has more tokens than
    `longest_answer`, by default a quarter of the context; `sampling` sets llama.cpp's sampling parameters where calls
    leave them open. `say` is told, in a few words, how the start goes. Raises `ProviderError` when the model cannot be
    loaded.
    """

    def __init__(
        self,
        model: Path,
        *,
        context: int = DEFAULT_CONTEXT,
        threads: int | None = None,
        longest_answer: int | None = None,
        sampling: Mapping[str, float] | None = None,
        say: Say = lambda text: None,
    ) -> None:
        prefix = f"/{secrets.token_hex(16)}"
        options = {
            "model": str(model.absolute()),
            "prefix": prefix,
            "context": context,
            "longest_answer": longest_answer or max(1, context // 4),
            "sampling": dict(sampling or {}),
            "lanes": _LANES,
            "threads": threads or max(1, (os.cpu_count() or 2) // 2),
            "parent": os.getpid(),
        }
        started = time.monotonic()
        say(f"Loading the model {model.name} ({model.stat().st_size / 1e6:.0f} MB)")
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the process has ended
        self._process = _spawn(self._errors)
        self._stop = weakref.finalize(self, _end, self._process, self._errors, os.getpid())
        try:
            address = self._hand_over(options, say)
            self.base_url = f"{address}{prefix}/v1"
            self.context = int(get_json(f"{address}{prefix}/slots")[0]["n_ctx"])
        except BaseException:
            self.close()
            raise
        say(f"Ready after {time.monotonic() - started:.1f} s")

    @property
    def pid(self) -> int:
        """The process that serves."""
        return self._process.pid

    def close(self) -> None:
        """Stop the server. Stopping it twice does nothing."""
        self._stop()

    def _hand_over(self, options: Mapping[str, Any], say: Say) -> str:
        """Tell the child what to serve, and return the address where it does."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(options).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:  # it is gone, and what it left says why
            raise self._failure("") from None
        answer = json.loads(self._first_line(say) or b"{}")
        if "address" not in answer:
            raise self._failure(answer.get("error", ""))
        return str(answer["address"])

    def _first_line(self, say: Say) -> bytes:
        lines: SimpleQueue[bytes] = SimpleQueue()
        assert self._process.stdout is not None
        Thread(target=_read_line, args=(self._process.stdout, lines), daemon=True).start()
        waited = 0.0
        while True:
            try:
                return lines.get(timeout=_REMIND_AFTER)
            except Empty:
                waited += _REMIND_AFTER
                say(f"Still loading after {waited:.0f} s")

    def _failure(self, said: str) -> ProviderError:
        self._process.kill()
        self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read(_LONGEST_LOG).decode("utf-8", "replace").strip().splitlines() or [""]
        cause = lines[-1] if lines[0].startswith("Traceback") else _LOG_MARK.sub("", lines[0])
        text = cause or said or f"its process ended with {self._process.returncode}"
        return ProviderError(f"The local model cannot be served: {text}")


def _spawn(errors: IO[bytes]) -> subprocess.Popen[bytes]:
    # -P: the folder in which this process works, somebody's project, must not be where modules are looked for.
    command = [sys.executable, "-P", "-m", "chimera.providers.local_server"]
    apart: dict[str, Any] = {"start_new_session": True}  # Ctrl-C on the terminal is for this process alone
    if os.name == "nt":
        apart = {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, **apart)


def _end(process: subprocess.Popen[bytes], errors: IO[bytes], owner: int) -> None:
    if os.getpid() != owner:  # a copy of the process, made by a fork, owns no server
        return
    process.kill()
    process.wait()
    for file in (process.stdin, process.stdout, errors):
        if file is not None:
            file.close()


def _read_line(pipe: IO[bytes], lines: SimpleQueue[bytes]) -> None:
    lines.put(pipe.readline())


def _number(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(name, "").strip()
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(f"{name} is {text!r}, and must be a number from 1 up")
    return int(text)


def _to_stderr(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
