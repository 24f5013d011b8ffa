"""Tools for models that do not obey `tools`: offered in words, and chosen through an answer that a schema constrains.

The model answers with one JSON object: the name of a tool with arguments that fit the tool's schema, or a final text.
Servers that constrain what is generated (`response_format` with a JSON schema) leave even a small model no other way.
`chimera.providers.schema_answers` reads such answers back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from chimera.providers.reading import dump_arguments
from chimera.types import Message, ToolCall

__all__ = ["ANSWER", "ARGUMENTS", "TOOL", "answer_schema", "constrain", "in_words"]

ANSWER, TOOL, ARGUMENTS = "answer", "tool", "arguments"
_OFFER = "You can use these tools:"
# Small models mind best what they read last, and call tools for everything where that is told first.
_RULES = (
    f'Answer with one JSON object and nothing else. To talk to the user: {{"{ANSWER}": TEXT}}. Only when a tool is '
    f'needed: {{"{TOOL}": NAME, "{ARGUMENTS}": {{...}}}}; its result follows.'
)
_KEPT = frozenset({"type", "enum", "const", "required", "minItems", "maxItems"})
_INNER = frozenset({"items", "additionalProperties"})
_INNER_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_INNER_NAMED = frozenset({"properties", "$defs", "definitions"})

Tools = Sequence[Mapping[str, Any]]


def in_words(messages: Sequence[Message], tools: Tools | None) -> list[Message]:
    """Return the conversation without tool calls and tool messages: calls become the text that asks for them, results
    become words of the user. The tools on offer are described in the first system message.

    Neighbouring user messages are merged, because many templates of chat models want the roles to alternate.
    """
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    told = [_told(message, names) for message in messages]
    if tools:
        first = told.pop(0).content if told and told[0].role == "system" else ""
        told.insert(0, Message.system("\n\n".join(filter(None, (first, _described(tools))))))
    return _merged(told)


def constrain(body: dict[str, Any]) -> None:
    """Put a schema for the answer into a request body in place of its `tools` and what belongs to them.

    A `response_format` that is already there stays.
    """
    tools = body.pop("tools", None)
    choice = body.pop("tool_choice", None)
    body.pop("parallel_tool_calls", None)
    if tools:
        schema = {"name": ANSWER, "schema": answer_schema(tools, choice)}
        body.setdefault("response_format", {"type": "json_schema", "json_schema": schema})


def answer_schema(tools: Tools, choice: Any = None) -> dict[str, Any]:
    """Return the schema of an answer. `choice` is the protocol's `tool_choice`: `"auto"` or None, `"none"`,
    `"required"`, or the one function to call.

    Schemas of tools keep only what servers can turn into constraints; whoever runs the call checks the rest.
    """
    wanted = choice["function"]["name"] if isinstance(choice, Mapping) else None
    definitions: dict[str, Any] = {}
    ways: list[dict[str, Any]] = []
    for index, function in enumerate(tool["function"] for tool in tools):
        if choice == "none" or wanted not in (None, function["name"]):
            continue
        place = f"{ARGUMENTS}{index}"
        definitions[place] = {"type": "object", **_portable(function.get("parameters") or {}, f"#/$defs/{place}")}
        ways.append(_exactly({TOOL: {"const": function["name"]}, ARGUMENTS: {"$ref": f"#/$defs/{place}"}}))
    if choice != "required" and wanted is None:
        ways.append(_exactly({ANSWER: {"type": "string"}}))
    return {"anyOf": ways, "$defs": definitions}


def _exactly(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _portable(schema: Any, root: str) -> Any:
    """Return a schema whose references start at `root`, without what not every server understands."""
    if not isinstance(schema, Mapping):
        return schema
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "$ref" and isinstance(value, str):
            kept[key] = root + value[1:] if value.startswith("#") else value
        elif key in _INNER:
            kept[key] = _portable(value, root)
        elif key in _INNER_LISTS:
            kept[key] = [_portable(item, root) for item in value]
        elif key in _INNER_NAMED:
            kept[key] = {name: _portable(item, root) for name, item in value.items()}
        elif key in _KEPT:
            kept[key] = value
    return kept


def _described(tools: Tools) -> str:
    return "\n".join([_OFFER, *(_description(tool["function"]) for tool in tools), "", _RULES])


def _description(function: Mapping[str, Any]) -> str:
    schema = json.dumps(function.get("parameters") or {}, ensure_ascii=False, default=dict)
    return f"- {function['name']}: {function.get('description', '')}\n  {ARGUMENTS}: {schema}"


def _told(message: Message, names: Mapping[str, str]) -> Message:
    if message.role == "tool":
        name = names.get(message.call_id or "", "the tool")
        return Message("user", f"Result of {name}:\n{message.content}", content_blocks=message.content_blocks)
    if message.tool_calls:
        words = "\n".join(filter(None, (message.content, *map(_asked, message.tool_calls))))
        return replace(message, content=words, tool_calls=())
    return message


def _asked(call: ToolCall) -> str:
    return json.dumps({TOOL: call.name, ARGUMENTS: dump_arguments(call.arguments)}, ensure_ascii=False)


def _merged(messages: Iterable[Message]) -> list[Message]:
    merged: list[Message] = []
    for message in messages:
        if message.role == "user" and merged and merged[-1].role == "user":
            last = merged.pop()
            content = "\n\n".join(filter(None, (last.content, message.content)))
            message = Message("user", content, content_blocks=(*last.content_blocks, *message.content_blocks))
        merged.append(message)
    return merged
