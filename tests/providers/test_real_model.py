"""A real model behind a real server: llama.cpp, which we did not write, answers with tokens that nobody scripted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from chimera.compaction import DropOldest
from chimera.core import AgentLoop, Context, InterceptDecision, Interceptors, LoopConfig, ProviderRequest, ReAct, tool
from chimera.core.decisions import merge_interceptors
from chimera.core.loop import async_drain_steps
from chimera.core.loop_events import LoopEventType
from chimera.errors import ContextOverflowError
from chimera.plugins import PluginExtensionRegistry, PluginManager
from chimera.plugins.packs.redactor import RedactorPlugin
from chimera.providers.local import LocalProvider
from chimera.types import Message
from tests.providers.local_model import eventually, needs_model, serving, slots
from tests.providers.vendors import run_async, run_sync

pytestmark = needs_model()

HELLO = [Message.user("Say hello.")]
STORY = [Message.user("Tell me a very long story about a river.")]
SECRET = "sk-live-4242424242424242424242"


@pytest.fixture(scope="module")
def model() -> Iterator[LocalProvider]:
    with serving(tool_calling="schema") as provider:
        yield provider


async def test_it_talks_and_counts_tokens(model: LocalProvider, streamed: bool) -> None:
    options: dict[str, Any] = {"max_tokens": 12}
    for response in (run_sync(model, HELLO, streamed, **options), await run_async(model, HELLO, streamed, **options)):
        assert response.content.strip()
        assert response.finish_reason in ("stop", "length")
        assert 0 < response.usage["output_tokens"] <= 12
        assert response.usage["input_tokens"] > 10
    await model.aclose()


def test_more_words_are_more_tokens(model: LocalProvider) -> None:
    short, long = (model.complete([Message.user("go " * count)], max_tokens=1).usage for count in (1, 101))
    assert long["input_tokens"] - short["input_tokens"] >= 100


def test_it_stops_where_it_is_told_to(model: LocalProvider, streamed: bool) -> None:
    response = run_sync(model, STORY, streamed, max_tokens=5)
    assert (response.finish_reason, response.usage["output_tokens"]) == ("length", 5)
    assert not cut_short(model)


def test_a_stream_arrives_in_pieces_that_make_up_the_answer(model: LocalProvider) -> None:
    *pieces, last = model.stream(STORY, max_tokens=10)
    assert len(pieces) >= 5
    assert last.response is not None
    assert "".join(piece.text for piece in pieces) == last.response.content


@tool
def look(direction: str, far: bool) -> str:
    """Look around."""
    return f"a door ({direction}, {far})"


def use_a_tool_first(request: ProviderRequest) -> InterceptDecision:
    """A model this small cannot choose; so the choice is made for it."""
    choice = "none" if request.messages[-1].role == "tool" else "required"
    limits = {"tool_choice": choice, "max_tokens": 60}
    return InterceptDecision.replace(replace(request, kwargs={**request.kwargs, **limits}))


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_goes_round(model: LocalProvider, stream: bool) -> None:
    options: dict[str, Any] = {"tools": [look], "provider": model, "system_prompt": "You look.", "stream": stream}
    chains = Interceptors(provider_request=[use_a_tool_first])
    events = [event async for event in AgentLoop().run([Message.user("Look north.")], interceptors=chains, **options)]
    result = events[-1].data
    _, asked, answered, said = result.messages
    [call] = asked.tool_calls
    assert (call.name, call.arguments.keys()) == ("look", {"direction", "far"})
    assert isinstance(call.arguments["far"], bool)
    assert answered == Message.tool(call.id, f"a door ({call.arguments['direction']}, {call.arguments['far']})")
    assert said.content.strip()
    if stream:
        assert "".join(event.data for event in events if event.type is LoopEventType.ASSISTANT_CHUNK) == said.content
    await model.aclose()


def briefly(request: ProviderRequest) -> InterceptDecision:
    return InterceptDecision.replace(replace(request, kwargs={**request.kwargs, "max_tokens": 8}))


SHORT_ANSWERS = Interceptors(provider_request=[briefly])


def busy(model: LocalProvider) -> list[dict[str, Any]]:
    return [slot for slot in slots(model) if slot["is_processing"]]


def cut_short(model: LocalProvider) -> bool:
    """Tell whether the server left the story before its end: there was a next token to come."""
    told = [slot for slot in slots(model) if STORY[0].content in slot.get("prompt", "")]
    latest = max(told, key=lambda slot: int(slot["id_task"]))
    return bool(latest["next_token"][0]["has_next_token"])


def test_the_server_sees_that_nobody_reads_on(model: LocalProvider) -> None:
    stream = model.stream(STORY, max_tokens=500, ignore_eos=True)
    for _ in range(3):
        next(stream)
    assert busy(model)
    stream.close()
    eventually(lambda: not busy(model))
    assert cut_short(model)


async def test_the_server_sees_that_a_run_was_cancelled(model: LocalProvider) -> None:
    options: dict[str, Any] = {"tools": [], "provider": model, "system_prompt": "Talk.", "stream": True}
    events = AgentLoop().run(STORY, **options)
    async for event in events:
        if event.type is LoopEventType.ASSISTANT_CHUNK:
            break
    assert busy(model)
    await events.aclose()
    await asyncio.to_thread(eventually, lambda: not busy(model))
    assert cut_short(model)
    await model.aclose()


def test_two_lanes_are_served_at_once(model: LocalProvider) -> None:
    slow = model.stream(STORY, max_tokens=500, ignore_eos=True)
    next(slow)
    assert model.complete(HELLO, max_tokens=3).content
    assert len(busy(model)) == 1, "the first lane still talks"
    slow.close()
    eventually(lambda: not busy(model))


async def test_lanes_of_agents_do_not_mix(model: LocalProvider) -> None:
    async def lane(name: str) -> str:
        context = Context("Repeat.", [Message.user(f"The word is {name}.")])
        loop = ReAct(config=LoopConfig(interceptors=SHORT_ANSWERS, yolo_mode=True))
        return (await async_drain_steps(loop.async_iter_steps(model, [], context, None))).output

    names = ["banana", "tractor"]
    assert all(text.strip() for text in await asyncio.gather(*map(lane, names)))
    received = [[name for name in names if name in prompt] for prompt in prompts(model)]
    assert sorted(filter(None, received)) == [["banana"], ["tractor"]]
    await model.aclose()


def long_conversation() -> list[Message]:
    turns = [(Message.user(f"Item {n}: {'word ' * 60}"), Message.assistant("Noted.")) for n in range(40)]
    return [message for turn in turns for message in turn] + HELLO


def test_a_conversation_that_is_too_long_says_so(model: LocalProvider, streamed: bool) -> None:
    assert model.context_window == 2048
    with pytest.raises(ContextOverflowError, match="too long"):
        run_sync(model, long_conversation(), streamed, max_tokens=5)


class OnlyWhenRefused(DropOldest):
    """Leaves it to the server to say that a conversation is too long."""

    def due(self, *_: Any, **__: Any) -> bool:
        return False


@pytest.mark.parametrize("stream", [False, True])
async def test_a_conversation_that_is_too_long_is_shortened_and_sent_again(model: LocalProvider, stream: bool) -> None:
    options: dict[str, Any] = {"tools": [], "provider": model, "system_prompt": "Talk.", "stream": stream}
    run = AgentLoop().run(
        long_conversation(), compaction=OnlyWhenRefused(keep=0.2), interceptors=SHORT_ANSWERS, **options
    )
    events = [event async for event in run]
    assert [event.type for event in events].count(LoopEventType.COMPACT_BOUNDARY) == 1
    assert events[-1].data.reason == "completed"
    assert events[-1].data.output.strip()
    await model.aclose()


@pytest.fixture
def redacted(request: pytest.FixtureRequest) -> Iterator[bool]:
    manager = PluginManager()
    if request.param:
        manager.load_plugin(RedactorPlugin())
    yield request.param
    for name in list(manager.plugins):
        manager.unload(name)


@pytest.mark.parametrize("redacted", [True, False], indirect=True, ids=["with the redactor", "the control"])
@pytest.mark.parametrize("stream", [False, True])
async def test_the_server_never_saw_the_secret(model: LocalProvider, redacted: bool, stream: bool) -> None:
    chains = merge_interceptors(PluginExtensionRegistry.get_all_interceptors(), SHORT_ANSWERS)
    options: dict[str, Any] = {"tools": [look], "provider": model, "system_prompt": "Talk.", "stream": stream}
    question = f"Run {next(COUNT)}: my key is {SECRET}, remember it."
    events = [event async for event in AgentLoop().run([Message.user(question)], interceptors=chains, **options)]
    assert events[-1].data.usage["input_tokens"] > 0
    [prompt] = [prompt for prompt in prompts(model) if question[:8] in prompt]
    assert (SECRET in prompt) is not redacted
    assert ("[redacted]" in prompt) is redacted
    await model.aclose()


COUNT = count(1000)


def prompts(model: LocalProvider) -> list[str]:
    """Return what the server has received last, in each of its lanes."""
    return [slot.get("prompt", "") for slot in slots(model)]
