"""How long people wait for Chimera to start: medians over fresh interpreters, in milliseconds.

The limits are for the processor time of the process, which is what a person waits for on a machine that has nothing
else to do; the wall-clock time stands beside it. `import chimera` is measured over the start of a bare interpreter, and
`chimera code -p` until its first request reaches the model's service: a server on this machine that refuses it, upon
which the process ends.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from statistics import median

from benchmarks._kit import Row, report

ROUNDS = 11
HELP = "import sys; sys.argv = ['chimera', '--help']; from chimera.cli.main import main; main()"
CODE = "import sys; sys.argv = ['chimera', *sys.argv[1:]]; from chimera.cli.main import main; main()"


Times = tuple[float, float]
"""Processor time and wall-clock time, in milliseconds."""


def processor_ms() -> float:
    """Return what all processes that were waited for have used."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (usage.ru_utime + usage.ru_stime) * 1000


def started(code: str) -> Callable[[], Times]:
    """Return the measurement of a program's whole run."""

    def measure() -> Times:
        start, used = time.perf_counter(), processor_ms()
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
        return processor_ms() - used, (time.perf_counter() - start) * 1000

    return measure


def first_request() -> Times:
    """Return the time from the start of `chimera code -p` to its first request."""
    arrived: list[float] = []

    class Service(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            arrived.append(time.perf_counter())
            self.send_error(400)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Service) as server, tempfile.TemporaryDirectory() as folder:
        threading.Thread(target=server.handle_request, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/v1"
        options = ["code", "-p", "Go.", "--model", "bench", "--base-url", address, "-C", folder, "--no-session"]
        start, used = time.perf_counter(), processor_ms()
        subprocess.run(
            [sys.executable, "-c", CODE, *options],
            check=False,
            capture_output=True,
            timeout=60,
            env={**os.environ, "HOME": folder, "OPENAI_API_KEY": "none"},
        )
    if not arrived:
        raise RuntimeError("no request reached the service")
    return processor_ms() - used, (arrived[0] - start) * 1000


def rows() -> Iterator[Row]:
    measures = (started("pass"), started("import chimera"), started(HELP), first_request)
    taken = [[measure() for measure in measures] for _ in range(ROUNDS + 1)]
    bare, imported, helped, asked = (
        (median(used for used, _ in times), median(wall for _, wall in times)) for times in zip(*taken[1:], strict=True)
    )
    over = imported[0] - bare[0]
    yield Row("bare interpreter", _shown(bare))
    yield Row("`import chimera`, over the bare interpreter", f"{over:.0f} ms", "60 ms", over <= 60)
    yield Row("`chimera --help`", _shown(helped), "250 ms", helped[0] <= 250)
    yield Row("`chimera code -p` to the first request", _shown(asked))


def _shown(times: Times) -> str:
    return f"{times[0]:.0f} ms ({times[1]:.0f} ms by the clock)"


def main() -> None:
    report("Start", rows())


if __name__ == "__main__":
    main()
