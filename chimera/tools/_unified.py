"""Reading unified diffs, as `diff -u` and git write them and as models do, who cannot count lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from chimera.errors import ToolError
from chimera.tools._patch import FilePatch, Hunk, Line

__all__ = ["parse_range", "parse_unified"]

_RANGE = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_SAME_NAME = re.compile(r"diff --git a/(.+) b/\1")
_ESCAPE = re.compile(r"\\([0-7]{3}|.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_REFUSED = ("GIT binary patch", "Binary files ", "copy from ", "copy to ")
_NOWHERE = "/dev/null"
_BODY = (" ", "+", "-", "\\")
_SIGNATURE = "--"  # begins the last lines of a mailed patch


@dataclass(slots=True)
class _Section:
    """The headers of one file's part of a diff, and its hunks.

    `name` is the name in the `diff --git` line, the only one where nothing but the mode changes. It counts when it is
    there twice and unquoted; a line that could be read in two ways must not be read in one way here and another in a
    policy.
    """

    old: str | None = None
    new: str | None = None
    git: bool = False
    name: str = ""
    renamed: dict[str, str] = field(default_factory=dict)
    mode: str = ""
    created: bool = False
    deleted: bool = False
    hunks: list[Hunk] = field(default_factory=list)


class _Reader:
    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.at = 0
        self.sections: list[_Section] = []

    def read(self) -> list[_Section]:
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.startswith("@@"):
                self._hunk(line)
                continue
            self.at += 1
            if line.startswith("diff --git "):
                same = _SAME_NAME.fullmatch(line)
                self.sections.append(_Section(git=True, name=same[1].strip() if same else ""))
            elif _is_header(self.lines, self.at - 1):
                self._names(line)
            else:
                self._extended(line)
        return self.sections

    def _names(self, line: str) -> None:
        if not self.sections or self.sections[-1].old is not None or self.sections[-1].hunks:
            self.sections.append(_Section())
        self.sections[-1].old = _file_name(line)
        self.sections[-1].new = _file_name(self.lines[self.at])
        self.at += 1

    def _extended(self, line: str) -> None:
        """Read a header line of git. Other text between the parts, a commit message say, is passed over."""
        if line.startswith(_REFUSED):
            raise ToolError(f"{line.strip()!r}: binary patches and copies are not supported; use bash for these")
        if line[:1] in ("+", "-") and line.rstrip() != _SIGNATURE and self.sections and self.sections[-1].hunks:
            raise ToolError(f"the patch has a stray line {line!r} at its line {self.at}; every hunk begins with @@")
        if not self.sections:
            return
        section = self.sections[-1]
        keyword, _, value = line.partition(" ")
        if keyword == "rename" and section.git:
            direction, _, name = value.partition(" ")
            section.renamed[direction] = _unquoted(name.strip())
        elif (found := re.fullmatch(r"(old|new|new file|deleted file) mode (\d{6})", line)) and section.git:
            section.created |= found[1] == "new file"
            section.deleted |= found[1] == "deleted file"
            section.mode = found[2] if found[1].startswith("new") else section.mode

    def _hunk(self, header: str) -> None:
        if not self.sections or (self.sections[-1].old is None):
            raise ToolError("a hunk stands before any '--- old' and '+++ new' lines; say which file it is for")
        counts = parse_range(header)
        self.at += 1
        self.sections[-1].hunks.append(self._body(counts))

    def _body(self, counts: tuple[int, int, int] | None) -> Hunk:
        hint, old, new = counts or (None, 0, 0)
        body: list[Line] = []
        while self.at < len(self.lines) and self._belongs(old, new):
            line = self.lines[self.at]
            self.at += 1
            if line.startswith("\\"):
                body[-1:] = [item._replace(bare=True) for item in body[-1:]]
                continue
            body.append(Line(line[:1] or " ", line[1:]))
            old -= body[-1].kind != "+"
            new -= body[-1].kind != "-"
        if hint is not None and counts and counts[1] and all(line.kind == "+" for line in body):
            raise ToolError("a hunk adds lines without any line of context; give the lines around the place")
        return Hunk(tuple(body), hint)

    def _belongs(self, old: int, new: int) -> bool:
        """Say whether the next line is one of the hunk, which by its header still lacks so many old and new lines."""
        line = self.lines[self.at]
        if not line:
            return self._goes_on()
        if line[0] not in _BODY:
            return False
        if _is_header(self.lines, self.at):
            return self._only_looks_like_header(old, new)
        return old > 0 or new > 0 or line.rstrip() != _SIGNATURE

    def _only_looks_like_header(self, old: int, new: int) -> bool:
        """Tell a removed `-- x` that is followed by an added `++ y` from the header of the next file."""
        header_of_hunk = self.at + 2 < len(self.lines) and self.lines[self.at + 2].startswith("@@")
        return old == new == 1 if header_of_hunk else old > 0 and new > 0

    def _goes_on(self) -> bool:
        """Say whether the hunk goes on after blank lines, which are kept ones that lost their leading space."""
        for index in range(self.at, len(self.lines)):
            line = self.lines[index]
            if line:
                return line[0] in _BODY and line.rstrip() != _SIGNATURE and not _is_header(self.lines, index)
        return False


def parse_range(line: str) -> tuple[int, int, int] | None:
    """Read `@@ -l,s +l,s @@`: the index of the first old line and both counts; None when the line has no numbers."""
    found = _RANGE.match(line)
    if found is None:
        return None
    start, old, new = int(found[1]), int(found[2] or 1), int(found[4] or 1)
    return (start if old == 0 else max(start - 1, 0)), old, new


def parse_unified(patch: str) -> list[FilePatch]:
    """Read a unified diff over any number of files. Raises `ToolError` for what it cannot take.

    The counts in `@@` lines tell a removed `-- x` from a file header; elsewhere the lines themselves decide.
    """
    lines = [line.removesuffix("\r") for line in patch.split("\n")]
    return [_file_patch(section) for section in _Reader(lines).read()]


def _is_header(lines: Sequence[str], at: int) -> bool:
    return lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")


def _file_patch(section: _Section) -> FilePatch:
    old, new = _names_of(section)
    if section.mode[:3] not in ("", "100"):
        raise ToolError(f"the patch makes {new!r} a symlink or a submodule, which is not supported; use bash for that")
    executable = section.mode == "100755" if section.mode else None
    hunks = tuple(section.hunks)
    if old == _NOWHERE or section.created:
        return FilePatch("add", new, hunks, executable=executable)
    if new == _NOWHERE or section.deleted:
        return FilePatch("delete", old, hunks)
    if section.renamed:
        return FilePatch("update", old, hunks, new, executable)
    if not hunks and executable is None:
        raise ToolError(f"the patch has no hunk for {new!r}; it may be cut off")
    return FilePatch("update", new, hunks, executable=executable)


def _names_of(section: _Section) -> tuple[str, str]:
    if "from" in section.renamed and "to" in section.renamed:
        return section.renamed["from"], section.renamed["to"]
    old, new = section.old or section.name, section.new or section.name
    if not old or not new or section.renamed:
        raise ToolError("the patch has a part whose file name cannot be read")
    if old.startswith(("a/", _NOWHERE)) and new.startswith(("b/", _NOWHERE)):
        return old.removeprefix("a/"), new.removeprefix("b/")
    return old, new


def _file_name(line: str) -> str:
    return _unquoted(line[4:].split("\t")[0].rstrip())


def _unquoted(name: str) -> str:
    """Undo git's quoting of unusual names: C escapes, with bytes in octal."""
    if len(name) < 2 or not (name.startswith('"') and name.endswith('"')):
        return name
    plain = _ESCAPE.sub(lambda found: _unescaped(found[1]), name[1:-1])
    return plain.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _unescaped(code: str) -> str:
    if len(code) == 3:
        return bytes([int(code, 8) & 0xFF]).decode("ascii", "surrogateescape")
    return _ESCAPED.get(code, code)
