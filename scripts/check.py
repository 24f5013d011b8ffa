"""Run the checks of the project and say in one line each how they went: `python -m scripts.check lint tests`.

Every check runs, also when an earlier one failed, so that one run tells everything. The exit code is 0 only when all
of them passed.
"""

from __future__ import annotations

import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from pathlib import Path

from scripts.coverage_gate import gate_lines

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
COVERAGE = ROOT / "build" / "coverage.json"
REPORT = ROOT / "build" / "tests.xml"

LINT: tuple[tuple[str, Sequence[str]], ...] = (
    ("style", ("ruff", "check", "--quiet", ".")),
    ("format", ("ruff", "format", "--check", "--quiet", ".")),
    ("types", ("mypy", "--no-error-summary")),
    ("import floors", ("lint-imports", "--no-logo")),
)
PYTEST = (
    "pytest", "-q", "-n", "auto", "--dist", "worksteal", "--no-header", f"--junitxml={REPORT}",
    "--cov=chimera", "--cov-branch", "--cov-report=", f"--cov-report=json:{COVERAGE}",
)  # fmt: skip


def lint() -> bool:
    """Run the static checks; what a failing one printed is shown under its line."""
    return all([_quietly(name, command) for name, command in LINT])


def tests() -> bool:
    """Run the tests with coverage and hold the coverage against its floors."""
    REPORT.unlink(missing_ok=True)
    COVERAGE.unlink(missing_ok=True)
    passed = subprocess.run(_command(PYTEST), cwd=ROOT, check=False).returncode == 0
    covered = COVERAGE.exists() and _coverage()
    if REPORT.exists():
        print(_counts(REPORT))
    return passed and covered


def _quietly(name: str, command: Sequence[str]) -> bool:
    start = time.perf_counter()
    done = subprocess.run(_command(command), cwd=ROOT, check=False, capture_output=True, text=True)
    verdict = "ok" if done.returncode == 0 else "FAILED"
    print(f"{name:<15}{verdict:<8}{time.perf_counter() - start:5.1f} s", flush=True)
    if done.returncode != 0:
        print(done.stdout + done.stderr, flush=True)
    return done.returncode == 0


def _command(command: Sequence[str]) -> list[str]:
    program, *arguments = command
    return [str(BIN / program), *arguments]


def _coverage() -> bool:
    ok, lines = gate_lines(COVERAGE)
    print(*lines, sep="\n")
    return ok


def _counts(report: Path) -> str:
    """Return `N passed, N failed` as the report of pytest counts them; errors count as failures."""
    suites = list(ET.parse(report).getroot().iter("testsuite"))
    total, failed, skipped = (
        sum(int(suite.get(key, 0)) for suite in suites for key in keys)
        for keys in (("tests",), ("failures", "errors"), ("skipped",))
    )
    text = f"{total - failed - skipped} passed, {failed} failed"
    return text + (f", {skipped} skipped" if skipped else "")


CHECKS: dict[str, Callable[[], bool]] = {"lint": lint, "tests": tests}


def main(names: Sequence[str]) -> int:
    return 0 if all([CHECKS[name]() for name in names]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(CHECKS)))
