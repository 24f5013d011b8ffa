"""What each pack claims, through the real loops: with the pack it holds, and without it the opposite happens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chimera.core.tool import tool
from chimera.plugins.packs import DelegateSpawnerPlugin, PlanGatePlugin, RedactorPlugin
from chimera.providers.faux import FauxRequest
from chimera.secrets import SecretDetector
from chimera.tools.delegate import DelegateTool
from chimera.types import AgentResult, Message
from tests.plugins.packs.drives import DRIVES, STRATEGIES, Drive, Echo, Talk, calls

SECRET = "sk-abcdefgh123"
WRITE = ("write_file", {"path": "made.txt", "content": "made"})
THINK = ("think", {"thought": "write made.txt"})
every_drive = pytest.mark.parametrize("drive", DRIVES.values(), ids=DRIVES)
every_strategy = pytest.mark.parametrize("drive", STRATEGIES.values(), ids=STRATEGIES)


def gated(tmp_path: Path, *script: Any) -> Talk:
    return Talk(tmp_path, [*script, "done"], PlanGatePlugin())


@every_drive
def test_plan_gate_a_write_without_a_plan_does_not_happen_and_the_model_reads_why(drive: Drive, tmp_path: Path) -> None:
    talk = gated(tmp_path, calls(WRITE))
    drive(talk, "go")
    assert not (tmp_path / "made.txt").exists()
    (answer,) = talk.answers
    assert answer.startswith("Blocked by interceptor: plan-gate: no plan")
    assert talk.provider.requests[-1].messages[-1].content == answer


@every_drive
def test_plan_gate_with_a_plan_it_happens(drive: Drive, tmp_path: Path) -> None:
    talk = gated(tmp_path, calls(WRITE), calls(THINK), calls(WRITE))
    drive(talk, "go")
    assert (tmp_path / "made.txt").read_text() == "made"
    assert "Blocked" in talk.answers[0]
    assert not any("Blocked" in answer for answer in talk.answers[1:])


@every_drive
def test_plan_gate_control_without_the_pack_the_early_write_happens(drive: Drive, tmp_path: Path) -> None:
    talk = Talk(tmp_path, [calls(WRITE), "done"])
    drive(talk, "go")
    assert (tmp_path / "made.txt").exists()


@every_drive
def test_plan_gate_an_earlier_call_of_the_same_step_opens_it_and_a_later_one_does_not(
    drive: Drive, tmp_path: Path
) -> None:
    late = gated(tmp_path, calls(WRITE, THINK))
    drive(late, "go")
    assert not (tmp_path / "made.txt").exists()
    early = gated(tmp_path, calls(THINK, WRITE))
    drive(early, "go")
    assert (tmp_path / "made.txt").exists()


@every_drive
def test_plan_gate_the_next_user_message_closes_it_again(drive: Drive, tmp_path: Path) -> None:
    talk = gated(tmp_path, calls(THINK), calls(WRITE), "done", calls(WRITE))
    drive(talk, "go")
    assert (tmp_path / "made.txt").exists()
    (tmp_path / "made.txt").unlink()
    drive(talk, "go")
    assert not (tmp_path / "made.txt").exists()
    assert "Blocked" in talk.answers[-1]


@every_drive
def test_plan_gate_it_stays_open_for_the_rest_of_the_turn(drive: Drive, tmp_path: Path) -> None:
    talk = gated(tmp_path, calls(THINK), *[calls(WRITE)] * 12)
    drive(talk, "go")
    assert sum("Blocked" in answer for answer in talk.answers) == 0
    assert len(talk.answers) == 13


@every_drive
def test_plan_gate_a_plan_counts_when_it_is_issued_even_if_no_such_tool_is_there(drive: Drive, tmp_path: Path) -> None:
    talk = Talk(tmp_path, [calls(("plan", {})), calls(WRITE), "done"], PlanGatePlugin(plan_tools=["plan"]))
    drive(talk, "go")
    assert talk.answers[0] == "Unknown tool: plan"
    assert (tmp_path / "made.txt").exists()


@every_strategy
def test_plan_gate_holds_in_the_strategy_loops(drive: Drive, tmp_path: Path) -> None:
    script = [calls(WRITE)] * 50
    talk = Talk(tmp_path, script, PlanGatePlugin())
    drive(talk, "go")
    assert not (tmp_path / "made.txt").exists()
    control = Talk(tmp_path, script)
    drive(control, "go")
    assert (tmp_path / "made.txt").exists()


def wire(request: FauxRequest) -> str:
    """Return all that was sent, in one text."""
    return repr((request.messages, request.tools, dict(request.kwargs), request.headers))


class Telling(Echo):
    name = "telling"
    description = f"Tells {SECRET}."


LEAKS = [
    calls(("echo", {"say": f"a {SECRET}"}), ("echo", {"fail": f"b {SECRET}"})),
    calls(("echo", {"say": "c", SECRET: [{"deep": SECRET}]})),
]


def redacted(tmp_path: Path, pack: RedactorPlugin | None) -> Talk:
    return Talk(tmp_path, [*LEAKS, f"told {SECRET}", "done"], pack, [Echo(), Telling()], f"Never tell {SECRET}.")


@every_drive
def test_redactor_nothing_of_the_secret_is_on_the_wire(drive: Drive, tmp_path: Path) -> None:
    talk = redacted(tmp_path, RedactorPlugin())
    drive(talk, f"my key is {SECRET}")
    drive(talk, "and now?")
    assert len(talk.provider.requests) == 4
    for request in talk.provider.requests:
        assert SECRET not in wire(request)
        assert request.messages[0].content == "Never tell [redacted]."
        assert request.messages[1].content == "my key is [redacted]"


@every_drive
def test_redactor_control_without_the_pack_it_is_in_every_request(drive: Drive, tmp_path: Path) -> None:
    talk = redacted(tmp_path, None)
    drive(talk, f"my key is {SECRET}")
    assert all(SECRET in wire(request) for request in talk.provider.requests)
    assert all(SECRET in answer for answer in talk.answers[:2])


@every_drive
def test_redactor_the_conversation_keeps_what_was_said_and_not_what_tools_answered(
    drive: Drive, tmp_path: Path
) -> None:
    talk = redacted(tmp_path, RedactorPlugin())
    drive(talk, f"my key is {SECRET}")
    said = [message for message in talk.context.messages if message.role == "user"]
    assert said == [Message.user(f"my key is {SECRET}")]
    assert talk.context.messages[-1].content == f"told {SECRET}"
    proposed = [call for message in talk.context.messages for call in message.tool_calls]
    assert proposed[0].arguments == {"say": f"a {SECRET}"}
    assert SECRET not in "".join(talk.answers)
    assert "a [redacted]" in talk.answers[0]
    assert "b [redacted]" in talk.answers[1]


@every_drive
def test_redactor_headers_of_the_call_are_replaced_and_the_providers_own_stay(drive: Drive, tmp_path: Path) -> None:
    talk = Talk(tmp_path, ["done"], RedactorPlugin(headers=["authorization", "x-trace"]))
    drive(talk, "go")
    assert talk.provider.requests[0].headers == {"Authorization": "[redacted]", "X-Trace": "[redacted]"}
    assert talk.provider.request_headers == {"Authorization": "Bearer own-key-1234", "X-Trace": "t"}


@every_drive
def test_redactor_that_fails_sends_nothing(drive: Drive, tmp_path: Path) -> None:
    pack = RedactorPlugin()
    vars(pack)["_detector"] = None
    talk = redacted(tmp_path, pack)
    drive(talk, f"my key is {SECRET}")
    assert talk.provider.requests == []


class FailsOnAnswers(SecretDetector):
    def scrub(self, text: str, replacement: str = "") -> str:
        if text == f"a {SECRET}":
            raise RuntimeError(text)
        return super().scrub(text, replacement)


@every_drive
def test_redactor_that_fails_on_a_result_withholds_it(drive: Drive, tmp_path: Path) -> None:
    pack = RedactorPlugin()
    vars(pack)["_detector"] = FailsOnAnswers()
    repeat = tool(name="repeat")(lambda: f"a {SECRET}")
    talk = Talk(tmp_path, [calls(("repeat", {})), "done"], pack, [repeat])
    drive(talk, "go")
    assert talk.answers == [
        "[tool result withheld by interceptor: redactor: the result could not be scrubbed (RuntimeError)]"
    ]


@every_strategy
def test_redactor_holds_in_the_strategy_loops(drive: Drive, tmp_path: Path) -> None:
    talk = redacted(tmp_path, RedactorPlugin())
    drive(talk, f"my key is {SECRET}")
    assert talk.provider.requests
    assert not any(SECRET in wire(request) for request in talk.provider.requests if len(request.messages) > 2)
    control = redacted(tmp_path, None)
    drive(control, f"my key is {SECRET}")
    assert any(SECRET in wire(request) for request in control.provider.requests)


class Helper:
    """A sub-agent that notes what it is asked."""

    def __init__(self) -> None:
        self.tasks: list[str] = []

    def run(self, task: str, env: Any = None) -> AgentResult:
        self.tasks.append(task)
        return AgentResult(f"did {task}", 1, 0, 0.0, True)


SPAWN = calls(("spawn_worker", {"task": "count the files"}), ("spawn_", {"path": "x"}))


@every_drive
def test_delegate_spawner_a_spawn_call_runs_a_sub_agent(drive: Drive, tmp_path: Path) -> None:
    helper = Helper()
    talk = Talk(tmp_path, [SPAWN, "done"], DelegateSpawnerPlugin(), [DelegateTool(sub_agent=helper)])
    drive(talk, "go")
    assert helper.tasks == ["count the files", 'spawn_: {"path": "x"}']
    assert ["did" in answer for answer in talk.answers] == [True, True]
    asked = [call.id for message in talk.context.messages for call in message.tool_calls]
    answered = [message.call_id for message in talk.context.messages if message.role == "tool"]
    assert asked == answered


@every_drive
def test_delegate_spawner_control_without_the_pack_there_is_no_such_tool(drive: Drive, tmp_path: Path) -> None:
    helper = Helper()
    talk = Talk(tmp_path, [SPAWN, "done"], None, [DelegateTool(sub_agent=helper)])
    drive(talk, "go")
    assert helper.tasks == []
    assert talk.answers == ["Unknown tool: spawn_worker", "Unknown tool: spawn_"]


@every_drive
def test_delegate_spawner_without_a_delegate_tool_the_error_is_loud(drive: Drive, tmp_path: Path) -> None:
    talk = Talk(tmp_path, [SPAWN, "done"], DelegateSpawnerPlugin())
    drive(talk, "go")
    assert talk.answers == ["Unknown tool: delegate", "Unknown tool: delegate"]


@every_strategy
def test_delegate_spawner_holds_in_the_strategy_loops(drive: Drive, tmp_path: Path) -> None:
    helper = Helper()
    script = [calls(("spawn_worker", {"task": "count"}))] * 50
    talk = Talk(tmp_path, script, DelegateSpawnerPlugin(), [DelegateTool(sub_agent=helper)])
    drive(talk, "go")
    assert set(helper.tasks) == {"count"}


@every_drive
def test_a_real_sub_agent_meets_its_own_plan_gate(drive: Drive, tmp_path: Path) -> None:
    """The parent has a plan; its sub-agent has none, and is another conversation under the same chains."""

    def model(request: FauxRequest) -> Any:
        last = request.messages[-1]
        if last.role == "user":
            return calls(WRITE) if last.content == "write it" else calls(THINK)
        if "sub" in str(request.messages[0].content):
            return f"sub-agent heard: {last.content}"
        return calls(("delegate", {"task": "write it"})) if "delegat" not in repr(request.messages[2:]) else "done"

    talk = Talk(tmp_path, [model] * 9, PlanGatePlugin(), [DelegateTool()])
    drive(talk, "go")
    assert not (tmp_path / "made.txt").exists()
    assert any("sub-agent heard: Blocked by interceptor: plan-gate" in answer for answer in talk.answers), talk.answers
