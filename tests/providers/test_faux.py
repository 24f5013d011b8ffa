from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from chimera.errors import ConfigError, ProviderBusyError, ProviderError
from chimera.providers.faux import FauxProvider, FauxRequest
from chimera.types import Message, ToolCall
from tests.providers.vendors import run_async, run_sync

HELLO = [Message.user("hello")]
LS = {"name": "bash", "arguments": {"command": "ls"}}


def texts(provider: FauxProvider, count: int) -> list[str]:
    return [provider.complete(HELLO).content for _ in range(count)]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (None, ["Done.", "Done."]),
        ([], ["Done.", "Done."]),
        ("a", ["a", "a"]),
        ({"text": "a"}, ["a", "a"]),
        (["a", {"text": "b"}], ["a", "b", "b"]),
        (("a", "b"), ["a", "b", "b"]),
        ([{"tool_calls": [LS]}], ["", "Done."]),
        (["a", {"tool_calls": [LS]}], ["a", "", "a"]),
    ],
)
def test_a_script_and_what_comes_after_it(script: Any, expected: list[str]) -> None:
    assert texts(FauxProvider(script), len(expected)) == expected


def test_the_final_answer_calls_nothing() -> None:
    provider = FauxProvider([{"text": "a", "tool_calls": [LS], "thinking": "hm"}])
    provider.complete(HELLO)
    final = provider.complete(HELLO)
    assert (final.content, final.tool_calls, final.thinking) == ("a", (), "")


def test_a_script_that_repeats() -> None:
    assert texts(FauxProvider(["a", "b"], on_exhausted="repeat"), 5) == ["a", "b", "a", "b", "a"]
    assert texts(FauxProvider(on_exhausted="repeat"), 2) == ["Done.", "Done."]


async def test_every_way_of_calling_gives_the_same_answer(streamed: bool) -> None:
    step: dict[str, Any] = {
        "text": "some text in pieces",
        "thinking": "hm",
        "tool_calls": [LS],
        "usage": {"input_tokens": 7},
    }
    for response in (
        run_sync(FauxProvider(step), HELLO, streamed),
        await run_async(FauxProvider(step), HELLO, streamed),
    ):
        assert (response.content, response.thinking) == ("some text in pieces", "hm")
        assert response.tool_calls == (ToolCall("call_1", "bash", {"command": "ls"}),)
        assert response.usage == {"input_tokens": 7, "output_tokens": 0}
        assert response.finish_reason == "tool_calls"


async def test_streams_come_in_pieces() -> None:
    provider = FauxProvider({"text": "abcdefgh", "thinking": "1234"}, chunk_size=3)
    expected = [("", "123"), ("", "4"), ("abc", ""), ("def", ""), ("gh", ""), ("", "")]
    assert [(chunk.text, chunk.thinking) for chunk in provider.stream(HELLO)] == expected
    provider = FauxProvider({"text": "abcdefgh", "thinking": "1234"}, chunk_size=3)
    assert [(chunk.text, chunk.thinking) async for chunk in provider.async_stream(HELLO)] == expected


def test_ids_are_given_where_the_script_gives_none() -> None:
    twice = [{"tool_calls": [LS, {**LS, "id": "mine"}, {**LS, "id": ""}, {**LS, "id": None}]}]
    provider = FauxProvider(twice, on_exhausted="repeat")
    ids = [[call.id for call in provider.complete(HELLO).tool_calls] for _ in range(2)]
    assert ids == [["call_1", "mine", "", "call_2"], ["call_3", "mine", "", "call_4"]]


@pytest.mark.parametrize(
    ("written", "arguments"),
    [({"a": [1]}, {"a": [1]}), ('{"a": [1]}', {"a": [1]}), ('{"a', '{"a'), ("[1]", "[1]"), ("", "")],
)
def test_arguments_may_be_written_as_a_model_writes_them(written: Any, arguments: Any) -> None:
    [call] = FauxProvider({"tool_calls": [{"name": "f", "arguments": written}]}).complete(HELLO).tool_calls
    assert call.arguments == arguments


def test_answers_cannot_be_changed_through_one_another() -> None:
    arguments = {"a": [1]}
    provider = FauxProvider({"tool_calls": [{"name": "f", "arguments": arguments}]}, on_exhausted="repeat")
    arguments["a"].append(2)
    [call] = provider.complete(HELLO).tool_calls
    with pytest.raises(TypeError):
        call.arguments["a"].append(3)
    assert provider.complete(HELLO).tool_calls[0].arguments == {"a": [1]}


def test_requests_are_recorded() -> None:
    provider = FauxProvider(["a", "b", "c"])
    conversation, tools, options = [*HELLO], [{"name": "f"}], {"stop": ["x"]}
    provider.complete(conversation, tools, 0.7, 9, **options)
    conversation.append(Message.user("more"))
    tools.clear()
    options["stop"].append("y")
    list(provider.stream(conversation))
    provider.complete(conversation, None, 0.0, None, extra_headers={"A": "1"}, model="other")
    kwargs = {"temperature": 0.7, "max_tokens": 9, "stop": ["x"]}
    first, second, third = provider.requests
    assert first == FauxRequest(tuple(HELLO), ({"name": "f"},), kwargs)
    assert second == FauxRequest(tuple(conversation), None, {}, None, True)
    assert third == FauxRequest(tuple(conversation), None, {"model": "other"}, {"A": "1"})
    with pytest.raises(FrozenInstanceError):
        first.streamed = True  # type: ignore[misc]


def test_recording_can_be_switched_off() -> None:
    provider = FauxProvider(record=False)
    provider.complete(HELLO)
    assert provider.requests == []


def test_a_header_surface_on_demand() -> None:
    bare = FauxProvider()
    assert not hasattr(bare, "request_headers")
    assert not bare.accepts_call_headers
    provider = FauxProvider(headers={"Authorization": "real"})
    assert provider.accepts_call_headers
    provider.request_headers["Authorization"] = "a copy, so this changes nothing"
    provider.complete(HELLO)
    provider.complete(HELLO, extra_headers={"Authorization": "other"})
    provider.complete(HELLO)
    recorded = [request.headers for request in provider.requests]
    assert recorded == [{"Authorization": value} for value in ("real", "other", "real")]


class TestErrors:
    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            ("it broke", ProviderError),
            (ProviderBusyError("it broke"), ProviderBusyError),
            (KeyboardInterrupt("it broke"), KeyboardInterrupt),
        ],
    )
    async def test_are_raised_on_every_way(self, error: Any, kind: type[BaseException], streamed: bool) -> None:
        provider = FauxProvider({"error": error}, on_exhausted="repeat")
        with pytest.raises(kind, match="it broke"):
            run_sync(provider, HELLO, streamed)
        if kind is not KeyboardInterrupt:  # asyncio lets it through to the runner of the tests
            with pytest.raises(kind, match="it broke"):
                await run_async(provider, HELLO, streamed)

    def test_may_be_a_class(self) -> None:
        with pytest.raises(ZeroDivisionError):
            FauxProvider({"error": ZeroDivisionError}).complete(HELLO)

    def test_of_streams_come_after_the_text(self) -> None:
        stream = FauxProvider({"text": "half", "error": "broke off"}).stream(HELLO)
        assert next(stream).text == "half"
        with pytest.raises(ProviderError, match="broke off"):
            next(stream)

    def test_do_not_grow_when_they_are_repeated(self) -> None:
        error = ProviderError("again")
        provider = FauxProvider({"error": error}, on_exhausted="repeat")
        depths = []
        for _ in range(3):
            with pytest.raises(ProviderError):
                provider.complete(HELLO)
            depths.append(_depth(error))
        assert depths[0] == depths[2]


def _depth(error: BaseException) -> int:
    depth, trace = 0, error.__traceback__
    while trace is not None:
        depth, trace = depth + 1, trace.tb_next
    return depth


def test_a_step_may_be_a_function_of_the_request() -> None:
    provider = FauxProvider([lambda request: f"{len(request.messages)} messages", lambda _: {"tool_calls": [LS]}])
    assert provider.complete(HELLO).content == "1 messages"
    assert provider.complete(HELLO).tool_calls


def test_threads_share_the_script_fairly() -> None:
    provider = FauxProvider([{"tool_calls": [LS], "text": str(index)} for index in range(200)])
    with ThreadPoolExecutor(16) as pool:
        responses = list(pool.map(lambda _: provider.complete(HELLO), range(200)))
    assert sorted(int(response.content) for response in responses) == list(range(200))
    assert len({response.tool_calls[0].id for response in responses}) == 200
    assert len(provider.requests) == 200


async def test_tasks_share_the_script_fairly() -> None:
    provider = FauxProvider([str(index) for index in range(50)], delay=0.001)
    responses = await asyncio.gather(*(provider.async_complete(HELLO) for _ in range(50)))
    assert sorted(int(response.content) for response in responses) == list(range(50))


async def test_a_delayed_call_can_be_cancelled(streamed: bool) -> None:
    task = asyncio.create_task(run_async(FauxProvider("a", delay=60), HELLO, streamed))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_delay_is_waited_for_by_threads_too(streamed: bool) -> None:
    assert run_sync(FauxProvider("a", delay=0.01), HELLO, streamed).content == "a"


def test_what_it_says_of_itself() -> None:
    provider = FauxProvider(model="m", context_window=10, usd_per_token=0.5)
    assert (provider.model_name, provider.context_window, provider.supports_tool_use) == ("m", 10, True)
    assert provider.cost_usd({"input_tokens": 3, "output_tokens": 1}) == 2.0
    assert FauxProvider().cost_usd({"input_tokens": 3}) == 0.0


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (7, "a text or an object"),
        ([None], "a text or an object"),
        ({"txt": "a"}, "did you mean 'text'"),
        ({"zzz": "a"}, "known are text"),
        ({"tool_calls": [{"arguments": {}}]}, "with a name"),
        ({"tool_calls": ["bash"]}, "with a name"),
        ({"tool_calls": [{"name": "f", "args": {}}]}, "did you mean 'arguments'"),
    ],
)
def test_a_script_that_is_none_is_refused(script: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        FauxProvider(script)


def test_an_unknown_end_is_refused() -> None:
    with pytest.raises(ConfigError, match="on_exhausted"):
        FauxProvider(on_exhausted="stop")  # type: ignore[arg-type]
