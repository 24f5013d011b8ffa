"""Finding the text that a model wants to change, and saying what is wrong when it is not there exactly once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from chimera.errors import ToolError

__all__ = ["find_all", "find_lines", "line_number", "nearest", "only_match", "places"]

_SHOWN = 10
_SHOWN_CHARS = 2000
_COMPARED_LINES = 5000
_COMPARED_CHARS = 300


def find_all(view: str, wanted: str, *, whole_lines: bool = False, overlapping: bool = False) -> Iterator[int]:
    """Yield where `wanted` (not empty) starts in `view`; with `whole_lines` only where it begins and ends a line."""
    start = view.find(wanted)
    while start >= 0:
        end = start + len(wanted)
        if not whole_lines or _is_whole(view, start, end):
            yield start
            start = view.find(wanted, start + 1 if overlapping else end)
        else:
            start = view.find(wanted, start + 1)


def only_match(view: str, wanted: str, what: str, *, whole_lines: bool = False, advice: str = "") -> int:
    """Return the one place where `wanted` starts. Raises `ToolError` when there is none or more than one."""
    found = list(islice(find_all(view, wanted, whole_lines=whole_lines, overlapping=True), _SHOWN + 1))
    if not found:
        raise ToolError(f"{what} was not found. {nearest(view, wanted)}")
    if len(found) > 1:
        lines = places([line_number(view, start) for start in found])
        raise ToolError(f"{what} is not unique: it starts at {lines}. Add lines around it until it is{advice}.")
    return found[0]


def find_lines(lines: Sequence[str], wanted: Sequence[str], start: int = 0) -> list[int]:
    """Return every index from `start` on at which the run of lines `wanted` (not empty) begins."""
    count, first = len(wanted), wanted[0]
    last = len(lines) - count + 1
    return [at for at in range(start, last) if lines[at] == first and lines[at : at + count] == wanted]


def line_number(view: str, index: int) -> int:
    """Return the number, from 1, of the line that holds `index`."""
    return view.count("\n", 0, index) + 1


def places(numbers: Sequence[int]) -> str:
    """Render line numbers for an error text, the first ones when there are many."""
    shown = ", ".join(map(str, numbers[:_SHOWN]))
    return f"lines {shown}" + (" and more" if len(numbers) > _SHOWN else "")


def nearest(view: str, wanted: str) -> str:
    """Say what comes closest to a text that is not there: its twin but for white space, else the most similar line."""
    lines, sought = view.split("\n"), wanted.strip("\n").split("\n")
    twin = find_lines([line.strip() for line in lines], [line.strip() for line in sought])
    if twin and any(sought):
        number = twin[0] + 1
        same = "\n".join(lines[twin[0] : twin[0] + len(sought)])[:_SHOWN_CHARS]
        return f"White space differs: line {number} of the file has\n{same}\nCopy it exactly, with its indentation."
    return _most_similar(lines, sought) + " Read the file again and copy the text exactly."


def _most_similar(lines: Sequence[str], sought: Sequence[str]) -> str:
    from difflib import get_close_matches

    first = next((line.strip() for line in sought if line.strip()), "")[:_COMPARED_CHARS]
    numbered: dict[str, int] = {}
    for number, line in enumerate(lines[:_COMPARED_LINES], 1):
        numbered.setdefault(line.strip()[:_COMPARED_CHARS], number)
    close = get_close_matches(first, numbered, n=1, cutoff=0.5) if first else []
    if not close:
        return "No line of the file resembles its first one."
    number = numbered[close[0]]
    return f"The nearest to its first line is line {number}: {lines[number - 1][:_COMPARED_CHARS]!r}."


def _is_whole(view: str, start: int, end: int) -> bool:
    begins = start == 0 or view[start - 1] == "\n"
    ends = view[end] == "\n" if end < len(view) else view[end - 1] != "\n"
    return begins and ends
