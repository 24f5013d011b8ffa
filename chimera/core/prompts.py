"""How what a user says enters the conversation, and what hooks have to say at the end of a run."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial
from typing import Any

from chimera.core.context import Context
from chimera.core.effects import Consult, Effect
from chimera.core.loop_events import LoopEventType
from chimera.core.run import Run
from chimera.errors import PromptBlocked
from chimera.types import Message

__all__ = ["admit", "objections"]


def admit(
    run: Run, context: Context, messages: Sequence[Message], *, announce: bool = True
) -> Generator[Effect, Any, None]:
    """Add what the user says to the conversation, past the hooks for session starts and prompts.

    Raises `PromptBlocked` when a hook refuses a message; it and the ones after it do not enter the conversation.
    """
    for message in messages:
        if run.rules.hooks and run.identity.depth == 0:
            yield from _greet(run, context)
            yield from _submit(run, context, message)
        context.add(message)
        if announce:
            run.note(LoopEventType.SYSTEM, message)
    if run.notes:
        yield run.told


def objections(run: Run) -> Generator[Effect, Any, list[Message]]:
    """Ask the hooks for the end of a run; what one of them says makes the run go on."""
    found = []
    for hooks, *_ in run.rules.hooks:
        if hooks.has("Stop"):
            text = yield Consult(partial(hooks.stop, run.identity))
            if text:
                found.append(Message.user(text))
    return found


def _greet(run: Run, context: Context) -> Generator[Effect, Any, None]:
    if context.messages:
        return
    for hooks, *_ in run.rules.hooks:
        if hooks.has("SessionStart"):
            text = yield Consult(partial(hooks.session_start, run.identity))
            if text:
                context.add(Message.user(text))


def _submit(run: Run, context: Context, message: Message) -> Generator[Effect, Any, None]:
    for hooks, *_ in run.rules.hooks:
        if not hooks.has("UserPromptSubmit"):
            continue
        verdict = yield Consult(partial(hooks.user_prompt_submit, message.content, run.identity))
        if verdict.decision != "allow":
            raise PromptBlocked(verdict.reason)
        if verdict.context:
            context.add(Message.user(verdict.context))
