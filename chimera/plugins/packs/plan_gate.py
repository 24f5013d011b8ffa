"""plan-gate: no writing and no commands before there is a plan."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any, Literal

from chimera.core.decisions import InterceptDecision, Interceptors
from chimera.core.identity import current_run
from chimera.plugins.base import BasePlugin
from chimera.plugins.packs._options import names
from chimera.plugins.packs._turns import UserTurns
from chimera.plugins.registry import ComponentRegistry
from chimera.types import Message, ToolCall

__all__ = ["GATED_TOOLS", "PLAN_TOOLS", "PlanGatePlugin"]

GATED_TOOLS = ("write_file", "edit_file", "replace_in_file", "apply_patch", "bash")
PLAN_TOOLS = ("think", "todo")
_CONVERSATIONS = 4096


class PlanGatePlugin(BasePlugin):
    """Blocks `gated_tools` until the model has called one of `plan_tools` since the latest user message.

    That a plan was recorded means that such a call was issued: it opens the gate before it runs, so an earlier call of
    the same step does too, and so does one of a tool that is not installed. What the plan says is not looked at.
    Every new user message closes the gate again, also one that steers a running turn.

    With `scope="conversation"` each conversation has its own gate; of those, the last few thousand are remembered, and
    the gate of a forgotten one is closed. With `scope="process"` all agents share one gate. Tool names match exactly.

    Raises `ValueError` for options that make no gate.
    """

    def __init__(
        self,
        *,
        gated_tools: Iterable[str] = GATED_TOOLS,
        plan_tools: Iterable[str] = PLAN_TOOLS,
        scope: Literal["conversation", "process"] = "conversation",
    ) -> None:
        self._gated, self._plan = names(gated_tools, "gated_tools"), names(plan_tools, "plan_tools")
        if not self._gated or not self._plan:
            raise ValueError("a plan gate needs both gated_tools and plan_tools")
        if both := sorted({*self._gated} & {*self._plan}):
            raise ValueError(f"a tool cannot be gated and open the gate: {', '.join(both)}")
        if scope not in ("conversation", "process"):
            raise ValueError(f"scope is 'conversation' or 'process', not {scope!r}")
        self.scope = scope
        self._lock = Lock()
        self._turns: OrderedDict[str, UserTurns] = OrderedDict()
        self._open: set[str] = set()

    @property
    def name(self) -> str:
        return "plan-gate"

    def interceptors(self) -> Interceptors:
        """Return the chains of this gate, for use without the plugin system."""
        return Interceptors(context=[self._watch], tool_call=[self._gate])

    def register_interceptors(self, registry: ComponentRegistry) -> None:
        registry.register_interceptors(self.interceptors())

    def export_state(self) -> dict[str, Any]:
        """Return what the next version needs to know which gates are open. It is shared, not copied: runs that began
        under this version go on with it, and gates that they open or close are open or closed for both."""
        return {"scope": self.scope, "lock": self._lock, "turns": self._turns, "open": self._open}

    def import_state(self, state: Mapping[str, Any]) -> None:
        """Go on with the gates of another version. Raises `ValueError` for those of another scope."""
        if state["scope"] != self.scope:
            raise ValueError(f"the gates were kept per {state['scope']}, and now they are kept per {self.scope}")
        self._lock, self._turns, self._open = state["lock"], state["turns"], state["open"]

    def _watch(self, messages: list[Message]) -> None:
        conversation = _conversation()
        with self._lock:
            if self._follow(conversation).look(messages):
                self._open.discard(self._gate_of(conversation))

    def _gate(self, call: ToolCall) -> InterceptDecision | None:
        if call.name in self._plan:
            conversation = _conversation()
            with self._lock:
                self._follow(conversation)
                self._open.add(self._gate_of(conversation))
        elif call.name in self._gated and self._gate_of(_conversation()) not in self._open:
            return InterceptDecision.block(self._reason(call.name))
        return None

    def _gate_of(self, conversation: str) -> str:
        return conversation if self.scope == "conversation" else ""

    def _follow(self, conversation: str) -> UserTurns:
        """Return what is known of a conversation; the one that was silent longest is forgotten for a new one."""
        turns = self._turns.get(conversation)
        if turns is None:
            turns = self._turns[conversation] = UserTurns()
            if len(self._turns) > _CONVERSATIONS:
                forgotten, _ = self._turns.popitem(last=False)
                self._open.discard(self._gate_of(forgotten))
        else:
            self._turns.move_to_end(conversation)
        return turns

    def _reason(self, tool: str) -> str:
        plan = " or ".join(self._plan)
        return (
            f"plan-gate: no plan has been recorded since the latest user message. Call {plan} with your plan first, "
            f"then call {tool} again."
        )


def _conversation() -> str:
    run = current_run()
    return run.conversation_id if run is not None else ""
