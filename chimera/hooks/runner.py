"""Running the hooks of an event: gates fail closed, observers fail open."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from chimera.hooks.process import HookFailed, run_command
from chimera.hooks.reply import HookVerdict, Reply, read_reply, stricter
from chimera.hooks.settings import EVENTS, Hook, Hooks, read_settings
from chimera.permissions.families import aliases_of
from chimera.types import ToolCall, ToolResult

__all__ = ["HookRunner"]

_log = logging.getLogger("chimera.hooks")


class HookRunner:
    """Runs hooks, one after the other and blocking: call it off the event loop.

    The methods take the identity of the run as `context` (anything with `conversation_id`, `run_id`, `depth`, `parent`,
    `lane` and `loop`; None will do). A hook gets JSON on its standard input: `hook_event_name`, `session_id` (the
    conversation), `run_id`, `agent_depth`, `cwd`, and what belongs to the event.

    Gates (`pre_tool_use`, `user_prompt_submit`) fail closed: a hook that cannot start, is late, crashes or answers with
    nothing readable denies, and the verdict says that it failed. Observers fail open and the failure is logged.
    """

    def __init__(self, hooks: Hooks, *, cwd: Path | str | None = None) -> None:
        self._hooks = {event: tuple(hooks.get(event, ())) for event in EVENTS}
        self.cwd = Path.cwd() if cwd is None else Path(cwd)

    @classmethod
    def from_settings(cls, *settings: Mapping[str, Any], cwd: Path | str | None = None) -> HookRunner:
        """Build a runner from settings; the hooks of several run in the order given.

        Raises `ConfigError` that names the place of the first thing wrong.
        """
        read = [read_settings(mapping) for mapping in settings]
        joined = {event: tuple(hook for hooks in read for hook in hooks.get(event, ())) for event in EVENTS}
        return cls(joined, cwd=cwd)

    def has(self, event: str) -> bool:
        """Say whether any hook waits for `event`."""
        return bool(self._hooks.get(event))

    def pre_tool_use(self, call: ToolCall, context: object = None) -> HookVerdict:
        """Judge a call that is about to be made."""
        return self._gate("PreToolUse", call.name, _about(call), context)

    def user_prompt_submit(self, prompt: str, context: object = None) -> HookVerdict:
        """Judge what the user wrote; `context` of the verdict is text to add for the model. An `ask` becomes a denial:
        the user has just been heard."""
        verdict = self._gate("UserPromptSubmit", "", {"prompt": prompt}, context)
        return replace(verdict, decision="deny") if verdict.decision == "ask" else verdict

    def post_tool_use(self, call: ToolCall, result: ToolResult, context: object = None) -> str | None:
        """Return what hooks have to say about a call that was made, for the model to read."""
        response = {
            "output": result.output,
            "error": result.error,
            "success": result.success,
            "metadata": result.metadata,
        }
        replies = self._observe("PostToolUse", call.name, {**_about(call), "tool_response": response}, context)
        return _joined(text for reply in replies for text in (_objection(reply), reply.context))

    def session_start(self, context: object = None, *, source: str = "startup") -> str | None:
        """Return text that hooks want the model to know from the start."""
        replies = self._observe("SessionStart", source, {"source": source}, context)
        return _joined(reply.context or reply.text for reply in replies)

    def stop(self, context: object = None, *, active: bool = False) -> str | None:
        """Return why the agent should go on although it is done; None lets it end.

        `active` tells the hooks that it already goes on because of one, so that they do not hold it for ever.
        """
        replies = self._observe("Stop", "", {"stop_hook_active": active}, context)
        said = list(replies)
        return None if any(reply.ends for reply in said) else _joined(map(_objection, said))

    def _gate(self, event: str, subject: str, fields: Mapping[str, Any], context: object) -> HookVerdict:
        verdict, contexts = HookVerdict(), []
        for hook in self._matching(event, subject):
            try:
                reply = self._run(hook, event, fields, context)
            except Exception as error:
                _log.warning("the hook %s failed; the gate stays closed", hook, exc_info=not _expected(error))
                return HookVerdict("deny", f"the hook failed, which is no verdict: {_why(error)}", str(hook), True)
            contexts.append(reply.context or reply.text)
            if stricter(verdict.decision, reply.decision) != verdict.decision:
                verdict = HookVerdict(reply.decision, reply.reason, str(hook))
            if verdict.decision == "deny":
                break
        return replace(verdict, context=_joined(contexts) or "")

    def _observe(self, event: str, subject: str, fields: Mapping[str, Any], context: object) -> Iterator[Reply]:
        for hook in self._matching(event, subject):
            try:
                yield self._run(hook, event, fields, context)
            except Exception as error:
                _log.warning("the hook %s failed and is passed over: %s", hook, _why(error))

    def _matching(self, event: str, subject: str) -> Iterator[Hook]:
        return (hook for hook in self._hooks[event] if hook.matches(subject))

    def _run(self, hook: Hook, event: str, fields: Mapping[str, Any], context: object) -> Reply:
        known = {
            "hook_event_name": event,
            "session_id": getattr(context, "conversation_id", ""),
            "run_id": getattr(context, "run_id", ""),
            "agent_depth": getattr(context, "depth", 0),
            "cwd": str(self.cwd),
        }
        stdin = json.dumps({**known, **fields}, default=str)
        return read_reply(run_command(hook.command, stdin, cwd=self.cwd, timeout=hook.timeout))


def _about(call: ToolCall) -> dict[str, Any]:
    families = list(aliases_of(call.name)[1:])
    return {"tool_name": call.name, "tool_families": families, "tool_input": call.arguments, "tool_use_id": call.id}


def _objection(reply: Reply) -> str:
    return reply.reason if reply.decision == "deny" else ""


def _joined(texts: Iterable[str]) -> str | None:
    return "\n".join(text for text in texts if text) or None


def _expected(error: Exception) -> bool:
    return isinstance(error, HookFailed)


def _why(error: Exception) -> str:
    return str(error) if _expected(error) else f"{type(error).__name__}: {error}"
