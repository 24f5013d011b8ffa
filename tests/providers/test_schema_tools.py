from __future__ import annotations

from typing import Any

import fastjsonschema
import pytest

from chimera.errors import ConfigError
from chimera.providers.compatible import OpenAICompatibleProvider
from chimera.providers.schema_tools import answer_schema, constrain, in_words
from chimera.types import Message, ToolCall
from tests.providers.vendors import OPENAI
from tests.providers.wire_server import WireServer

LOOK = {"type": "object", "properties": {"far": {"type": "boolean"}}, "required": ["far"]}


def offer(name: str, parameters: Any = None, description: str = "") -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = [offer("look", LOOK, "Look around."), offer("wait")]
ANSWER: dict[str, Any] = {"answer": "done"}
LOOKING: dict[str, Any] = {"tool": "look", "arguments": {"far": True}}
WAITING: dict[str, Any] = {"tool": "wait", "arguments": {}}


def fits(value: Any, schema: dict[str, Any]) -> bool:
    try:
        fastjsonschema.validate(schema, value)
    except fastjsonschema.JsonSchemaException:
        return False
    return True


@pytest.mark.parametrize(
    ("choice", "allowed"),
    [
        (None, [ANSWER, LOOKING, WAITING]),
        ("auto", [ANSWER, LOOKING, WAITING]),
        ("required", [LOOKING, WAITING]),
        ("none", [ANSWER]),
        ({"type": "function", "function": {"name": "look"}}, [LOOKING]),
    ],
)
def test_an_answer_is_a_final_text_or_a_call_of_a_tool_on_offer(choice: Any, allowed: list[Any]) -> None:
    schema = answer_schema(TOOLS, choice)
    assert [value for value in (ANSWER, LOOKING, WAITING) if fits(value, schema)] == allowed
    for junk in ("text", {}, {**ANSWER, **LOOKING}, {"tool": "fly", "arguments": {}}, {"answer": 1}, {"tool": "wait"}):
        assert not fits(junk, schema)
    assert not fits({"tool": "look", "arguments": {}}, schema)
    assert not fits({"tool": "look", "arguments": {"far": "yes"}}, schema)


def test_schemas_of_tools_lose_what_no_constraint_can_be_made_of_and_keep_their_references() -> None:
    point = {"type": "object", "properties": {"x": {"type": "integer", "minimum": 0}}, "additionalProperties": False}
    parameters = {
        "type": "object",
        "$schema": "any",
        "title": "Arguments",
        "properties": {
            "pattern": {"type": "string", "pattern": "a+", "description": "what to find"},
            "from": {"$ref": "#/$defs/Point"},
            "more": {"type": "array", "items": {"$ref": "#/$defs/Point"}, "maxItems": 2},
            "either": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/Point"}], "default": None},
            "map": {"type": "object", "additionalProperties": {"type": "integer", "format": "int32"}},
            "closed": {"type": "object", "additionalProperties": False},
            "mode": {"enum": ["a", "b"]},
        },
        "required": ["pattern"],
        "$defs": {"Point": point},
    }
    schema = answer_schema([offer("first"), offer("f", parameters)])
    kept = schema["$defs"]["arguments1"]
    place = "#/$defs/arguments1/$defs/Point"
    assert kept == {
        "type": "object",
        "properties": {
            "pattern": {"type": "string"},
            "from": {"$ref": place},
            "more": {"type": "array", "items": {"$ref": place}, "maxItems": 2},
            "either": {"anyOf": [{"type": "null"}, {"$ref": place}]},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
            "closed": {"type": "object", "additionalProperties": False},
            "mode": {"enum": ["a", "b"]},
        },
        "required": ["pattern"],
        "$defs": {"Point": {**point, "properties": {"x": {"type": "integer"}}}},
    }
    good = {"tool": "f", "arguments": {"pattern": "a", "from": {"x": 1}, "more": [{"x": 2}], "either": None}}
    assert fits(good, schema)
    assert not fits({"tool": "f", "arguments": {"pattern": "a", "from": {"y": 1}}}, schema)


def test_a_conversation_is_told_in_words() -> None:
    calls = [ToolCall("x", "look", {"far": True}), ToolCall("y", "wait", {})]
    image = {"type": "image_url", "image_url": {"url": "data:..."}}
    messages = [
        Message.system("be brief"),
        Message.user("go"),
        Message.assistant("let me see", calls),
        Message("tool", "a door", (), "x", (image,)),
        Message.tool("y", "done"),
        Message.user("and now?"),
        Message.assistant("", [ToolCall("z", "look", {"é": 1})]),
        Message.tool("unknown", "lost"),
        Message.assistant("bye"),
    ]
    told = in_words(messages, None)
    assert [(message.role, message.content) for message in told] == [
        ("system", "be brief"),
        ("user", "go"),
        ("assistant", 'let me see\n{"tool": "look", "arguments": {"far": true}}\n{"tool": "wait", "arguments": {}}'),
        ("user", "Result of look:\na door\n\nResult of wait:\ndone\n\nand now?"),
        ("assistant", '{"tool": "look", "arguments": {"é": 1}}'),
        ("user", "Result of the tool:\nlost"),
        ("assistant", "bye"),
    ]
    assert told[3].content_blocks == (image,)
    assert not any(message.tool_calls for message in told)


@pytest.mark.parametrize("before", [[], [Message.system("be brief")]])
def test_tools_are_described_in_the_first_system_message(before: list[Message]) -> None:
    first, second = in_words([*before, Message.user("go")], TOOLS)
    assert (first.role, second) == ("system", Message.user("go"))
    assert first.content.startswith("be brief\n\n" if before else "You can use these tools:\n- look: Look around.")
    assert "- look: Look around." in first.content
    assert first.content.endswith("its result follows.")
    assert '"far": {"type": "boolean"}' in first.content
    assert "- wait: " in first.content


def test_a_body_is_constrained() -> None:
    body: dict[str, Any] = {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": True, "model": "m"}
    constrain(body)
    schema = {"name": "answer", "schema": answer_schema(TOOLS, "required")}
    assert body == {"model": "m", "response_format": {"type": "json_schema", "json_schema": schema}}
    own = {"response_format": {"type": "json_object"}, "tools": TOOLS}
    constrain(own)
    assert own == {"response_format": {"type": "json_object"}}
    plain: dict[str, Any] = {"model": "m"}
    constrain(plain)
    assert plain == {"model": "m"}


@pytest.mark.parametrize("way", ["native", "schema"])
def test_how_tools_are_offered_is_switched_by_the_provider(server: WireServer, way: Any) -> None:
    server.answer_with(OPENAI.whole("ok"))
    provider = OPENAI.make(server.url, tool_calling=way)
    provider.complete([Message.user("go")], TOOLS)
    provider.complete([Message.user("go")])
    offered, plain = (received.json for received in server.requests)
    assert ("tools" in offered, "response_format" in offered) == (way == "native", way == "schema")
    assert ("look" in str(offered["messages"])) is (way == "schema")
    assert plain["messages"] == [{"role": "user", "content": "go"}]
    assert not {"tools", "response_format"} & set(plain)
    assert provider.supports_tool_use


def test_another_way_is_refused() -> None:
    with pytest.raises(ConfigError, match="'native' or 'schema', not 'xml'"):
        OpenAICompatibleProvider("m", tool_calling="xml")  # type: ignore[arg-type]
