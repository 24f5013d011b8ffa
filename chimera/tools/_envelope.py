"""Reading the `*** Begin Patch` envelope that coding models are trained to write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from chimera.errors import ToolError
from chimera.tools._patch import FilePatch, Hunk, Line
from chimera.tools._unified import parse_range

__all__ = ["BEGIN", "parse_envelope"]

BEGIN = "*** Begin Patch"
_END, _EOF, _MOVE = "*** End Patch", "*** End of File", "*** Move to: "
_ACTIONS: dict[str, Literal["add", "delete", "update"]] = {
    "*** Add File: ": "add",
    "*** Delete File: ": "delete",
    "*** Update File: ": "update",
}


@dataclass(slots=True)
class _Draft:
    """A hunk that is still being read."""

    lines: list[Line] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)
    hint: int | None = None
    at_end: bool = False

    def finished(self) -> Hunk:
        """Return the hunk; blank lines after its last change do not count, they may be there for looks."""
        while not self.at_end and len(self.lines) > 1 and self.lines[-1] == (" ", "", False):
            self.lines.pop()
        return Hunk(tuple(self.lines), self.hint, tuple(self.headings), self.at_end)


def parse_envelope(patch: str) -> list[FilePatch]:
    """Read a patch in an envelope. Raises `ToolError` naming the line that does not belong."""
    lines = [line.removesuffix("\r") for line in patch.strip().split("\n")]
    if lines[-1].strip() != _END:
        raise ToolError(f"the patch does not end with {_END!r}; it may be cut off. Nothing was changed")
    starts = [index for index, line in enumerate(lines) if line.startswith(tuple(_ACTIONS))]
    if not starts:
        forms = " or ".join(repr(header + "PATH") for header in _ACTIONS)
        raise ToolError(f"the patch changes no file; after {BEGIN!r} each file begins with {forms}")
    _require_blank(lines[1 : starts[0]])
    ends = [*starts[1:], len(lines) - 1]
    return [_section(lines[start:end], start) for start, end in zip(starts, ends, strict=True)]


def _require_blank(lines: Sequence[str]) -> None:
    for line in lines:
        if line.strip():
            raise ToolError(f"{line!r} stands before the first file of the patch")


def _section(lines: Sequence[str], offset: int) -> FilePatch:
    header = next(header for header in _ACTIONS if lines[0].startswith(header))
    action, path = _ACTIONS[header], lines[0].removeprefix(header).strip()
    body, offset = lines[1:], offset + 2
    if action == "update":
        return _update(path, body, offset)
    if action == "delete":
        _require_blank(body)
        return FilePatch(action, path)
    return FilePatch(action, path, (Hunk(tuple(_added(body, offset))),))


def _added(body: Sequence[str], offset: int) -> list[Line]:
    while body and not body[-1]:
        body = body[:-1]
    for number, line in enumerate(body, offset):
        if not line.startswith("+"):
            raise ToolError(f"line {number} of the patch, {line!r}: every line of an added file begins with '+'")
    return [Line("+", line[1:]) for line in body]


def _update(path: str, body: Sequence[str], offset: int) -> FilePatch:
    move_to = None
    if body and body[0].startswith(_MOVE):
        move_to = body[0].removeprefix(_MOVE).strip()
        body, offset = body[1:], offset + 1
    hunks = _hunks(body, offset)
    if not hunks and move_to is None:
        raise ToolError(f"the patch has no hunk for {path!r}; it may be cut off")
    return FilePatch("update", path, tuple(hunks), move_to)


def _hunks(body: Sequence[str], offset: int) -> list[Hunk]:
    drafts = [_Draft()]
    while body and not body[-1]:
        body = body[:-1]
    for number, line in enumerate(body, offset):
        if line.startswith("@@"):
            if drafts[-1].lines:
                drafts.append(_Draft())
            _locate(drafts[-1], line)
        elif line.strip() == _EOF:
            drafts[-1].at_end = True
            drafts.append(_Draft())
        elif line[:1] in ("", " ", "+", "-"):
            drafts[-1].lines.append(Line(line[:1] or " ", line[1:]))
        elif line.startswith("\\ No newline"):
            drafts[-1].lines[-1:] = [item._replace(bare=True) for item in drafts[-1].lines[-1:]]
        else:
            raise ToolError(f"line {number} of the patch, {line!r}, begins with none of ' ', '+', '-' and '@@'")
    return [draft.finished() for draft in drafts if draft.lines]


def _locate(draft: _Draft, line: str) -> None:
    numbers = parse_range(line)
    if numbers is not None:
        draft.hint = numbers[0]
    elif heading := line[2:].strip().removesuffix("@@").strip():
        draft.headings.append(heading)
