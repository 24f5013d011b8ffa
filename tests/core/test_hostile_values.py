"""Values whose classes lie or raise: a block stays a block, and every call keeps its one tool message."""

from __future__ import annotations

from typing import Any

import pytest

from chimera.core.decisions import InterceptDecision, Interceptors
from chimera.core.loop_config import LoopConfig
from chimera.core.tool import BaseTool
from chimera.events import EventBus
from chimera.frozen import class_name, safe_text
from chimera.permissions.base import PermissionAction, PermissionPolicy
from chimera.testing import create_harness
from chimera.types import Message, ToolResult


class NoStrip(str):
    def strip(self, chars: Any = None) -> str:
        raise RuntimeError("no")


class Speaks:
    def __str__(self) -> str:
        return NoStrip("because")


class Mute:
    def __str__(self) -> str:
        raise RuntimeError("mute")


class NoReason(InterceptDecision):
    __slots__ = ()

    @property
    def reason(self) -> Any:
        raise RuntimeError("none of your business")


def without_reason() -> InterceptDecision:
    decision = object.__new__(NoReason)
    object.__setattr__(decision, "kind", "block")
    object.__setattr__(decision, "value", None)
    return decision


class Liar:
    kind = "allow"
    value = reason = None

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return InterceptDecision


class NamelessType(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("nameless")


class Nameless(Exception, metaclass=NamelessType):
    pass


CALL: Any = {"tool_calls": [{"name": "odd", "arguments": {}}]}


class Odd(BaseTool):
    name = "odd"
    effect = "read"

    def __init__(self, act: Any = lambda: ToolResult("fine")) -> None:
        self.act, self.ran = act, 0

    def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        self.ran += 1
        result: ToolResult = self.act()
        return result


def run(chains: Interceptors | None, tool: Odd | None = None, bus: EventBus | None = None) -> Any:
    config = LoopConfig(interceptors=chains, yolo_mode=True, event_bus=bus)
    with create_harness([CALL, "done"], config=config, tools=[tool or Odd()]) as harness:
        return harness.run("go"), harness.provider.requests


@pytest.mark.parametrize(
    "decide",
    [lambda: InterceptDecision.block(Speaks()), lambda: InterceptDecision.block(Mute()), without_reason],
    ids=["odd text", "no text", "raising"],
)
@pytest.mark.parametrize("seam", ["context", "provider_request"])
def test_a_block_before_the_provider_holds_whatever_its_reason_does(decide: Any, seam: str) -> None:
    chains = Interceptors()
    getattr(chains, seam).append(lambda _value: decide())
    result, requests = run(chains)
    assert result.reason.startswith("interceptor_blocked: ")
    assert requests == []


def test_a_block_of_a_result_holds_whatever_its_reason_does() -> None:
    result, _ = run(Interceptors(tool_result=[lambda call, result: InterceptDecision.block(Speaks())]))
    assert result.tool_results[0].output == "[tool result withheld by interceptor: because]"


def test_what_only_claims_to_be_a_decision_is_no_consent() -> None:
    tool = Odd()
    result, _ = run(Interceptors(tool_call=[lambda call: Liar()]), tool)  # type: ignore[list-item, return-value]
    assert tool.ran == 0
    assert "interceptor error" in result.tool_results[0].error


def test_an_exception_without_a_name_is_an_error_like_any_other() -> None:
    def crash(call: Any) -> None:
        raise Nameless("x")

    result, _ = run(Interceptors(tool_call=[crash]))
    assert "interceptor error" in result.tool_results[0].error


class Shifty(ToolResult):
    __slots__ = ("_reads",)

    @property
    def output(self) -> Any:
        reads = getattr(self, "_reads", 0)
        object.__setattr__(self, "_reads", reads + 1)
        return "text" if not reads else 7


class NoLength(str):
    def __len__(self) -> int:
        raise RuntimeError("endless")


def panic() -> ToolResult:
    class Panic(BaseException):
        pass

    raise Panic("out of memory")


def mute() -> ToolResult:
    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError("mute")

    raise Silent


def leave() -> ToolResult:
    raise GeneratorExit


class Items(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("no items")


class AsyncOdd(Odd):
    async def async_execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        return self.execute(args, env)


RESULTS = {
    "shifty": lambda: object.__new__(Shifty),
    "endless text": lambda: ToolResult(NoLength("x")),
    "odd metadata": lambda: ToolResult("x", None, Items(a=1)),
    "panic": panic,
    "mute exception": mute,
    "generator exit": leave,
}


@pytest.mark.parametrize("act", RESULTS.values(), ids=RESULTS)
@pytest.mark.parametrize("kind", [Odd, AsyncOdd], ids=["in a thread", "awaited"])
@pytest.mark.parametrize("heard", [False, True], ids=["unheard", "heard"])
def test_every_call_has_its_tool_message_whatever_a_tool_returns_or_raises(
    act: Any, kind: type[Odd], heard: bool
) -> None:
    if act is leave and kind is AsyncOdd:
        pytest.skip("in a coroutine, this is how the run itself lets go of it")
    bus = EventBus() if heard else None
    if bus is not None:
        bus.subscribe("*", lambda event: None)
    result, _ = run(None, kind(act), bus)
    assert result.reason == "completed"
    assert [message.role for message in result.messages] == ["user", "assistant", "tool", "assistant"]
    assert all(type(message.content) is str for message in result.messages)


@pytest.mark.parametrize("name", ["shifty", "endless text", "odd metadata"])
def test_every_call_has_its_tool_message_whatever_a_replacement_is(name: str) -> None:
    result, _ = run(Interceptors(tool_result=[lambda call, result: InterceptDecision.replace(RESULTS[name]())]))
    assert [message.role for message in result.messages] == ["user", "assistant", "tool", "assistant"]


def test_messages_of_a_class_of_their_own_are_taken_by_value() -> None:
    class Editable(Message):
        """A subclass of a read-only class has a dict, and so a way in."""

    mine = Editable("user", "checked")

    def swap(messages: list[Message]) -> InterceptDecision:
        return InterceptDecision.replace([mine])

    def edit_later(messages: list[Message]) -> None:
        object.__setattr__(mine, "content", "edited")

    _, requests = run(Interceptors(context=[swap, edit_later]))
    assert requests[0].messages[0].content == "checked"
    assert type(requests[0].messages[0]) is Message


def test_what_runs_is_what_was_judged_even_if_what_was_shown_is_forced_open() -> None:
    class Forces(PermissionPolicy):
        def evaluate(self, tool_name: str, args: Any) -> PermissionAction:
            return PermissionAction.ASK

    def force(approval: Any) -> bool:
        dict.__setitem__(approval.arguments, "path", "b.txt")
        return True

    script: Any = [{"tool_calls": [{"name": "write_file", "arguments": {"path": "a.txt", "content": "x"}}]}, "done"]
    config = LoopConfig(permissions=Forces(), permission_callback=force)
    with create_harness(script, config=config) as harness:
        result = harness.run("go")
    assert result.files_created == ["a.txt"]
    assert result.tool_calls[0].arguments["path"] == "a.txt"


def test_texts_are_plain_and_never_raise() -> None:
    assert type(safe_text(NoStrip("x"))) is str
    assert safe_text(Mute()) == "<unprintable Mute>"
    assert class_name(Nameless()) == "Nameless"
