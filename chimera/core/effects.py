"""The two vocabularies of the engine.

*Asks* are what a loop's program yields: it says what it wants and is sent the answer. *Effects* are what the engine
yields to a driver: the only things that touch the world.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple

from chimera.core.context import Context
from chimera.core.decisions import ProviderRequest
from chimera.errors import MisuseError
from chimera.providers.base import Response, StreamChunk
from chimera.types import Message, ToolCall, ToolResult

__all__ = [
    "ROUND",
    "Act",
    "Acted",
    "Ask",
    "AwaitRound",
    "Begin",
    "Complete",
    "CompleteInternally",
    "Consult",
    "Consulting",
    "Counts",
    "Effect",
    "Emit",
    "FinishStep",
    "Outcome",
    "RunVetted",
    "Tally",
    "VettedCall",
    "WireCall",
    "Within",
]


class Complete(NamedTuple):
    """Ask for one model call over `context`, or over `messages` in its place. Both pre-provider seams apply.

    `kwargs` go to the provider. With `tools` False the model is offered none; with `shown` False nobody is streamed
    what may come to nothing. The answer is a `Response` whose calls are read-only and have unique ids.
    """

    context: Context
    kwargs: Mapping[str, Any] = {}
    messages: list[Message] | None = None
    tools: bool = True
    shown: bool = True


class CompleteInternally(NamedTuple):
    """Ask for a model call that is no conversation: a synthetic prompt of the loop's own, which no seam sees.

    Only for the calls that the contract exempts; whoever yields it says why where it stands.
    """

    messages: list[Message]
    kwargs: Mapping[str, Any] = {}


class Act(NamedTuple):
    """Ask to record the model's answer in `context` and to run the calls in it. The answer is an `Acted`."""

    context: Context
    response: Response


class Acted(NamedTuple):
    """The recorded message, its effective calls and their results, in call order."""

    message: Message
    calls: list[ToolCall]
    results: list[ToolResult]


class FinishStep(NamedTuple):
    """Report a finished step to whoever watches.

    Whether a `done` step is the last one is known once the program has returned: they are told no sooner, and a program
    that goes on after all has its step reported as one that is not done.
    """

    acted: Acted
    done: bool = False


class Outcome(NamedTuple):
    """What a program returns. `reason` is short and machine-readable; `error` is for people."""

    output: str
    success: bool = True
    error: str | None = None
    reason: str = "completed"


class Within(NamedTuple):
    """Ask to run `program` as a part of this run in which only the tools that `offers` accepts exist.

    The answer is its `Outcome`. The model is offered these tools alone; any other one is unknown, in calls from within
    a tool too.
    """

    program: Generator[Any, Any, Outcome]
    offers: Callable[[Any], bool]


class Consulting(NamedTuple):
    """Ask to call `fn`, which may block or be a coroutine function, with the environment that tools are handed.

    The answer is what it returns; what it raises comes out where the ask stands.
    """

    fn: Callable[[Any], Any]


class Tally(NamedTuple):
    """Ask what the run has counted so far. The answer is a `Counts`."""


class Counts(NamedTuple):
    """Finished steps, tool calls, and the cost in US dollars, of internal model calls too."""

    steps: int
    calls: int
    cost: float


Ask = Complete | CompleteInternally | Act | FinishStep | Within | Consulting | Tally


class VettedCall:
    """Leave to run one tool once: the proof that the whole `tool_call` chain and the permission answer are in.

    Only `tool_call_flow` can make one; a driver runs nothing else. `arguments` are the tool's own, `run` is the `Run`
    that the tool works for.
    """

    __slots__ = ("arguments", "call", "run", "tool")

    def __init__(self, run: Any, call: ToolCall, tool: Any, arguments: dict[str, Any], *, proof: object) -> None:
        if proof is not _PROOF:
            raise MisuseError("a vetted call is made by tool_call_flow alone")
        self.run, self.call, self.tool, self.arguments = run, call, tool, arguments


_PROOF = object()


class Begin(NamedTuple):
    """Effect: from here on, all work is for `run`: a driver that waits gives up waiting when the run is cancelled."""

    run: Any


class AwaitRound(NamedTuple):
    """Effect: go on in a round of the event loop that has time for this run, beside others that are busy on it."""


class WireCall(NamedTuple):
    """Effect: send the effective envelope. The answer is a `Response`.

    `headers` and `model`, when given, take the place of the provider's own for this call. `on_chunk`, when given, asks
    for a streamed answer and turns each chunk into an item for whoever watches, or None.
    """

    provider: Any
    request: ProviderRequest
    headers: dict[str, str] | None = None
    model: str | None = None
    on_chunk: Callable[[StreamChunk], Any] | None = None


class RunVetted(NamedTuple):
    """Effect: run these tools, side by side where the driver can. The answer is a list of results in the same order."""

    calls: Sequence[VettedCall]


class Consult(NamedTuple):
    """Effect: call `fn`, which may block or be a coroutine function. The answer is what it returns."""

    fn: Callable[[], Any]


class Emit(NamedTuple):
    """Effect: hand `items` to whoever iterates, each taken out as it goes, until there are none, nor any that came
    meanwhile. The answer is None, once they come back for more."""

    items: deque[Any]


ROUND = AwaitRound()
Effect = Begin | AwaitRound | WireCall | RunVetted | Consult | Emit
