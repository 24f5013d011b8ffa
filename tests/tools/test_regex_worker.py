"""The program that matches patterns speaks its protocol, and holds on to nothing of Chimera."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import Any

import pytest

from chimera.tools import _regex_worker as worker


def converse(monkeypatch: pytest.MonkeyPatch, job: dict[str, Any], *texts: tuple[str, int]) -> list[Any]:
    """Run the program in this process on a pattern and texts with their limits; return its answers."""
    sent = json.dumps(job).encode() + b"\n"
    for text, limit in texts:
        data = text.encode("utf-8", "surrogatepass")
        sent += b"%d %d\n%b" % (len(data), limit, data)
    answers = io.StringIO()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(sent)))
    monkeypatch.setattr(sys, "stdout", answers)
    worker.main()
    return [json.loads(line) for line in answers.getvalue().splitlines()]


def test_a_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [("a\nxA\n\nb", 9), ("", 9), ("a\na\na", 2), ("é\ud800a\n", 9)]
    answers = converse(monkeypatch, {"pattern": "a", "ignore_case": True}, *texts)
    assert answers == [None, [[0, 0], [1, 1]], [], [[0, 0], [1, 0]], [[0, 2]]]


def test_case_counts_unless_it_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert converse(monkeypatch, {"pattern": "a", "ignore_case": False}, ("A\na\n", 9)) == [None, [[1, 0]]]


def test_what_follows_the_last_line_end_is_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    job = {"pattern": "^$", "ignore_case": False}
    assert converse(monkeypatch, job, ("a\n", 9), ("a\n\n", 9), ("", 9)) == [None, [], [[1, 0]], []]


def test_a_wrong_pattern_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    (answer,) = converse(monkeypatch, {"pattern": "(", "ignore_case": False}, ("a", 9))
    assert "unterminated subpattern" in answer


def test_it_runs_alone() -> None:
    job = json.dumps({"pattern": "b", "ignore_case": False}).encode()
    command = [sys.executable, "-I", "-S", str(worker.__file__)]
    done = subprocess.run(command, input=job + b"\n3 1\na\nb", capture_output=True, check=True)
    assert done.stdout.split() == [b"null", b"[[1,", b"0]]"]
