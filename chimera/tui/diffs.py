"""Differences as lines: what an edit changes, and what a policy made of a call."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from chimera.errors import ToolError
from chimera.text import clean
from chimera.types import ToolCall

__all__ = ["DiffLine", "call_diff", "call_lines", "edit_lines", "text_diff", "unified_lines"]

_AROUND = 2
_SLOW = 2_000
"""Lines beyond which no line is compared with any other: it would take seconds."""


class DiffLine(NamedTuple):
    """`mark` is `+`, `-`, a space for what is the same, or `@` for a heading."""

    mark: str
    text: str


def text_diff(before: str, after: str) -> list[DiffLine]:
    """Return the lines that differ, with a few around them; `@` stands where lines are left out."""
    old, new = clean(before).splitlines(), clean(after).splitlines()
    if len(old) + len(new) > _SLOW:
        return [*(DiffLine("-", line) for line in old), *(DiffLine("+", line) for line in new)]
    found: list[DiffLine] = []
    for number, group in enumerate(SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_AROUND)):
        if number or group[0][1]:
            found.append(DiffLine("@", f"line {group[0][1] + 1}"))
        for kind, i1, i2, j1, j2 in group:
            if kind == "equal":
                found += (DiffLine(" ", line) for line in old[i1:i2])
                continue
            found += (DiffLine("-", line) for line in old[i1:i2])
            found += (DiffLine("+", line) for line in new[j1:j2])
    return found


def call_lines(call: ToolCall) -> list[str]:
    """Return a call as lines: its name, then each argument with its whole value."""
    lines = [_name(call.name)]
    for key, value in call.arguments.items():
        text = clean(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
        name = _name(str(key))
        if "\n" in text:
            lines += [f"{name}:", *(f"  {line}" for line in text.split("\n"))]
        else:
            lines.append(f"{name}: {text}")
    return lines


def _name(text: str) -> str:
    return " ".join(clean(text).split())


def call_diff(original: ToolCall, effective: ToolCall) -> list[DiffLine]:
    """Return what a policy made of a call, all lines of both."""
    old, new = call_lines(original), call_lines(effective)
    found: list[DiffLine] = []
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            found += (DiffLine(" ", line) for line in old[i1:i2])
            continue
        found += (DiffLine("-", line) for line in old[i1:i2])
        found += (DiffLine("+", line) for line in new[j1:j2])
    return found


def edit_lines(call: ToolCall, was: str | None = None) -> list[DiffLine]:
    """Return what a call changes in files, as far as it tells; empty for a call that changes none.

    `was` is what stands in the file, where somebody looked.
    """
    reader = _EDITS.get(call.name)
    return list(reader(call.arguments, was)) if reader is not None else []


def unified_lines(text: str) -> Iterator[DiffLine]:
    """Read a patch, in an envelope or as a unified diff."""
    for line in clean(text).splitlines():
        if line.startswith(("+++", "---", "@@", "***", "diff ", "index ")):
            yield DiffLine("@", line)
        elif line[:1] in ("+", "-", " "):
            yield DiffLine(line[0], line[1:])
        else:
            yield DiffLine(" ", line)


def _replacement(arguments: Mapping[str, Any], _was: str | None) -> Iterator[DiffLine]:
    yield from text_diff(_text(arguments, "old_string"), _text(arguments, "new_string"))


def _blocks(arguments: Mapping[str, Any], _was: str | None) -> Iterator[DiffLine]:
    from chimera.tools.replace_in_file import parse_blocks

    text = _text(arguments, "diff")
    try:
        blocks = parse_blocks(text)
    except ToolError:  # the tool will refuse it too; a person still wants to see what it is
        yield from (DiffLine(" ", line) for line in clean(text).splitlines())
        return
    for block in blocks:
        yield from text_diff(block.search, block.replace or "")


def _content(arguments: Mapping[str, Any], was: str | None) -> Iterator[DiffLine]:
    yield from text_diff(was or "", _text(arguments, "content"))


def _patch(arguments: Mapping[str, Any], _was: str | None) -> Iterator[DiffLine]:
    yield from unified_lines(_text(arguments, "patch"))


def _text(arguments: Mapping[str, Any], key: str) -> str:
    value = arguments.get(key, "")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


_EDITS: dict[str, Callable[[Mapping[str, Any], str | None], Iterator[DiffLine]]] = {
    "edit_file": _replacement,
    "replace_in_file": _blocks,
    "write_file": _content,
    "apply_patch": _patch,
}
