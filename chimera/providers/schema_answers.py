"""Reading answers that a schema constrained back into tool calls and texts, whole or while they arrive."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from chimera.providers.base import Response, StreamChunk
from chimera.providers.chat_protocol import ChatAssembler, read_completion
from chimera.providers.reading import make_call
from chimera.providers.schema_tools import ANSWER, ARGUMENTS, TOOL

__all__ = ["AnswerText", "SchemaAssembler", "read_answer", "read_constrained"]

_HEAD = re.compile(rf'\s*\{{\s*"({ANSWER}|{TOOL})"\s*:\s*"')
_HEADS = (f'{{"{ANSWER}":"', f'{{"{TOOL}":"')
_CUT_CALL = re.compile(rf'\s*\{{\s*"{TOOL}"\s*:\s*"([^"\\]*)"\s*,\s*"{ARGUMENTS}"\s*:')
_HIGH, _HEX = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[0-9a-fA-F]{4}"
# What of a JSON string can be decoded for itself; a high surrogate waits for what follows it.
_UNITS = re.compile(
    rf'(?:[^"\\]+|\\[^u]|{_HIGH}{_HEX}|{_HIGH}(?=[^\\]|\\[^u])|\\u(?![dD][89abAB])[0-9a-fA-F]{{4}})*', re.DOTALL
)


class AnswerText:
    """Takes the pieces of a constrained answer and gives the text that can be shown at once.

    That is the decoded final answer, nothing of an answer that uses a tool, and an answer of any other shape as it is.
    """

    def __init__(self) -> None:
        self._held = ""
        self._pass_on: Callable[[], str] = self._begin

    def feed(self, piece: str) -> str:
        self._held += piece
        return self._pass_on() if self._held else ""

    def _begin(self) -> str:
        head = _HEAD.match(self._held)
        if head is None:
            start = "".join(self._held.split())
            if any(known.startswith(start) for known in _HEADS):
                return ""
            self._pass_on = self._as_it_is
        elif head[1] == TOOL:
            self._pass_on = self._nothing
        else:
            self._held = self._held[head.end() :]
            self._pass_on = self._decoded
        return self._pass_on()

    def _as_it_is(self) -> str:
        text, self._held = self._held, ""
        return text

    def _nothing(self) -> str:
        self._held = ""
        return ""

    def _decoded(self) -> str:
        found = _UNITS.match(self._held)
        assert found is not None, "the pattern matches the empty text"
        self._held = self._held[found.end() :]
        if self._held.startswith('"'):
            self._pass_on = self._nothing
        try:
            text: str = json.loads(f'"{found[0]}"', strict=False)
        except ValueError:  # an escape that JSON does not know
            return found[0]
        return text


class SchemaAssembler(ChatAssembler):
    """A `ChatAssembler` for constrained answers."""

    def __init__(self) -> None:
        super().__init__()
        self._shown = AnswerText()

    def add(self, payload: Mapping[str, Any]) -> StreamChunk | None:
        chunk = super().add(payload)
        if chunk is None:
            return None
        text = self._shown.feed(chunk.text)
        return StreamChunk(text, chunk.thinking) if text or chunk.thinking else None

    def response(self) -> Response:
        return read_answer(super().response())


def read_constrained(payload: Mapping[str, Any]) -> Response:
    """Read a whole completion. Raises `WireError` when it holds none."""
    return read_answer(read_completion(payload))


def read_answer(response: Response) -> Response:
    """Return what a constrained answer says. Calls that the service made by itself, and texts of other shapes, stay.

    Of an answer that was cut off, the beginning of a final text is kept; a call becomes one that cannot run.
    """
    if response.tool_calls:
        return response
    try:
        value = json.loads(response.content, strict=False)
    except (ValueError, RecursionError):
        return _cut_off(response)
    if isinstance(value, dict):
        if isinstance(value.get(TOOL), str):
            return _with_call(response, value[TOOL], value.get(ARGUMENTS))
        if isinstance(value.get(ANSWER), str):
            return replace(response, content=value[ANSWER])
    return response


def _cut_off(response: Response) -> Response:
    call = _CUT_CALL.match(response.content)
    if call is not None:
        return _with_call(response, call[1], response.content)
    head = _HEAD.match(response.content)
    return replace(response, content=AnswerText().feed(response.content)) if head and head[1] == ANSWER else response


def _with_call(response: Response, name: str, arguments: object) -> Response:
    reason = "tool_calls" if response.finish_reason in (None, "stop") else response.finish_reason
    return replace(response, content="", tool_calls=(make_call("", name, arguments),), finish_reason=reason)
