"""The child process that serves a local model: `python -m chimera.providers.local_server`, started by `LocalServer`.

Its first line of input says what to serve; its one line of output says where, or what went wrong, as JSON. It lives as
long as the process that started it: the end of its input means that this one is gone, however it went.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

__all__ = ["main"]

_PR_SET_PDEATHSIG = 1
_ERRORS_ONLY = 1
_PROMPT_CACHE_MIB = 512
_HOST = "127.0.0.1"


def main() -> NoReturn:
    """Serve until the input ends. Exits at once then: there is nothing to save, and nobody to wait for."""
    answers = _take_stdout()
    options = json.loads(sys.stdin.buffer.readline())
    _die_with(options["parent"])
    try:
        server = _serve(options)
    except Exception as problem:
        _say(answers, {"error": str(problem)})
        os._exit(1)
    _say(answers, {"address": server.listening_address})
    _outlive_thread()
    sys.stdin.buffer.read()
    os._exit(0)


def _take_stdout() -> int:
    """Return a file of its own for the answer: what libraries print goes where errors go."""
    answers = os.dup(1)
    os.dup2(2, 1)
    return answers


def _say(answers: int, line: Mapping[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError):  # nobody listens any more, and the input has ended too
        os.write(answers, json.dumps(line).encode() + b"\n")


def _die_with(parent: int) -> None:
    """Ask the system to end this process with the thread that started it, which waits for it just now.

    While a model loads, the library lets no other Python code run, so that the end of the input would go unnoticed.
    """
    _death_signal(signal.SIGKILL)
    if os.name == "posix" and os.getppid() != parent:
        os._exit(1)


def _outlive_thread() -> None:
    """The thread that started this process may end now, and its process go on."""
    _death_signal(0)


def _death_signal(number: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def _serve(options: Mapping[str, Any]) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = options["model"]
    params.port = 0
    if hasattr(params, "hostnames"):  # both names have changed in the course of 2026
        params.hostnames = [_HOST]
    else:
        params.hostname = _HOST
    setattr(params, "ui" if hasattr(params, "ui") else "webui", False)
    params.api_prefix = options["prefix"]
    params.n_ctx = options["context"]
    params.n_predict = options["longest_answer"]
    params.n_parallel, params.kv_unified = options["lanes"], True
    params.cpuparams.n_threads = options["threads"]
    for name, value in options["sampling"].items():
        setattr(params.sampling, name, value)
    params.cache_ram_mib = _PROMPT_CACHE_MIB
    params.verbosity = _ERRORS_ONLY
    params.warmup = False
    params.offline = True
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
