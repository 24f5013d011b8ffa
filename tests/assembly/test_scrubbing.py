from __future__ import annotations

from typing import Any

import pytest

from chimera.assembly.scrubbing import scrubbed, scrubbed_text
from chimera.core.loop_events import LoopEvent, LoopEventType, LoopResult
from chimera.events import InterceptorEvent
from chimera.types import Message, ToolCall, ToolResult

KEY = "sk-" + "a1B2c3D4" * 3
CALL = ToolCall("1", "bash", {"command": f"echo {KEY}"})


@pytest.mark.parametrize(
    ("kind", "data", "clean"),
    [
        (LoopEventType.INTERCEPTOR, InterceptorEvent(reason=f"has {KEY}"), lambda data: data.reason),
        (LoopEventType.TOOL_RESULT, (CALL, ToolResult("out", f"has {KEY}", {"n": 1})), lambda data: data[1].error),
        (LoopEventType.SYSTEM, f"has {KEY}", str),
        (LoopEventType.ERROR, f"has {KEY}", str),
        (LoopEventType.RESULT, LoopResult(f"error: has {KEY}"), lambda data: data.reason.removeprefix("error: ")),
        (LoopEventType.RESULT, LoopResult("interceptor_blocked: x", output=f"has {KEY}"), lambda data: data.output),
    ],
)
def test_what_the_program_says_holds_no_secret(kind: LoopEventType, data: Any, clean: Any) -> None:
    event = scrubbed(LoopEvent(kind, data, 3))
    assert clean(event.data) == "has [redacted]"
    assert (event.type, event.turn) == (kind, 3)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (LoopEventType.ASSISTANT, Message.assistant(KEY, [CALL])),
        (LoopEventType.ASSISTANT_CHUNK, KEY),
        (LoopEventType.TOOL_USE, CALL),
        (LoopEventType.TOOL_RESULT, (CALL, ToolResult(KEY))),
        (LoopEventType.TOOL_RESULT, (CALL, ToolResult("", "plain"))),
        (LoopEventType.SYSTEM, Message.user(KEY)),
        (LoopEventType.INTERCEPTOR, InterceptorEvent(reason="plain")),
        (LoopEventType.RESULT, LoopResult("completed", output=KEY)),
    ],
)
def test_the_conversation_is_left_as_it_is(kind: LoopEventType, data: Any) -> None:
    event = LoopEvent(kind, data)
    assert scrubbed(event) is event


def test_text() -> None:
    assert scrubbed_text(f"a {KEY} b") == "a [redacted] b"
