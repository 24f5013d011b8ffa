"""The four seams through the real loops: when each fires, what it sees, what it may replace, and what a block is."""

from __future__ import annotations

from typing import Any

import pytest

from chimera.core.interception import SEAMS, InterceptDecision, Interceptors, ProviderRequest
from chimera.core.loop_events import LoopEventType
from chimera.core.middleware import LoopMiddleware
from chimera.core.truncation import Truncation
from chimera.types import Message, ToolCall, ToolResult
from tests.core.driving import Boom, Note, Ran, assert_acceptable, calling, drive, every_mode, held, tool_texts

allow, replace, block = InterceptDecision.allow, InterceptDecision.replace, InterceptDecision.block
PRE_PROVIDER = ("context", "provider_request")


class Spy:
    """Notes what it is handed on each seam, and allows."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, tuple[Any, ...]]] = []

    def chains(self) -> Interceptors:
        return Interceptors(**{seam: [self._on(seam)] for seam in SEAMS})

    def on(self, seam: str) -> list[tuple[Any, ...]]:
        return [values for name, values in self.seen if name == seam]

    def _on(self, seam: str) -> Any:
        def spy(*values: Any) -> None:
            self.seen.append((seam, values))

        return spy


def one_seam(seam: str, *chain: Any) -> Interceptors:
    return Interceptors(**{seam: list(chain)})


@every_mode
def test_each_seam_fires_at_its_point_in_the_order_of_a_turn(mode: str) -> None:
    spy = Spy()
    drive(mode, [calling("note", ("note", {"n": 2})), "done"], [Note()], held(spy.chains()))
    first_turn = ["context", "provider_request", "tool_call", "tool_call", "tool_result", "tool_result"]
    assert [seam for seam, _ in spy.seen] == [*first_turn, "context", "provider_request"]


@every_mode
def test_each_seam_sees_what_it_is_promised(mode: str) -> None:
    spy, note = Spy(), Note()
    ran = drive(mode, [calling(("note", {"n": 1})), "done"], [note], held(spy.chains()))
    [(first,), (second,)] = spy.on("context")
    assert first == [Message.system("be good"), Message.user("go")]
    assert second == [Message.system("be good"), *ran.messages[:-1]]
    request: ProviderRequest = spy.on("provider_request")[0][0]
    assert (request.model, request.messages, request.kwargs, request.headers) == ("faux", first, {}, None)
    assert request.tools is not None
    assert [tool["function"]["name"] for tool in request.tools] == ["note"]
    [(call,)] = spy.on("tool_call")
    assert call == ToolCall("call_1", "note", {"n": 1})
    assert spy.on("tool_result") == [(call, ToolResult("noted"))]


@every_mode
def test_replaced_messages_are_sent_and_the_durable_conversation_keeps_its_own(mode: str) -> None:
    def scrub(messages: list[Message]) -> InterceptDecision:
        return replace([Message(m.role, m.content.replace("s3cret", "[x]"), m.tool_calls, m.call_id) for m in messages])

    script = [calling(("note", {"n": 1}), text="s3cret?"), "done"]
    ran = drive(mode, script, [Note(says="s3cret!")], held(one_seam("context", scrub)), prompt="my s3cret")
    for request in ran.requests:
        assert "s3cret" not in str(request.messages)
    assert [m.content for m in ran.messages] == ["my s3cret", "s3cret?", "s3cret!", "done"]
    control = drive(mode, script, [Note(says="s3cret!")], held(), prompt="my s3cret")
    assert "s3cret" in str(control.requests[0].messages)
    assert control.messages == ran.messages


@every_mode
def test_a_replaced_envelope_is_what_is_sent(mode: str) -> None:
    def rewrite(request: ProviderRequest) -> InterceptDecision:
        tools = [tool for tool in request.tools or () if tool["function"]["name"] != "hidden"]
        messages = [*request.messages, Message.user("be brief")]
        return replace(ProviderRequest("other-model", messages, tools, {"temperature": 0.25}, request.headers))

    ran = drive(mode, ["done"], [Note(), Note("hidden")], held(one_seam("provider_request", rewrite)))
    [request] = ran.requests
    assert request.messages[-1] == Message.user("be brief")
    assert request.kwargs == {"temperature": 0.25, "model": "other-model"}
    assert [tool["function"]["name"] for tool in request.tools or ()] == ["note"]
    assert ran.messages == [Message.user("go"), Message.assistant("done")]


@every_mode
def test_the_envelope_seam_sees_what_the_context_seam_made(mode: str) -> None:
    spy = Spy()
    chains = spy.chains()
    chains.context.append(lambda messages: replace([*messages, Message.user("added")]))
    drive(mode, ["done"], [], held(chains))
    [(request,)] = spy.on("provider_request")
    assert request.messages[-1] == Message.user("added")


@every_mode
@pytest.mark.parametrize("seam", PRE_PROVIDER)
@pytest.mark.parametrize("turn", [1, 2])
def test_a_block_before_a_call_ends_the_run_with_the_reason(mode: str, seam: str, turn: int) -> None:
    met = 0

    def gate(_value: Any) -> InterceptDecision:
        nonlocal met
        met += 1
        return block("closed for today") if met == turn else allow()

    note = Note()
    ran = drive(mode, [calling("note"), "done"], [note], held(one_seam(seam, gate)))
    assert len(ran.requests) == turn - 1
    assert not ran.success
    assert ran.output == "Blocked by interceptor: closed for today"
    agent = mode.startswith("agent")
    assert ran.reason == ("interceptor_blocked: closed for today" if agent else ran.output)
    assert len(note.entered) == turn - 1
    assert_acceptable(ran.messages)


@every_mode
def test_a_replaced_call_is_what_runs_and_what_is_recorded(mode: str) -> None:
    def redirect(call: ToolCall) -> InterceptDecision:
        return replace(ToolCall("made-up", "other", {"path": "safe", **call.arguments}))

    note, other = Note(), Note("other", "from the other")
    ran = drive(mode, [calling(("note", {"n": [1]})), "done"], [note, other], held(one_seam("tool_call", redirect)))
    assert (note.entered, other.entered) == ([], [{"path": "safe", "n": [1]}])
    [effective] = ran.messages[1].tool_calls
    assert effective == ToolCall("call_1", "other", {"path": "safe", "n": [1]})
    assert ran.messages[2] == Message.tool("call_1", "from the other")
    assert ran.requests[1].messages[2].tool_calls == (effective,)


@every_mode
def test_a_blocked_call_reads_like_a_denial_and_the_run_goes_on(mode: str) -> None:
    def gate(call: ToolCall) -> InterceptDecision | None:
        return block(f"tool {call.name} is gated by policy") if call.name.startswith("dangerous_") else None

    script = [calling("dangerous_rm", "note"), "done"]
    rm, note = Note("dangerous_rm"), Note()
    ran = drive(mode, script, [rm, note], held(one_seam("tool_call", gate)))
    assert (rm.entered, len(note.entered)) == ([], 1)
    assert ran.answers == ["Blocked by interceptor: tool dangerous_rm is gated by policy", "noted"]
    assert (ran.output, ran.success) == ("done", True)
    results = _results(ran)
    if results is not None:
        assert results[0] == ToolResult("", "Blocked by interceptor: tool dangerous_rm is gated by policy")
    control = Note("dangerous_rm")
    drive(mode, script, [control, Note()], held())
    assert len(control.entered) == 1


@every_mode
def test_a_replaced_result_enters_the_conversation(mode: str) -> None:
    def scrub(call: ToolCall, result: ToolResult) -> InterceptDecision:
        return replace(ToolResult(result.output.upper(), None, {"seen": call.name}))

    ran = drive(mode, [calling("note"), "done"], [Note()], held(one_seam("tool_result", scrub)))
    assert ran.answers == ["NOTED"]
    assert _results(ran) in (None, [ToolResult("NOTED", None, {"seen": "note"})])
    assert ran.requests[1].messages[-1].content == "NOTED"


@every_mode
def test_a_withheld_result_leaves_a_placeholder_that_names_the_reason(mode: str) -> None:
    def withhold(_call: ToolCall, _result: ToolResult) -> InterceptDecision:
        return block("it holds a key")

    note = Note(says="the key is 1234")
    ran = drive(mode, [calling("note"), "done"], [note], held(one_seam("tool_result", withhold)))
    assert len(note.entered) == 1
    assert ran.answers == ["[tool result withheld by interceptor: it holds a key]"]
    assert "1234" not in str((ran.messages, ran.requests, ran.steps, ran.events))
    results = _results(ran)
    assert results is None or (results[0].success and results[0].metadata == {})


@every_mode
def test_the_result_seam_sees_executed_tools_only_those_that_failed_included(mode: str) -> None:
    spy = Spy()
    chains = spy.chains()
    chains.tool_call.append(lambda call: block("no") if call.name == "gated" else allow())
    script = [calling("gated", "unknown", "note", "boom", "failed", ("note", "{broken")), "done"]
    tools = [Note(), Note("gated"), Boom("boom", "bang"), Note("failed", ToolResult("half", "it failed"))]
    ran = drive(mode, script, tools, held(chains))
    assert [(call.name, result.error) for call, result in spy.on("tool_result")] == [
        ("note", None),
        ("boom", "ValueError: bang"),
        ("failed", "it failed"),
    ]
    assert ran.answers[:5] == [
        "Blocked by interceptor: no",
        "Unknown tool: unknown",
        "noted",
        "ValueError: bang",
        "half\nit failed",
    ]


@every_mode
def test_the_result_seam_comes_before_truncation_hooks_and_events(mode: str) -> None:
    heard: list[str] = []

    class Hooks:
        def has(self, kind: str) -> bool:
            return kind == "PostToolUse"

        def post_tool_use(self, _call: ToolCall, result: ToolResult, _identity: Any) -> str:
            heard.append(result.output)
            return ""

    def scrub(_call: ToolCall, result: ToolResult) -> InterceptDecision:
        assert len(result.output) == 1000
        return replace(ToolResult("clean " * 100))

    config = held(one_seam("tool_result", scrub), hooks=Hooks(), truncation=Truncation(80))
    ran = drive(mode, [calling("note"), "done"], [Note(says="x" * 1000)], config)
    assert len(ran.answers[0]) == 80
    assert ran.answers[0].startswith("clean clean")
    assert heard == ran.answers
    [told] = [event.result.output for event in ran.bus if event.type == "tool_result"]  # type: ignore[attr-defined]
    assert told == ran.answers[0]


@every_mode
def test_middleware_is_durable_and_comes_before_the_seams(mode: str) -> None:
    spy = Spy()

    class Remind(LoopMiddleware):
        def before_model(self, context: Any) -> None:
            context.add(Message.user("remember"))

    ran = drive(mode, ["done"], [], held(spy.chains(), middleware=[Remind()]))
    [(messages,)] = spy.on("context")
    assert messages[-1] == Message.user("remember")
    assert ran.messages == [Message.user("go"), Message.user("remember"), Message.assistant("done")]


@every_mode
def test_within_a_seam_replacements_chain_and_the_first_block_wins(mode: str) -> None:
    met: list[Any] = []

    def step(number: int, verdict: Any) -> Any:
        def interceptor(call: ToolCall) -> InterceptDecision:
            met.append((number, call.arguments["n"]))
            return verdict(call)  # type: ignore[no-any-return]

        return interceptor

    def up(call: ToolCall) -> InterceptDecision:
        return replace(ToolCall("x", call.name, {"n": call.arguments["n"] + 1}))

    chain = [step(1, up), step(2, up), step(3, lambda _: block("first")), step(4, lambda _: allow())]
    note = Note()
    ran = drive(mode, [calling(("note", {"n": 0})), "done"], [note], held(one_seam("tool_call", *chain)))
    assert met == [(1, 0), (2, 1), (3, 2)]
    assert ran.answers == ["Blocked by interceptor: first"]
    assert ran.messages[1].tool_calls[0].arguments == {"n": 2}


@every_mode
@pytest.mark.parametrize("bundle", [None, Interceptors()], ids=["none", "empty"])
def test_without_chains_a_run_is_the_same_as_one_that_knows_no_seams(mode: str, bundle: Interceptors | None) -> None:
    def run(config: Any) -> Ran:
        return drive(
            mode, [calling("note", ("boom", {"n": 1}), text="hm"), "done"], [Note(), Boom("boom", "b")], config
        )

    ran, plain = run(held(bundle)), run(None)
    assert ran.messages == plain.messages
    assert ran.requests == plain.requests
    assert [_timeless(event) for event in ran.events] == [_timeless(event) for event in plain.events]
    assert (ran.output, ran.success, ran.reason, ran.steps) == (plain.output, plain.success, plain.reason, plain.steps)


@every_mode
def test_allowing_everything_changes_nothing(mode: str) -> None:
    script = [calling("note", text="hm"), "done"]
    ran = drive(mode, script, [Note()], held(Spy().chains()))
    plain = drive(mode, script, [Note()], held())
    assert (ran.messages, ran.requests, ran.steps) == (plain.messages, plain.requests, plain.steps)
    assert ran.decisions == ran.noted == []


def _results(ran: Ran) -> list[ToolResult] | None:
    """The results of the run's first step, from wherever the mode tells of them."""
    if ran.events:
        results = [event.data[1] for event in ran.events if event.type is LoopEventType.TOOL_RESULT]
        assert tool_texts(ran.messages) == [_text(result) for result in results]
        return results
    return ran.steps[0].tool_results if ran.steps else None


def _text(result: ToolResult) -> str:
    return "\n".join(part for part in (result.output, result.error) if part)


def _timeless(event: Any) -> Any:
    if event.type is not LoopEventType.RESULT:
        return event
    return (event.data.reason, event.data.messages, event.data.usage, event.data.turn_count, event.data.output)
