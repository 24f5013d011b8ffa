"""Run every measurement and write what was found into docs/performance.md; takes a few minutes.

`python -m benchmarks --print` writes nothing.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "performance.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def machine() -> str:
    return (
        f"{os.cpu_count()} processors ({platform.machine()}), {platform.system()}, "
        f"{platform.python_implementation()} {platform.python_version()}"
    )


def measured(name: str) -> str:
    """Run one module in a process of its own and return its table, or what it prints as it is."""
    ran = subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], stdout=subprocess.PIPE, text=True, check=True)
    print(ran.stdout, flush=True)
    text = ran.stdout.strip()
    return text if text.startswith("###") else f"### {name}\n\n```text\n{text}\n```"


def main() -> None:
    names = sorted(file.stem for file in HERE.glob("[!_]*.py"))
    found = "\n\n".join([f"Machine: {machine()}.", *map(measured, names)])
    if "--print" in sys.argv[1:]:
        return
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{found}\n\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
