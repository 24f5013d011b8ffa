"""How long people wait for Chimera to start: medians over fresh interpreters, in milliseconds.

`import chimera` is measured over the start of a bare interpreter, and may cost 60 ms; `chimera --help` is measured as a
person feels it, and may take 250 ms.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from statistics import median

ROUNDS = 21
HELP = "import sys; sys.argv = ['chimera', '--help']; from chimera.cli.main import main; main()"


def milliseconds(command: Sequence[str]) -> float:
    """Return the wall-clock time of one run of `command`, whose output is thrown away."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1000


def medians(programs: dict[str, str]) -> dict[str, float]:
    """Return the median time of each program. Rounds are interleaved, so that a busy moment hits all alike."""
    times: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(ROUNDS + 1):
        for name, code in programs.items():
            times[name].append(milliseconds([sys.executable, "-c", code]))
    return {name: median(values[1:]) for name, values in times.items()}


def main() -> None:
    found = medians({"bare": "pass", "import": "import chimera", "help": HELP})
    print(f"bare interpreter   {found['bare']:7.1f} ms")
    print(f"import chimera     {found['import'] - found['bare']:+7.1f} ms  (budget 60)")
    print(f"chimera --help     {found['help']:7.1f} ms  (budget 250)")


if __name__ == "__main__":
    main()
