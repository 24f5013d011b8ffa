from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from chimera.assembly.loop_adapter import REAL_LOOPS
from chimera.cli.gate import PermissionGate
from chimera.cli.options import CodeOptions, Mode
from chimera.cli.setup import open_session
from chimera.core.interception import intercept_tool_call
from chimera.errors import ConfigError
from chimera.permissions import PermissionAction, PermissionDecision, PermissionPolicy
from chimera.types import PendingApproval, ToolCall
from tests.cli.child import script

CALL = ToolCall("1", "bash", {"command": "ls"})
TOUCH = {"tool_calls": [{"name": "bash", "arguments": {"command": "touch ran"}}]}
OPENINGS: dict[str, list[Any]] = {"plan-execute": ["1. touch", TOUCH], "reflexion": [TOUCH], "tot": [TOUCH] * 3}


class Says(PermissionPolicy):
    """Answers every call in one way."""

    def __init__(self, action: PermissionAction, reason: str = "") -> None:
        self.decision = PermissionDecision(action, reason)

    def evaluate(self, tool_name: str, args: Mapping[str, Any]) -> PermissionAction:
        return self.decision.action

    def decide(self, tool_name: str, args: Mapping[str, Any]) -> PermissionDecision:
        return self.decision


def refusal(gate: PermissionGate) -> str | None:
    return intercept_tool_call(gate.interceptors().tool_call, CALL)[1]


def answering(approve: bool, message: str = "") -> Any:
    def ask(approval: PendingApproval) -> None:
        assert approval.tool_call == CALL
        approval.approve() if approve else approval.deny(message)

    return ask


@pytest.mark.parametrize(
    ("gate", "reason"),
    [
        (PermissionGate(Says(PermissionAction.ALLOW)), None),
        (PermissionGate(Says(PermissionAction.DENY, "a rule")), "permission denied: a rule"),
        (PermissionGate(Says(PermissionAction.DENY)), "permission denied: bash is not allowed"),
        (
            PermissionGate(Says(PermissionAction.ASK, "it writes")),
            "permission denied: it writes, and nobody is there to be asked",
        ),
        (PermissionGate(Says(PermissionAction.ASK), answering(True)), None),
        (PermissionGate(Says(PermissionAction.ASK), answering(False)), "permission denied: the user denied it"),
        (PermissionGate(Says(PermissionAction.ASK), answering(False, "x")), "permission denied: the user denied it: x"),
        (
            PermissionGate(Says(PermissionAction.ASK), lambda approval: None),
            "permission denied: the user denied it",
        ),
    ],
)
def test_the_policys_answer_is_the_gates(gate: PermissionGate, reason: str | None) -> None:
    assert refusal(gate) == reason


def test_a_question_that_fails_blocks() -> None:
    def ask(approval: PendingApproval) -> None:
        raise OSError("the terminal is gone")

    reason = refusal(PermissionGate(Says(PermissionAction.ASK), ask))
    assert reason is not None
    assert "the terminal is gone" in reason


@pytest.mark.parametrize("loop", REAL_LOOPS)
@pytest.mark.parametrize(
    ("mode", "rules", "ran"),
    [
        (Mode.ACCEPT_EDITS, "", False),
        (Mode.ACCEPT_EDITS, 'allow = ["Bash(touch:*)"]', True),
        (Mode.YOLO, "", True),
        (Mode.YOLO, 'deny = ["Bash(touch:*)"]', False),
    ],
)
def test_permissions_hold_in_every_strategy_loop(tmp_path: Path, loop: str, mode: Mode, rules: str, ran: bool) -> None:
    (tmp_path / ".chimera").mkdir()
    (tmp_path / ".chimera" / "config.toml").write_text(f"[permissions]\n{rules}\n")
    model = script(tmp_path, [*OPENINGS[loop], *["done"] * 20])
    with open_session(CodeOptions(model=model, project=tmp_path, loop=loop), default_mode=mode) as session:

        async def turn() -> None:
            async for event in session.agent.send("go"):
                session.log.see(event)

        asyncio.run(turn())
        blocked = [entry for entry in session.log.entries if entry.decision == "blocked"]
    assert (tmp_path / "ran").exists() is ran
    assert bool(blocked) is not ran
    assert all(entry.interceptor == "PermissionGate.permission" for entry in blocked)


def test_a_loop_that_could_not_run_the_hooks_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".chimera").mkdir()
    hook = '[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "true"\n'
    (tmp_path / ".chimera" / "config.toml").write_text(hook)
    options = CodeOptions(model="faux", project=tmp_path, loop="tot")
    refused = pytest.raises(ConfigError, match="hooks do not run in the loop 'tot'")
    with refused, open_session(options, default_mode=Mode.ASK):
        pytest.fail("the hooks would not run")
