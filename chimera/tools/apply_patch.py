"""Applying a patch over any number of files, all of it or nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from chimera.core.tool import ToolEnv
from chimera.errors import ToolError
from chimera.tools._atomic import Change, commit
from chimera.tools._base import ProjectTool, object_schema
from chimera.tools._envelope import BEGIN, parse_envelope
from chimera.tools._files import Mark, look, read_bytes
from chimera.tools._patch import FilePatch, added_text, apply_hunks
from chimera.tools._paths import Place, Project
from chimera.tools._text import Form, NotText, Text, decode
from chimera.tools._unified import parse_unified
from chimera.types import ToolResult

__all__ = ["ApplyPatchTool", "parse_patch", "touched_paths"]

_FENCE = re.compile(r"\s*```\w*\n(.*)\n```\s*", re.DOTALL)
_ENVELOPE = f"""{BEGIN}
*** Update File: src/a.py
@@ def f():
-    return 1
+    return 2
*** Add File: src/new.py
+x = 1
*** Delete File: src/old.py
*** End Patch"""


class ApplyPatchTool(ProjectTool):
    """Changes, adds, removes and renames files as a patch says, once every part of it is known to fit."""

    name = "apply_patch"
    description = (
        "Apply a patch to one or more files: either a unified diff as git writes it, or this form:\n"
        f"{_ENVELOPE}\n"
        "Lines begin with a space (kept), - (removed) or + (added); give about three kept lines around a change. "
        "A line after @@ names a line above the place, where the kept lines alone occur more than once. '*** Move to: "
        "PATH' after an Update line renames. If any part does not fit, nothing is changed."
    )
    parameters = object_schema(
        {"patch": {"type": "string", "minLength": 1, "description": "The whole patch. Paths are relative."}},
        required=("patch",),
    )
    effect = "write"

    def run(self, args: dict[str, Any], project: Project, env: ToolEnv | None) -> ToolResult:
        plan = _Plan(project)
        try:
            report = [plan.add(patch) for patch in parse_patch(args["patch"])]
            changes = plan.changes()
        except ToolError as error:
            raise ToolError(f"{error}\nNo file was changed.") from error
        commit(changes)
        return ToolResult("Applied the patch:\n" + "\n".join(report), metadata={"paths": plan.paths()})


def parse_patch(patch: str) -> list[FilePatch]:
    """Read a patch of either kind. Raises `ToolError` when it is neither, or malformed."""
    fenced = _FENCE.fullmatch(patch)
    text = fenced[1] if fenced else patch
    if text.lstrip().startswith(BEGIN):
        return parse_envelope(text)
    parts = parse_unified(text)
    if not parts:
        raise ToolError(f"the text is no unified diff and does not begin with {BEGIN!r}; the form is\n{_ENVELOPE}")
    return parts


def touched_paths(patch: str) -> tuple[str, ...]:
    """Return every path that `ApplyPatchTool` would write, remove or rename, as the patch has it, for policies.

    Raises `ToolError` for a patch that the tool would not take.
    """
    named = [path for part in parse_patch(patch) for path in (part.path, part.move_to) if path is not None]
    return tuple(dict.fromkeys(named))


@dataclass(slots=True)
class _File:
    """A file on its way: what is on disk, and what shall be there."""

    mark: Mark | None
    old: bytes | None
    data: bytes | None
    like: Mark | None = None
    executable: bool | None = None

    @property
    def changed(self) -> bool:
        return self.data != self.old or self.executable is not None


class _Plan:
    """The files that a patch touches, as they will be. Parts for one file build on each other."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._files: dict[Place, _File] = {}

    def add(self, patch: FilePatch) -> str:
        """Take in one part of the patch and return a line about it."""
        place = self._project.locate(patch.path)
        if patch.action == "add":
            return self._create(place, patch)
        file = self._existing(place)
        if patch.action == "delete":
            return self._delete(place, file, patch)
        data = _patched(file, patch).encode() if patch.hunks else file.data
        if patch.move_to is not None:
            return self._move(place, file, data, patch)
        if data == file.data and patch.executable is None:
            raise ToolError(f"the patch changes nothing in {patch.path!r}")
        file.data, file.executable = data, patch.executable
        return f"M {place}"

    def changes(self) -> list[Change]:
        """Return what is to be done on disk. Raises `ToolError` when it is nothing."""
        changed = [(place, file) for place, file in self._files.items() if file.changed]
        if not changed:
            raise ToolError("the patch changes nothing")
        return [Change(place, file.mark, file.data, file.old, file.like, file.executable) for place, file in changed]

    def paths(self) -> list[str]:
        return [str(place) for place in self._files]

    def _create(self, place: Place, patch: FilePatch) -> str:
        self._fill(place, Form().encode(added_text(patch)), patch.executable)
        return f"A {place}"

    def _delete(self, place: Place, file: _File, patch: FilePatch) -> str:
        if patch.hunks and _patched(file, patch).raw:
            raise ToolError(f"the patch deletes {patch.path!r}, but the file has lines that the patch does not remove")
        file.data = None
        return f"D {place}"

    def _move(self, place: Place, file: _File, data: bytes | None, patch: FilePatch) -> str:
        target = self._project.locate(patch.move_to or "")
        self._fill(target, data, patch.executable, like=file.like or file.mark)
        file.data = None
        return f"R {place} -> {target}"

    def _fill(self, place: Place, data: bytes | None, executable: bool | None, like: Mark | None = None) -> None:
        file = self._files.get(place) or self._load(place)
        if file.data is not None:
            raise ToolError(f"{str(place)!r} exists already; the patch cannot add it, only update it")
        file.data, file.executable, file.like = data, executable, like
        self._files[place] = file

    def _existing(self, place: Place) -> _File:
        file = self._files.get(place) or self._load(place, required=True)
        if file.data is None:
            raise ToolError(f"the patch has removed {str(place)!r} before it changes it")
        self._files[place] = file
        return file

    def _load(self, place: Place, *, required: bool = False) -> _File:
        if not required and look(place) is None:
            return _File(None, None, None)
        snapshot = read_bytes(place)
        return _File(snapshot.mark, snapshot.data, snapshot.data)


def _patched(file: _File, patch: FilePatch) -> Text:
    try:
        text = decode(file.data or b"")
    except NotText as error:
        raise ToolError(f"{patch.path!r}: {error}, which a patch cannot change") from error
    return apply_hunks(text, patch.hunks, patch.path)
