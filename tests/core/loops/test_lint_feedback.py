from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from chimera.core.cancellation import CancellationToken
from chimera.core.loop import ReAct
from chimera.core.loop_config import LoopConfig
from chimera.core.loops.lint_feedback import LintFeedbackLoop
from chimera.core.tool import BaseTool
from chimera.errors import MisuseError
from chimera.providers.faux import FauxProvider
from chimera.types import AgentResult, ToolResult
from tests.core.loops.scenes import DRIVES, Probe, calls

every_drive = pytest.mark.parametrize("drive", DRIVES.values(), ids=DRIVES)


class Write(BaseTool):
    name = "write"
    effect = "write"

    def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        (env.root / "a.py").write_text(args["text"], encoding="utf-8")
        return ToolResult("written")


def writes(text: str) -> Any:
    return calls({"text": text}, name="write")


def python(code: str) -> dict[str, Any]:
    return {"linter": sys.executable, "lint_args": ["-c", code]}


@every_drive
def test_what_the_linter_reports_is_fed_back_until_it_is_content(drive: Any, tmp_path: Path) -> None:
    provider = FauxProvider([writes("import os\n"), "done", writes("x = 1\n"), "fixed", "never asked for"])
    ran = drive(LintFeedbackLoop(), provider, [Write()], tmp_path)
    assert ran.result == AgentResult("fixed", 4, 2, 0.0, True)
    fed_back = provider.requests[2].messages[-1]
    assert fed_back.role == "user"
    assert fed_back.content.startswith("The linter (ruff check .) ended with status 1:\n")
    assert "F401" in fed_back.content
    assert "a.py" in fed_back.content
    assert [step.done for step in ran.steps] in ([], [False, False, False, True])


@every_drive
def test_a_clean_project_is_not_touched_again(drive: Any, tmp_path: Path) -> None:
    provider = FauxProvider(["done"])
    ran = drive(LintFeedbackLoop(), provider, [], tmp_path)
    assert ran.result == AgentResult("done", 1, 0, 0.0, True)
    assert len(provider.requests) == 1


@every_drive
@pytest.mark.parametrize("rounds", [0, 2])
def test_rounds_are_bounded(drive: Any, rounds: int, tmp_path: Path) -> None:
    provider = FauxProvider(["done"])
    ran = drive(LintFeedbackLoop(max_lint_rounds=rounds, **python("exit('E1: wrong')")), provider, [], tmp_path)
    assert len(provider.requests) == rounds + 1
    assert ran.result is not None
    assert (ran.result.output, ran.result.success) == ("done", False)
    assert "still ends with status 1:\nE1: wrong" in (ran.result.error or "")
    assert ran.context.messages[-1].role == "assistant"


@pytest.mark.parametrize(
    ("code", "success"),
    [
        ("print('E501 error: 12 problems found')", True),
        ("import sys; print('All checks passed!'); sys.exit(1)", False),
        ("import sys; sys.exit(2)", False),
    ],
)
def test_the_exit_status_decides_and_not_the_text(code: str, success: bool, tmp_path: Path) -> None:
    ran = DRIVES["run"](LintFeedbackLoop(max_lint_rounds=0, **python(code)), FauxProvider("done"), [], tmp_path)
    assert ran.result is not None
    assert ran.result.success == success


def test_both_streams_are_fed_back(tmp_path: Path) -> None:
    provider = FauxProvider("done")
    code = "import sys; print('to stdout'); print('to stderr', file=sys.stderr); sys.exit(3)"
    DRIVES["run"](LintFeedbackLoop(max_lint_rounds=1, **python(code)), provider, [], tmp_path)
    text = provider.requests[1].messages[-1].content
    assert "status 3" in text
    assert "to stdout" in text
    assert "to stderr" in text


@every_drive
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"linter": "no-such-linter"}, "no-such-linter was not found"),
        ({"linter": "./no-such-linter"}, "cannot be started"),
        ({**python("import time; time.sleep(60)"), "lint_timeout": 0.2}, "took longer than 0.2 seconds"),
        (python("import os; os.kill(os.getpid(), 9)"), "was killed by signal 9"),
    ],
    ids=["missing", "path", "slow", "killed"],
)
def test_a_linter_that_cannot_be_run_is_no_clean_project(
    drive: Any, options: dict[str, Any], words: str, tmp_path: Path
) -> None:
    provider = FauxProvider("done")
    ran = drive(LintFeedbackLoop(**options), provider, [], tmp_path)
    assert ran.result is not None
    assert (ran.result.output, ran.result.success) == ("done", False)
    assert "the project was not linted" in (ran.result.error or "")
    assert words in (ran.result.error or "")
    assert len(provider.requests) == 1


def test_a_linter_with_a_slash_is_taken_from_the_project(tmp_path: Path) -> None:
    script = tmp_path / "tools" / "check"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\npwd\nexit 7\n", encoding="utf-8")
    script.chmod(0o755)
    provider = FauxProvider("done")
    DRIVES["run"](LintFeedbackLoop(linter="tools/check", max_lint_rounds=1), provider, [], tmp_path)
    text = provider.requests[1].messages[-1].content
    assert f"(tools/check) ended with status 7:\n{tmp_path.resolve()}" in text


def test_a_bare_name_is_never_taken_from_the_project(tmp_path: Path) -> None:
    """A model that writes a file named like the linter has not written the linter."""
    trap = tmp_path / "ruff"
    trap.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    trap.chmod(0o755)
    (tmp_path / "a.py").write_text("import os\n", encoding="utf-8")
    ran = DRIVES["run"](LintFeedbackLoop(max_lint_rounds=0), FauxProvider("done"), [], tmp_path)
    assert ran.result is not None
    assert "F401" in (ran.result.error or "")


def test_arguments_are_passed_as_they_are(tmp_path: Path) -> None:
    code = "import sys; sys.exit(' | '.join(sys.argv[1:]))"
    loop = LintFeedbackLoop(linter=sys.executable, lint_args=["-c", code, "a b", "$HOME", "; rm x"], max_lint_rounds=0)
    ran = DRIVES["run"](loop, FauxProvider("done"), [], tmp_path)
    assert ran.result is not None
    assert (ran.result.error or "").endswith("a b | $HOME | ; rm x")


@every_drive
def test_a_run_that_failed_is_not_linted(drive: Any, tmp_path: Path) -> None:
    loop = LintFeedbackLoop(ReAct(1), **python("open('linted', 'w')"))
    ran = drive(loop, FauxProvider([calls()]), [Probe()], tmp_path)
    assert ran.result is not None
    assert ran.result.error == "the run did not finish within 1 steps"
    assert not (tmp_path / "linted").exists()


def test_much_output_is_cut(tmp_path: Path) -> None:
    provider = FauxProvider("done")
    DRIVES["run"](LintFeedbackLoop(max_lint_rounds=1, **python("exit('x' * 50_000)")), provider, [], tmp_path)
    text = provider.requests[1].messages[-1].content
    assert len(text) < 21_000
    assert "(30000 more characters)" in text


def test_output_that_is_no_text_is_read_all_the_same(tmp_path: Path) -> None:
    provider = FauxProvider("done")
    code = "import sys; sys.stdout.buffer.write(b'\\xff\\xfe bad'); sys.exit(1)"
    DRIVES["run"](LintFeedbackLoop(max_lint_rounds=1, **python(code)), provider, [], tmp_path)
    assert "\ufffd\ufffd bad" in provider.requests[1].messages[-1].content


def started_children(tmp_path: Path) -> dict[str, Any]:
    """A linter that starts a process of its own, which would leave a file after a second."""
    child = f"import time, pathlib; time.sleep(1); pathlib.Path({str(tmp_path / 'late')!r}).touch()"
    return python(
        "import subprocess, sys, time, pathlib\n"
        f"subprocess.Popen([sys.executable, '-c', {child!r}])\n"
        "pathlib.Path('started').touch()\n"
        "time.sleep(60)"
    )


def test_cancelling_kills_the_linter_and_what_it_started(tmp_path: Path) -> None:
    import threading

    token = CancellationToken()

    def cancel() -> None:
        while not (tmp_path / "started").exists():
            time.sleep(0.005)
        token.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    loop = LintFeedbackLoop(ReAct(config=LoopConfig(cancellation=token, yolo_mode=True)), **started_children(tmp_path))
    ran = DRIVES["run"](loop, FauxProvider("done"), [], tmp_path)
    thread.join()
    assert ran.result is not None
    assert ran.result.error == "the run was cancelled"
    time.sleep(1.1)
    assert not (tmp_path / "late").exists()


async def test_giving_up_the_stream_kills_the_linter(tmp_path: Path) -> None:
    import asyncio

    from tests.core.loops.scenes import conversation

    loop = LintFeedbackLoop(**started_children(tmp_path))
    stream = loop.async_iter_steps(FauxProvider("done"), [], conversation(), tmp_path)
    task = asyncio.ensure_future(anext(stream))
    while not (tmp_path / "started").exists():  # noqa: ASYNC110 - another process sets it
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(1.1)
    assert not (tmp_path / "late").exists()


@pytest.mark.parametrize("options", [{"max_lint_rounds": -1}, {"lint_args": "check ."}])
def test_options_that_cannot_be_meant_are_refused(options: Any) -> None:
    with pytest.raises(MisuseError):
        LintFeedbackLoop(**options)
