from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scripts.coverage_gate import FLOORS, gate_lines


def entry(lines: tuple[int, int], branches: tuple[int, int]) -> dict[str, Any]:
    """Return what coverage.py says of one file; each pair is (covered, all)."""
    return {
        "summary": {
            "covered_lines": lines[0],
            "num_statements": lines[1],
            "missing_lines": lines[1] - lines[0],
            "covered_branches": branches[0],
            "num_branches": branches[1],
            "missing_branches": branches[1] - branches[0],
            "percent_covered": 50.5,
        }
    }


def judge(folder: Path, files: dict[str, dict[str, Any]]) -> tuple[bool, str]:
    path = folder / "coverage.json"
    path.write_text(json.dumps({"files": files}), encoding="utf-8")
    ok, lines = gate_lines(path)
    return ok, "\n".join(lines)


FULL = entry((100, 100), (10, 10))


@pytest.mark.parametrize(
    ("file", "covered", "passes"),
    [
        ("chimera/core/flows.py", entry((95, 100), (19, 20)), True),
        ("chimera/core/flows.py", entry((94, 100), (20, 20)), False),
        ("chimera/core/flows.py", entry((100, 100), (18, 20)), False),
        ("chimera/core/loops/react.py", entry((94, 100), (20, 20)), False),
        ("chimera/plugins/manager.py", entry((94, 100), (20, 20)), False),
        ("chimera/tools/bash.py", entry((85, 100), (17, 20)), True),
        ("chimera/tools/bash.py", entry((85, 100), (16, 20)), False),
        ("chimera/session.py", entry((84, 100), (20, 20)), False),
    ],
)
def test_each_part_has_its_floor(tmp_path: Path, file: str, covered: dict[str, Any], passes: bool) -> None:
    ok, text = judge(tmp_path, {"chimera/types.py": entry((0, 0), (0, 0)), file: covered})
    assert ok is passes
    assert (file in text) is not passes
    assert ("BELOW" in text) is not passes


def test_one_part_does_not_make_up_for_another(tmp_path: Path) -> None:
    files = {f"chimera/tools/t{number}.py": FULL for number in range(50)}
    ok, text = judge(tmp_path, {**files, "chimera/core/flows.py": entry((1, 2), (0, 0))})
    assert not ok
    assert "BELOW 95 %" in text


def test_every_part_has_a_line(tmp_path: Path) -> None:
    ok, text = judge(tmp_path, {"chimera/types.py": FULL})
    assert ok
    assert [line.split("lines")[0].removeprefix("coverage").strip() for line in text.splitlines()] == list(FLOORS)
