"""A scripted model: for tests, demos, and for whoever wants to see an agent work without a key."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import count
from threading import Lock
from typing import Any, Literal, TypedDict

from chimera.errors import ConfigError, ProviderError
from chimera.frozen import FrozenDict, freeze
from chimera.providers.base import Provider, Response, StreamChunk
from chimera.types import Message, ToolCall

__all__ = ["Answerer", "FauxProvider", "FauxRequest", "FauxStep", "Script", "Step"]

_DEFAULT_FINAL = "Done."
_STEP_KEYS = ("text", "tool_calls", "thinking", "usage", "error")
_CALL_KEYS = ("name", "arguments", "id")


class FauxStep(TypedDict, total=False):
    """One answer of the script.

    `tool_calls` are objects with `name`, `arguments` (an object, or a text as a model might write it) and, where it
    matters, `id`. `usage` counts tokens. `error` is an exception to raise, its class, or the text of a `ProviderError`.
    """

    text: str
    tool_calls: Sequence[Mapping[str, Any]]
    thinking: str
    usage: Mapping[str, int]
    error: str | BaseException | type[BaseException]


@dataclass(frozen=True, slots=True)
class FauxRequest:
    """What the provider was sent. `kwargs` holds the options of the call that differ from their defaults.

    `headers` are those of this call, None where there is no header surface; `streamed` says which kind of call it was.
    """

    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...] | None = None
    kwargs: Mapping[str, Any] = field(default_factory=FrozenDict)
    headers: Mapping[str, str] | None = None
    streamed: bool = False


Answerer = Callable[[FauxRequest], str | FauxStep | Mapping[str, Any]]
Step = str | FauxStep | Mapping[str, Any] | Answerer
Script = Step | Sequence[Step] | None


@dataclass(frozen=True, slots=True)
class _Answer:
    """One step, checked and ready to be given as often as needed."""

    text: str = ""
    calls: tuple[tuple[str | None, str, Any], ...] = ()
    thinking: str = ""
    usage: Mapping[str, int] = field(default_factory=lambda: {"input_tokens": 0, "output_tokens": 0})
    error: BaseException | None = None


class FauxProvider(Provider):
    """Answers from a script, and records what it was sent in `requests`. May be shared by threads and event loops.

    A script is a string, one step, or a list of steps; a step may also be a function that is handed the `FauxRequest`
    and returns a step. When the script is over, `on_exhausted="final"` answers with the last text of the script and no
    calls (`Done.` when it holds no text), and `"repeat"` begins the script anew. Calls without an id get `call_1`,
    `call_2` and so on.

    `headers` gives the provider a header surface (`request_headers`, replaced for one call by `extra_headers`); `delay`
    is the time of a call in seconds; streams come in pieces of `chunk_size` characters and raise an `error` after the
    text of its step; `usd_per_token` prices the usage; `record=False` keeps no requests. Raises `ConfigError` for a
    script that is none.
    """

    accepts_call_model = True

    def __init__(
        self,
        script: Script = None,
        *,
        model: str = "faux",
        on_exhausted: Literal["final", "repeat"] = "final",
        headers: Mapping[str, str] | None = None,
        delay: float = 0.0,
        chunk_size: int = 12,
        context_window: int = 128_000,
        usd_per_token: float = 0.0,
        record: bool = True,
    ) -> None:
        if on_exhausted not in ("final", "repeat"):
            raise ConfigError(f"on_exhausted must be 'final' or 'repeat', not {on_exhausted!r}")
        self.requests: list[FauxRequest] = []
        self.delay = delay
        self._steps = _read_script(script)
        self._final = _final_of(self._steps)
        self._repeats = on_exhausted == "repeat" and bool(self._steps)
        self._model, self._context_window = model, context_window
        self._headers = None if headers is None else FrozenDict(headers)
        self.accepts_call_headers = headers is not None
        self._chunk_size = max(1, chunk_size)
        self._usd_per_token = usd_per_token
        self._record = record
        self._position = 0
        self._call_numbers = count(1)
        self._lock = Lock()

    @property
    def model_name(self) -> str:
        return self._model

    @property
    def context_window(self) -> int:
        return self._context_window

    @property
    def request_headers(self) -> dict[str, str]:
        """A copy of the headers; there is no such attribute on a provider that was made without headers."""
        if self._headers is None:
            raise AttributeError("this provider has no headers")
        return dict(self._headers)

    def cost_usd(self, usage: Mapping[str, int]) -> float:
        return self._usd_per_token * (usage.get("input_tokens", 0) + usage.get("output_tokens", 0))

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None = None,
        temperature: float = 0.0,
        max_tokens: int | None = None,
        **kwargs: Any,
    ) -> Response:
        answer = self._next(messages, tools, temperature, max_tokens, kwargs, streamed=False)
        if self.delay:
            time.sleep(self.delay)
        return self._response(answer)

    async def async_complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None = None,
        temperature: float = 0.0,
        max_tokens: int | None = None,
        **kwargs: Any,
    ) -> Response:
        answer = self._next(messages, tools, temperature, max_tokens, kwargs, streamed=False)
        await asyncio.sleep(self.delay)
        return self._response(answer)

    def stream(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None = None,
        temperature: float = 0.0,
        max_tokens: int | None = None,
        **kwargs: Any,
    ) -> Generator[StreamChunk, None, None]:
        answer = self._next(messages, tools, temperature, max_tokens, kwargs, streamed=True)
        if self.delay:
            time.sleep(self.delay)
        yield from self._chunks(answer)
        yield StreamChunk(response=self._response(answer))

    async def async_stream(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None = None,
        temperature: float = 0.0,
        max_tokens: int | None = None,
        **kwargs: Any,
    ) -> AsyncGenerator[StreamChunk, None]:
        answer = self._next(messages, tools, temperature, max_tokens, kwargs, streamed=True)
        await asyncio.sleep(self.delay)
        for chunk in self._chunks(answer):
            yield chunk
            await asyncio.sleep(0)
        yield StreamChunk(response=self._response(answer))

    def _next(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None,
        temperature: float,
        max_tokens: int | None,
        kwargs: dict[str, Any],
        *,
        streamed: bool,
    ) -> _Answer:
        given = kwargs.pop("extra_headers", None)
        options = {"temperature": temperature} if temperature else {}
        limit = {} if max_tokens is None else {"max_tokens": max_tokens}
        request = FauxRequest(
            messages=tuple(messages),
            tools=None if tools is None else tuple(tools),
            kwargs=freeze({**options, **limit, **kwargs}),
            headers=self._headers if given is None else FrozenDict(given),
            streamed=streamed,
        )
        with self._lock:
            if self._record:
                self.requests.append(request)
            step = self._take()
        return _read_step(step(request)) if callable(step) else step

    def _take(self) -> _Answer | Answerer:
        if self._position == len(self._steps):
            if not self._repeats:
                return self._final
            self._position = 0
        self._position += 1
        return self._steps[self._position - 1]

    def _response(self, answer: _Answer) -> Response:
        if answer.error is not None:
            raise answer.error.with_traceback(None)
        calls = tuple(ToolCall(self._id(given), name, arguments) for given, name, arguments in answer.calls)
        reason = "tool_calls" if calls else "stop"
        return Response(answer.text, calls, answer.usage, answer.thinking, reason)

    def _id(self, given: str | None) -> str:
        return f"call_{next(self._call_numbers)}" if given is None else given

    def _chunks(self, answer: _Answer) -> Iterable[StreamChunk]:
        size = self._chunk_size
        for start in range(0, len(answer.thinking), size):
            yield StreamChunk(thinking=answer.thinking[start : start + size])
        for start in range(0, len(answer.text), size):
            yield StreamChunk(answer.text[start : start + size])


_Steps = list[_Answer | Answerer]


def _read_script(script: object) -> _Steps:
    if script is None:
        return []
    steps = list(script) if isinstance(script, list | tuple) else [script]
    return [step if callable(step) else _read_step(step) for step in steps]


def _final_of(steps: _Steps) -> _Answer:
    texts = [step.text for step in steps if isinstance(step, _Answer) and step.text]
    return _Answer(texts[-1] if texts else _DEFAULT_FINAL)


def _read_step(step: object) -> _Answer:
    if isinstance(step, str):
        return _Answer(step)
    if not isinstance(step, Mapping):
        raise ConfigError(f"a step of a script must be a text or an object, not {type(step).__name__}")
    _check_keys("step", step, _STEP_KEYS)
    return _Answer(
        text=step.get("text") or "",
        calls=tuple(_read_call(call) for call in step.get("tool_calls") or ()),
        thinking=step.get("thinking") or "",
        usage=FrozenDict({"input_tokens": 0, "output_tokens": 0, **(step.get("usage") or {})}),
        error=_read_error(step.get("error")),
    )


def _read_error(error: object) -> BaseException | None:
    if error is None or isinstance(error, BaseException):
        return error
    if isinstance(error, type) and issubclass(error, BaseException):
        return error()
    return ProviderError(str(error))


def _read_call(call: Mapping[str, Any]) -> tuple[str | None, str, Any]:
    if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
        raise ConfigError("a tool call of a script must be an object with a name")
    _check_keys("tool call", call, _CALL_KEYS)
    return call.get("id"), call["name"], freeze(_read_arguments(call.get("arguments", {})))


def _read_arguments(arguments: object) -> object:
    if not isinstance(arguments, str):
        return arguments
    try:
        parsed = json.loads(arguments)
    except ValueError:
        return arguments
    return parsed if isinstance(parsed, dict) else arguments


def _check_keys(what: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in given:
        if key not in known:
            near = get_close_matches(str(key), known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
            raise ConfigError(f"a {what} of a script has no {key!r}; {hint}")
