"""redactor: complete on the wire within its limits, for good in results, closed when it fails."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.core.interception import intercept_provider_request, intercept_tool_result
from chimera.frozen import freeze
from chimera.plugins import PluginManager
from chimera.plugins.packs import RedactorPlugin
from chimera.secrets import SecretDetector
from chimera.types import Message, ToolCall, ToolResult
from tests.plugins.packs.support import Seams
from tests.plugins.support import chains

SECRET = "sk-abcdefgh123"
DEEP = {"a": [{SECRET: {"b": (SECRET, [f"x {SECRET}"])}}], SECRET: 1}
SCHEMA = {
    "type": "function",
    "function": {
        "name": "deploy",
        "description": f"uses {SECRET}",
        "parameters": {"type": "object", "properties": {"p": {"default": SECRET, "enum": [SECRET]}}},
    },
}
FLAT = {"name": "deploy", "description": SECRET, "input_schema": {"properties": {SECRET: {}}}}
HISTORY = [
    Message.system(f"prompt {SECRET}"),
    Message.user(SECRET),
    Message.assistant("", [ToolCall("c1", "bash", DEEP)]),
    Message.tool("c1", f"out {SECRET}"),
    Message.assistant(f"said {SECRET}"),
    Message("user", "look", content_blocks=({"type": "text", "text": SECRET},)),
]


def seams(**options: Any) -> Seams:
    return Seams(RedactorPlugin(**options).interceptors())


def test_nothing_of_the_secret_is_left_in_any_part_of_the_envelope() -> None:
    kwargs = {"system": SECRET, "stop": [SECRET], "extra": {SECRET: SECRET}, "temperature": 0.5}
    headers = {"X-Note": SECRET, "authorization": "Bearer x", "Accept": "a"}
    sent = seams().request(list(HISTORY), tools=[SCHEMA, FLAT], kwargs=kwargs, headers=headers)
    assert SECRET not in repr(sent)
    assert repr(sent).count("[redacted]") >= 18
    assert sent.headers == {"X-Note": "[redacted]", "authorization": "[redacted]", "Accept": "a"}
    assert (sent.model, sent.kwargs["temperature"]) == ("m", 0.5)


def test_the_conversation_keeps_its_originals() -> None:
    before, history = repr(HISTORY), list(HISTORY)
    seams().request(history, tools=[SCHEMA])
    assert repr(HISTORY) == before
    assert all(kept is message for kept, message in zip(history, HISTORY, strict=True))
    assert SECRET in repr(SCHEMA)


def test_what_ties_messages_together_stays() -> None:
    sent = seams().request(list(HISTORY), tools=[SCHEMA, FLAT])
    assert [message.role for message in sent.messages] == [message.role for message in HISTORY]
    assert [message.call_id for message in sent.messages] == [message.call_id for message in HISTORY]
    assert [(call.id, call.name) for call in sent.messages[2].tool_calls] == [("c1", "bash")]
    assert sent.tools is not None
    assert (sent.tools[0]["function"]["name"], sent.tools[1]["name"]) == ("deploy", "deploy")


def test_a_tool_whose_name_looks_like_a_secret_keeps_it() -> None:
    tool = {"type": "function", "function": {"name": "secret-rotation", "description": "secret-rotation"}}
    call = Message.assistant("", [ToolCall("token-call-12345", "secret-rotation", {})])
    sent = seams().request([call], tools=[tool])
    assert sent.messages[0] is call
    assert sent.tools is not None
    assert dict(sent.tools[0]["function"]) == {"name": "secret-rotation", "description": "[redacted]"}


def test_a_clean_request_passes_as_the_same_object() -> None:
    one = seams()
    from chimera.core.interception import ProviderRequest

    request = ProviderRequest("m", [Message.user("hello")], freeze([{"name": "x"}]), {"a": {"b": 1}}, {"X": "y"})
    assert intercept_provider_request(one.bundle.provider_request, request)[0] is request
    bare = ProviderRequest("m", [])
    assert intercept_provider_request(one.bundle.provider_request, bare)[0] is bare


def test_images_pass_and_texts_in_blocks_do_not() -> None:
    image = {"type": "image", "source": {"type": "base64", "data": "sk-abcdefgh123AAAA"}}
    linked = {"type": "image_url", "image_url": {"url": "https://u:pw@host/x.png"}}
    document = {"type": "document", "source": {"type": "text", "data": SECRET}}
    message = Message("user", "x", content_blocks=(image, linked, document, {"text": SECRET}))
    (sent,) = seams().request([message]).messages
    assert [dict(block) for block in sent.content_blocks[:2]] == [image, linked]
    assert sent.content_blocks[0] is message.content_blocks[0]
    assert SECRET not in repr(sent.content_blocks[2:])


def test_a_call_whose_arguments_could_not_be_read_is_scrubbed_as_text() -> None:
    broken: Any = f'{{"command": "{SECRET}'
    (sent,) = seams().request([Message.assistant("", [ToolCall("1", "bash", broken)])]).messages
    assert str(sent.tool_calls[0].arguments) == '{"command": "[redacted]'


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just(SECRET),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.sampled_from(["a", SECRET, "b"]), x),
    max_leaves=12,
)


@given(st.lists(st.tuples(st.text(max_size=5), st.dictionaries(st.sampled_from(["a", SECRET]), JSON)), max_size=6))
def test_no_shape_of_conversation_lets_it_through(parts: list[tuple[str, dict[str, Any]]]) -> None:
    one, history = seams(), [Message.system(f"s {SECRET}")]
    for number, (text, arguments) in enumerate(parts):
        history.append(Message.assistant(text + SECRET * (number % 2), [ToolCall(str(number), "t", arguments)]))
        sent = one.request(list(history))
        assert SECRET not in repr(sent)
        assert [len(message.tool_calls) for message in sent.messages] == [
            len(message.tool_calls) for message in history
        ]


@pytest.mark.parametrize("named", [["Authorization"], ["AUTHORIZATION", "x-api-key"]])
def test_named_headers_go_as_a_whole_in_upper_or_lower_case(named: list[str]) -> None:
    headers = {"authorization": "Basic abc", "X-API-Key": "plain", "Other": "v"}
    sent = seams(headers=named).request([], headers=headers)
    gone = {name.lower() for name in named}
    assert sent.headers == {name: "[redacted]" if name.lower() in gone else text for name, text in headers.items()}


def test_without_a_header_surface_there_are_no_headers_to_replace() -> None:
    assert seams().request([Message.user(SECRET)], headers=None).headers is None


OWN = {"Authorization": f"Bearer {SECRET}", "X-Api-Key": SECRET, "X-Note": SECRET}


def test_headers_that_are_not_named_are_scrubbed() -> None:
    sent = seams().request([], headers=OWN)
    assert sent.headers == dict.fromkeys(OWN, "[redacted]")
    sent = seams(headers=["x-note", "authorization"]).request([], headers=OWN)
    assert sent.headers == dict.fromkeys(OWN, "[redacted]")


@pytest.mark.parametrize("named", [(), ("x-other",)])
def test_the_providers_own_key_passes_when_it_is_wanted_so(named: tuple[str, ...]) -> None:
    sent = seams(headers=named).request([Message.user(SECRET)], headers=OWN)
    assert sent.headers == {**OWN, "X-Note": "[redacted]"}
    assert sent.messages[0].content == "[redacted]"


@pytest.mark.parametrize("pattern", [r"acme-[0-9a-f]{4}", re.compile(r"ACME-[0-9A-F]{4}", re.IGNORECASE)])
def test_an_own_pattern_takes_the_place_of_all_rules(pattern: Any) -> None:
    sent = seams(pattern=pattern, replacement="***").request([Message.user(f"acme-00ff {SECRET}")])
    assert sent.messages[0].content == f"*** {SECRET}"


def test_output_and_error_of_a_result_are_scrubbed_and_metadata_is_not() -> None:
    result = ToolResult(f"out {SECRET}", f"err {SECRET}", {"raw": SECRET})
    assert seams().result(result) == ToolResult("out [redacted]", "err [redacted]", {"raw": SECRET})
    assert seams().result(ToolResult(SECRET)).success


def test_a_clean_result_passes_as_the_same_object() -> None:
    for result in (ToolResult("out"), ToolResult("", "err", {"raw": SECRET})):
        assert intercept_tool_result(seams().bundle.tool_result, ToolCall("1", "t"), result) is result


class Broken(SecretDetector):
    def scrub(self, text: str, replacement: str = "") -> str:
        raise RuntimeError(f"cannot scrub {text}")


def broken() -> RedactorPlugin:
    plugin = RedactorPlugin()
    vars(plugin)["_detector"] = Broken()
    return plugin


def test_when_scrubbing_fails_the_request_is_not_sent_and_the_secret_not_told() -> None:
    from chimera.core.interception import ProviderRequest

    chain = broken().interceptors().provider_request
    _, blocked = intercept_provider_request(chain, ProviderRequest("m", [Message.user(SECRET)]))
    assert blocked == "redactor: the request could not be scrubbed (RuntimeError) and was not sent"


def test_when_scrubbing_fails_the_result_is_withheld_and_the_secret_not_told() -> None:
    result = intercept_tool_result(broken().interceptors().tool_result, ToolCall("1", "t"), ToolResult(SECRET))
    assert result.output == (
        "[tool result withheld by interceptor: redactor: the result could not be scrubbed (RuntimeError)]"
    )
    assert result.success


def test_a_value_too_deep_to_scrub_is_not_sent() -> None:
    from chimera.core.interception import ProviderRequest

    plugin = RedactorPlugin()
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    request = ProviderRequest("m", [], None, {"x": deep})
    decision = plugin.interceptors().provider_request[0](request)
    assert decision is not None
    assert (decision.kind, "RecursionError" in decision.reason) == ("block", True)


def test_each_message_is_scanned_once_over_a_long_conversation() -> None:
    scanned: list[str] = []

    class Counting(SecretDetector):
        def scrub(self, text: str, replacement: str = "[redacted]") -> str:
            scanned.append(text)
            return super().scrub(text, replacement)

    plugin = RedactorPlugin()
    vars(plugin)["_detector"] = Counting()
    one = Seams(plugin.interceptors())
    tools = freeze([SCHEMA])
    history = [Message.user(SECRET)]
    for number in range(200):
        history.append(Message.tool(str(number), f"result {number}"))
        assert one.request([Message.system("prompt"), *history], tools=tools).messages[1].content == "[redacted]"
    in_the_schema = 15
    assert len(scanned) == 202 + in_the_schema


def test_conversations_do_not_mix_and_a_deactivated_redactor_still_works() -> None:
    plugin = RedactorPlugin()
    bundle = plugin.interceptors()
    for name in ("a", "b", "a", "b"):
        sent = Seams(bundle, name).request([Message.user(f"{name} {SECRET}")])
        assert sent.messages[0].content == f"{name} [redacted]"
    plugin.deactivate()
    assert Seams(bundle, "a").request([Message.user(SECRET)]).messages[0].content == "[redacted]"


def test_as_a_plugin_it_puts_the_same_chains_in_force() -> None:
    plugin = RedactorPlugin()
    PluginManager().load_plugin(plugin)
    bundle = plugin.interceptors()
    assert chains() == {"provider_request": bundle.provider_request, "tool_result": bundle.tool_result}
