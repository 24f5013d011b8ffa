"""Write the command line's help into docs/cli.md, between its two markers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["PAGE", "commands", "updated"]

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
BEGIN = "<!-- help: written by `make docs` -->"
END = "<!-- end of help -->"
WIDTH = "100"


Words = tuple[str, ...]


def commands() -> dict[Words, set[str]]:
    """Return the options of every command of the program, by its words: `("chimera", "plugins", "list")`, say."""
    import typer.main

    from chimera.cli.main import app

    return dict(_below(("chimera",), typer.main.get_command(app)))


def _below(words: Words, command: Any) -> Iterator[tuple[Words, set[str]]]:
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    yield words, {"--help", *options}
    for name, child in getattr(command, "commands", {}).items():
        if not child.hidden:
            yield from _below((*words, name), child)


def help_text(words: Words) -> str:
    """Return what the program prints for `--help`, at a fixed width and without colours."""
    code = "import sys; from chimera.cli.main import main; sys.argv = sys.argv[1:]; main()"
    environment = {**os.environ, "COLUMNS": WIDTH, "TERMINAL_WIDTH": WIDTH, "NO_COLOR": "1", "TERM": "dumb"}
    environment.pop("FORCE_COLOR", None)
    done = subprocess.run(
        [sys.executable, "-c", code, *words, "--help"], env=environment, capture_output=True, text=True, check=True
    )
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


def rendered() -> str:
    """Return the part of the page between the markers: a heading and the help of every command."""
    sections = [
        f"## `{' '.join(words)}`\n\n```console\n$ {' '.join(words)} --help\n{help_text(words)}\n```\n"
        for words in commands()
    ]
    return "\n".join(sections)


def updated(page: str) -> str:
    """Return the page with fresh help between its markers. Raises `ValueError` when it has none."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} needs the lines {BEGIN} and {END}")
    return f"{before}{begin}\n\n{rendered()}\n{end}{after}"


def main() -> None:
    old = PAGE.read_text(encoding="utf-8")
    new = updated(old)
    PAGE.write_text(new, encoding="utf-8")
    print(f"docs/{PAGE.name}: {'unchanged' if new == old else 'updated'}")


if __name__ == "__main__":
    main()
