"""A patch as data, whichever way it was written, and placing its hunks in a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from chimera.errors import ToolError
from chimera.tools._matching import find_lines, nearest, places
from chimera.tools._text import Text

__all__ = ["FilePatch", "Hunk", "Line", "added_text", "apply_hunks"]


class Line(NamedTuple):
    """One line of a hunk. `kind` is ` ` (kept), `-` (removed) or `+` (added); `bare` says that no line end follows."""

    kind: str
    text: str
    bare: bool = False


@dataclass(frozen=True, slots=True)
class Hunk:
    """A run of lines to find and to change.

    `hint` is the index of its first old line according to the patch. `headings` are lines that come before it in the
    file, in order. `at_end` says that its last old line is the last of the file.
    """

    lines: tuple[Line, ...]
    hint: int | None = None
    headings: tuple[str, ...] = ()
    at_end: bool = False

    @property
    def old(self) -> list[str]:
        return [line.text for line in self.lines if line.kind != "+"]


@dataclass(frozen=True, slots=True)
class FilePatch:
    """What a patch does to one file. `hunks` of a file that is added hold nothing but added lines."""

    action: Literal["add", "delete", "update"]
    path: str
    hunks: tuple[Hunk, ...] = ()
    move_to: str | None = None
    executable: bool | None = None


def added_text(patch: FilePatch) -> str:
    """Return the content of a file that a patch adds. Raises `ToolError` when the patch also keeps or removes lines."""
    lines = [line for hunk in patch.hunks for line in hunk.lines]
    if any(line.kind != "+" for line in lines):
        raise ToolError(f"the patch adds {patch.path!r} as a new file, but has lines there that do not begin with '+'")
    return "".join(line.text + ("" if line.bare else "\n") for line in lines)


def apply_hunks(text: Text, hunks: Iterable[Hunk], path: str) -> Text:
    """Return `text` with every hunk applied; kept lines keep their bytes.

    Hunks come in the order of the file. A hunk whose hint is wrong still fits where its old lines occur, if that is
    one place only. Raises `ToolError` when one fits nowhere or in several places.
    """
    newline = text.form.newline
    raw = _split(text.raw, newline)
    lines = [_content(line) for line in raw]
    result: list[str] = []
    done = 0
    for number, hunk in enumerate(hunks, 1):
        at = _place(lines, hunk, done, f"hunk {number} of {path!r}")
        result += raw[done:at]
        for line in hunk.lines:
            if line.kind == "+":
                result.append(line.text + ("" if line.bare else newline))
                continue
            if line.kind == " ":
                result.append(raw[at])
            at += 1
        done = at
    return Text(_joined(result + raw[done:], newline), text.form)


def _place(lines: Sequence[str], hunk: Hunk, start: int, what: str) -> int:
    for heading in hunk.headings:
        start = _after(lines, heading, start, what)
    old = hunk.old
    if not old:
        return _insertion(lines, hunk, start, what)
    found = find_lines(lines, old, start) or _loosely(lines, old, start)
    if hunk.at_end:
        found = [at for at in found if at + len(old) == len(lines)]
    if not found:
        raise ToolError(f"{what} does not fit: {_misfit(lines, hunk, start)}")
    if hunk.hint is not None and hunk.hint in found:
        return hunk.hint
    if len(found) > 1 and not hunk.headings:
        where = places([at + 1 for at in found])
        raise ToolError(f"{what} fits in several places, at {where}. Add lines of context before or after it")
    return found[0]


def _insertion(lines: Sequence[str], hunk: Hunk, start: int, what: str) -> int:
    if hunk.hint is None:
        return start if hunk.headings and not hunk.at_end else len(lines)
    if not start <= hunk.hint <= len(lines):
        raise ToolError(f"{what} adds lines after line {hunk.hint}, but the file has {len(lines)} lines; give context")
    return hunk.hint


def _after(lines: Sequence[str], heading: str, start: int, what: str) -> int:
    wanted = heading.strip()
    for index in range(start, len(lines)):
        if lines[index].strip() == wanted:
            return index + 1
    raise ToolError(f"{what}: the line {heading!r} after @@ is not in the file, or stands before the hunk above it")


def _loosely(lines: Sequence[str], old: Sequence[str], start: int) -> list[int]:
    """Find `old` where only white space at line ends differs, which is easily lost on the way through a model."""
    return find_lines([line.rstrip() for line in lines], [line.rstrip() for line in old], start)


def _misfit(lines: Sequence[str], hunk: Hunk, start: int) -> str:
    old = hunk.old
    elsewhere = find_lines(lines, old)
    if elsewhere and elsewhere[0] < start:
        return f"its lines stand at line {elsewhere[0] + 1}, before the hunk above it; keep to the order of the file"
    if elsewhere:
        return "its lines are not at the end of the file; leave '*** End of File' out"
    return "its kept and removed lines are not in the file. " + nearest("\n".join(lines), "\n".join(old))


def _split(raw: str, newline: str) -> list[str]:
    separator = "\r" if newline == "\r" else "\n"
    *ended, last = raw.split(separator)
    return [line + separator for line in ended] + ([last] if last else [])


def _content(line: str) -> str:
    if line.endswith("\n"):
        return line[:-1].removesuffix("\r")
    return line.removesuffix("\r")


def _joined(lines: list[str], newline: str) -> str:
    """Join lines, and end each but the last: what was the last line without an end may have got a follower."""
    for index, line in enumerate(lines[:-1]):
        if not line.endswith(("\n", newline)):
            lines[index] = line + newline
    return "".join(lines)
