"""What the exit codes of the program mean. They are documented in `--help` and in docs/cli.md."""

from __future__ import annotations

__all__ = ["FAILED", "HUNG_UP", "INTERRUPTED", "LEGEND", "OK", "TERMINATED", "USAGE"]

OK = 0
FAILED = 1
USAGE = 2
HUNG_UP = 129
INTERRUPTED = 130
TERMINATED = 143

LEGEND = (
    "Exit codes: 0 it worked; 1 the run was blocked, failed or ran out of turns; 2 the command line, the configuration "
    "or the model is missing something; 130 interrupted (143 by SIGTERM, 129 by SIGHUP)."
)
