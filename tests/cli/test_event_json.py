from __future__ import annotations

import json
from typing import Any

import pytest

from chimera.cli.decisions import Decision
from chimera.cli.event_json import event_json, result_json
from chimera.core.loop_events import LoopEvent, LoopEventType, LoopResult
from chimera.events import CompactionEvent, InterceptorEvent
from chimera.types import Message, ToolCall, ToolResult

CALL = ToolCall("1", "bash", {"command": "ls"})
CALL_JSON = {"id": "1", "name": "bash", "arguments": {"command": "ls"}}
GATE = InterceptorEvent(seam="tool_call", decision="blocked", reason="no", tool_name="bash", call_id="1")
SAMPLES: dict[LoopEventType, tuple[Any, dict[str, Any]]] = {
    LoopEventType.STREAM_START: ("m", {"model": "m"}),
    LoopEventType.ASSISTANT_CHUNK: ("a", {"text": "a"}),
    LoopEventType.THINKING_CHUNK: ("a", {"text": "a"}),
    LoopEventType.ASSISTANT: (Message.assistant("hi", [CALL]), {"text": "hi", "tool_calls": [CALL_JSON]}),
    LoopEventType.TOOL_USE: (CALL, {"call": CALL_JSON}),
    LoopEventType.TOOL_RESULT: ((CALL, ToolResult("o", "e")), {"call": CALL_JSON, "output": "o", "error": "e"}),
    LoopEventType.INTERCEPTOR: (
        GATE,
        {
            "seam": "tool_call",
            "decision": "blocked",
            "tool": "bash",
            "call_id": "1",
            "interceptor": "",
            "reason": "no",
            "version": "",
            "microseconds": 0.0,
            "depth": 0,
        },
    ),
    LoopEventType.COMPACT_BOUNDARY: (
        CompactionEvent(before=4, after=2, strategy="s"),
        {"before": 4, "after": 2, "strategy": "s"},
    ),
    LoopEventType.SYSTEM: (Message.user("x"), {"text": "x"}),
    LoopEventType.ERROR: ("broken", {"text": "broken"}),
    LoopEventType.RESULT: (LoopResult("completed"), result_json(LoopResult("completed"), [])),
}


@pytest.mark.parametrize("kind", LoopEventType)
def test_every_event_is_an_object_with_its_type_and_turn(kind: LoopEventType) -> None:
    data, fields = SAMPLES[kind]
    event = event_json(LoopEvent(kind, data, 3), [])
    assert event == {"type": kind.value, "turn": 3, **fields}
    assert json.loads(json.dumps(event)) == event


def test_a_system_event_may_be_plain_text() -> None:
    assert event_json(LoopEvent(LoopEventType.SYSTEM, "x"), [])["text"] == "x"


def test_the_result_holds_all_that_a_program_needs() -> None:
    decision = Decision("permission", "denied", "bash", "user", None, None)
    result = LoopResult(
        "max_turns", usage={"input_tokens": 1}, cost_usd=0.5, duration_ms=1.26, turn_count=2, output="t"
    )
    assert result_json(result, [decision]) == {
        "text": "t",
        "reason": "max_turns",
        "success": False,
        "usage": {"input_tokens": 1},
        "cost_usd": 0.5,
        "steps": 2,
        "duration_ms": 1.3,
        "decisions": [decision.as_json()],
    }
