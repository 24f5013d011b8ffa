"""What a hook says: reading its exit status and its JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from chimera.hooks.process import HookFailed, HookOutput

__all__ = ["Decision", "HookVerdict", "Reply", "read_reply", "stricter"]

Decision = Literal["allow", "ask", "deny"]
MAX_REASON = 4_000  # characters
_BLOCK = 2  # the exit status that means no
_STRICTNESS: dict[Decision, int] = {"allow": 0, "ask": 1, "deny": 2}
_WORDS: dict[str, Decision] = {
    "allow": "allow",
    "approve": "allow",
    "ask": "ask",
    "deny": "deny",
    "block": "deny",
}


@dataclass(frozen=True, slots=True)
class HookVerdict:
    """What the hooks of a gate decided together. `allow` loosens nothing that others decide.

    `hook` names the one that decided; `failed` says that it gave no verdict and the gate closed for that; `context` is
    text that hooks want the model to know.
    """

    decision: Decision = "allow"
    reason: str = ""
    hook: str = ""
    failed: bool = False
    context: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What one hook said. `context` is meant for the model; `text` is what it printed that is no JSON, which is meant
    for the model in some events. `ends` is True when it wants the agent to stop altogether."""

    decision: Decision = "allow"
    reason: str = ""
    context: str = ""
    text: str = ""
    ends: bool = False


def stricter(first: Decision, second: Decision) -> Decision:
    """Return the stricter of two decisions."""
    return max(first, second, key=_STRICTNESS.__getitem__)


def read_reply(output: HookOutput) -> Reply:
    """Read what a command said. Raises `HookFailed` for an exit status or an answer that means nothing.

    Status 2 blocks, with the error output as the reason. With status 0, a JSON object on standard output decides, any
    other text is context.
    """
    if output.exit_code == _BLOCK:
        return Reply("deny", _reason(output.stderr.strip() or output.stdout.strip()))
    if output.exit_code != 0:
        detail = output.stderr.strip()[-500:]
        raise HookFailed(f"it ended with status {output.exit_code}" + (f": {detail}" if detail else ""))
    text = output.stdout.strip()
    return _read_json(text) if text.startswith("{") else Reply(text=text)


def _read_json(text: str) -> Reply:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise HookFailed(f"its output looks like JSON and cannot be read: {error}") from error
    specific = answer.get("hookSpecificOutput") or {}
    if not isinstance(specific, dict):
        raise HookFailed("its hookSpecificOutput is no object")
    if specific.get("updatedInput") is not None:
        raise HookFailed("it wants to change the tool's input, which hooks cannot do")
    if answer.get("continue", True) is False:
        return Reply("deny", _reason(answer.get("stopReason") or answer.get("reason")), ends=True)
    decision, reason = _decide(answer, specific)
    context = specific.get("additionalContext")
    return Reply(decision, reason if decision != "allow" else "", "" if context is None else _as_text(context))


def _decide(answer: dict[str, Any], specific: dict[str, Any]) -> tuple[Decision, str]:
    if not isinstance(answer.get("continue", True), bool):
        raise HookFailed(f"its 'continue' is neither true nor false: {answer['continue']!r}")
    general, special = _word(answer.get("decision")), _word(specific.get("permissionDecision"))
    decision = stricter(general, special)
    reasons = [(special, specific.get("permissionDecisionReason")), (general, answer.get("reason"))]
    reason = next((text for said, text in reasons if said == decision and text), None)
    return decision, _reason(reason)


def _word(value: Any) -> Decision:
    if value is None:
        return "allow"
    if not isinstance(value, str) or value not in _WORDS:
        raise HookFailed(f"its decision {value!r} is none of {', '.join(_WORDS)}")
    return _WORDS[value]


def _reason(value: Any) -> str:
    text = _as_text(value).strip() if value else ""
    return text[:MAX_REASON] or "the hook gave no reason"


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
