"""Globs in gitignore style: one reading for the tools that take them and for the rules that judge them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

__all__ = ["compiled", "expand_braces", "file_filter"]

_MAX_CHOICES = 1_000


def file_filter(glob: str) -> Any:
    """Return a matcher of `glob`, with `{a,b}`; its `match_file` takes a path relative to the folder that is searched.

    A glob whose braces stand for very many patterns is taken as it is written.
    """
    choices = list(islice(expand_braces(glob), _MAX_CHOICES + 1))
    return compiled(choices if len(choices) <= _MAX_CHOICES else [glob])


def compiled(lines: Iterable[str]) -> Any:
    """Return a matcher of gitignore patterns. Malformed ones match nothing, as in git."""
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec([pattern for line in lines for pattern in _patterns(GitIgnoreSpec, line)])


def expand_braces(pattern: str) -> Iterator[str]:
    """Yield the patterns that `{a,b}` in a glob stands for, as a shell reads it; nesting is fine."""
    close = pattern.find("}")
    opened = pattern.rfind("{", 0, close) if close >= 0 else -1
    if opened < 0:
        yield pattern
        return
    for choice in pattern[opened + 1 : close].split(","):
        yield from expand_braces(pattern[:opened] + choice + pattern[close + 1 :])


def _patterns(spec: Any, line: str) -> list[Any]:
    try:
        return list(spec.from_lines([line]).patterns)
    except ValueError:
        return []
