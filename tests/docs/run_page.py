"""Run the Python fences of one page in order, in one namespace: `run_page.py PAGE FENCES.json`.

A module of its own, so that each page has a process to itself. Errors point to lines of the page.
"""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path


def forbid_network() -> None:
    """Let a page talk to this machine only: what it shows must work without keys and without a network."""

    def guard(event: str, arguments: tuple[object, ...]) -> None:
        if event == "socket.connect" and isinstance(arguments[1], tuple):
            host = arguments[1][0]
            if host not in ("127.0.0.1", "::1", "localhost"):
                raise SystemExit(f"the page connects to {host}")

    sys.addaudithook(guard)


def main(page: str, listing: str) -> None:
    forbid_network()
    module = types.ModuleType("page")
    sys.modules["page"] = module
    for line, code in json.loads(Path(listing).read_text(encoding="utf-8")):
        program = compile("\n" * (line - 1) + code, page, "exec", dont_inherit=True)
        exec(program, module.__dict__)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
