"""The options of `chimera code`, in one object that travels whole. Imports nothing heavy: `--help` needs it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from pathlib import Path

__all__ = ["BEST", "LATEST", "CodeOptions", "Format", "Kind", "Mode", "Output", "with_values"]

LATEST = "latest"
"""In place of the id of a session: the one of this project that was used last."""
BEST = "best"
"""In place of the name of a lane: the one that won."""


class Output(StrEnum):
    """What `-p` prints: the answer, one JSON object, or one JSON object for each event."""

    TEXT = "text"
    JSON = "json"
    STREAM_JSON = "stream-json"


class Format(StrEnum):
    """What `chimera sessions export` writes."""

    JSON = "json"
    MARKDOWN = "markdown"


class Kind(StrEnum):
    """What a new plugin does."""

    GATE = "gate"
    REDACTOR = "redactor"
    REWRITER = "rewriter"


class Mode(StrEnum):
    """Which calls a person is asked about."""

    ASK = "ask"
    ACCEPT_EDITS = "accept-edits"
    YOLO = "yolo"


@dataclass(frozen=True, slots=True)
class CodeOptions:
    """What the command line says; None where it says nothing, and the settings decide.

    `resume` is the id of a session, or `LATEST`; `records` says whether a session is recorded. `lanes` are those of a
    race, `check` is the command that judges them, and `apply` says which one the project is changed by.
    `watches_plugins` says whether plugins are reloaded as their files change.
    """

    model: str | None = None
    base_url: str | None = None
    project: Path = Path()
    plugins: tuple[str, ...] = ()
    preset: str | None = None
    max_turns: int | None = None
    mode: Mode | None = None
    loop: str | None = None
    output: Output = Output.TEXT
    plain: bool = False
    resume: str | None = None
    records: bool = True
    lanes: str | None = None
    check: str | None = None
    apply: str | None = None
    watches_plugins: bool = False


def with_values(words: Sequence[str]) -> Iterator[str]:
    """Yield the words of a command line with a value for every `--resume` that has none."""
    for word, after in pairwise([*words, "-"]):
        yield f"{word}={LATEST}" if word == "--resume" and after.startswith("-") else word
