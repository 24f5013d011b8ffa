"""The testing kit tells the truth about what a run did."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from chimera.core import InterceptDecision, Interceptors, LoopConfig
from chimera.testing import create_assembled_harness, create_harness, default_test_tools
from chimera.types import ToolCall


def write(path: str, content: str) -> dict[str, object]:
    return {"name": "write_file", "arguments": {"path": path, "content": content}}


CHANGES = [
    {
        "tool_calls": [
            write("new/made.txt", "1"),
            write("old.txt", "changed"),
            write("same.txt", "same"),
            {"name": "bash", "arguments": {"command": "rm gone.txt"}},
        ]
    },
    "done",
]


def fill(folder: Path) -> None:
    for name, text in {"old.txt": "old", "same.txt": "same", "gone.txt": "x"}.items():
        (folder / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("kind", ["assembled", "bare"])
def test_files_that_were_created_modified_and_deleted(tmp_path: Path, kind: str) -> None:
    fill(tmp_path)
    config = LoopConfig(yolo_mode=True)
    harness = (
        create_assembled_harness(CHANGES, workspace=tmp_path)
        if kind == "assembled"
        else create_harness(CHANGES, workspace=tmp_path, config=config)
    )
    run = harness.run("go")
    assert run.files_created == ["new/made.txt"]
    assert run.files_modified == ["old.txt"]
    assert run.files_deleted == ["gone.txt"]
    assert (run.reason, run.error, run.output) == ("completed", None, "done")
    assert [call.name for call in run.tool_calls] == ["write_file"] * 3 + ["bash"]
    assert all(result.success for result in run.tool_results)


@pytest.mark.parametrize("create", [create_assembled_harness, create_harness])
def test_consecutive_runs_continue_the_conversation(create: object) -> None:
    harness = create(["one", "two"])  # type: ignore[operator]
    harness.run("a")
    run = harness.run("b")
    assert [message.content for message in run.messages] == ["a", "one", "b", "two"]
    assert len(harness.provider.requests[1].messages) > len(harness.provider.requests[0].messages)


def test_a_bare_harness_shows_decisions_of_its_loop() -> None:
    def gate(call: ToolCall) -> InterceptDecision:
        return InterceptDecision.block("no")

    config = LoopConfig(interceptors=Interceptors(tool_call=[gate]), yolo_mode=True)
    with create_harness([{"tool_calls": [write("a", "b")]}, "ok"], config=config) as harness:
        run = harness.run("go")
        assert [decision.reason for decision in run.decisions] == ["no"]
        assert run.files_created == []


def test_failures_are_errors_of_the_run() -> None:
    with create_assembled_harness([{"error": "down"}]) as harness:
        run = harness.run("go")
        assert run.error is not None
        assert "down" in run.error


def test_usage_and_cost() -> None:
    with create_assembled_harness([{"text": "x", "usage": {"input_tokens": 3, "output_tokens": 4}}]) as harness:
        run = harness.run("go")
        assert (run.usage["input_tokens"], run.usage["output_tokens"], run.cost_usd) == (3, 4, 0.0)


async def test_runs_can_be_awaited_and_work_below_a_running_loop() -> None:
    with create_assembled_harness(["a", "b", "c"]) as harness:
        assert harness.run("1").output == "a"
        assert (await harness.run("2")).output == "b"
        assert (await harness.arun("3")).output == "c"


def test_a_temporary_workspace_goes_with_its_harness_and_a_given_one_stays(tmp_path: Path) -> None:
    harness = create_assembled_harness("x")
    folder = harness.workspace
    assert folder.is_dir()
    harness.close()
    assert not folder.exists()
    dropped = create_assembled_harness("x").workspace
    gc.collect()
    assert not dropped.exists()
    create_assembled_harness("x", workspace=tmp_path).close()
    assert tmp_path.is_dir()


def test_default_tools_are_rooted_in_the_workspace(tmp_path: Path) -> None:
    names = {tool.name for tool in default_test_tools(tmp_path)}
    assert {"bash", "read_file", "write_file", "think", "todo"} <= names
