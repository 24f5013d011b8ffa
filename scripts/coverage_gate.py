"""Hold the coverage of each part of the package against its floor."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

__all__ = ["FLOORS", "Part", "gate_lines", "parts"]

FLOORS = {"chimera/core": 95.0, "chimera/plugins": 95.0, "the rest": 85.0}
"""The least share of statements, and of branches, that the tests must reach, in percent."""

SHOWN = 8


@dataclass(frozen=True, slots=True)
class Part:
    """What coverage counted in some files: the shares are percentages, and 100 where there is nothing to cover."""

    name: str
    files: dict[str, dict[str, int]]

    @property
    def lines(self) -> float:
        return self._share("covered_lines", "num_statements", self.files.values())

    @property
    def branches(self) -> float:
        return self._share("covered_branches", "num_branches", self.files.values())

    @property
    def passes(self) -> bool:
        return min(self.lines, self.branches) >= FLOORS[self.name]

    def worst(self) -> list[str]:
        """Return the files with the most that is not covered, worst first."""
        missing = {
            name: (counts["missing_lines"] + counts["missing_branches"], counts) for name, counts in self.files.items()
        }
        ranked = sorted(missing.items(), key=lambda item: -item[1][0])[:SHOWN]
        return [
            f"    {name}: {counts['missing_lines']} lines and {counts['missing_branches']} branches not covered"
            for name, (count, counts) in ranked
            if count
        ]

    @staticmethod
    def _share(covered: str, total: str, files: Iterable[dict[str, int]]) -> float:
        rows = list(files)
        whole = sum(row[total] for row in rows)
        return 100.0 * sum(row[covered] for row in rows) / whole if whole else 100.0


def parts(report: dict[str, Any]) -> list[Part]:
    """Sort the files of a JSON report of coverage.py into the parts that have floors."""
    files: dict[str, dict[str, dict[str, int]]] = {name: {} for name in FLOORS}
    for name, entry in report["files"].items():
        folder = "/".join(PurePosixPath(name.replace("\\", "/")).parts[:2])
        counts = {key: int(value) for key, value in entry["summary"].items() if isinstance(value, int)}
        files[folder if folder in FLOORS else "the rest"][name] = counts
    return [Part(name, found) for name, found in files.items()]


def gate_lines(path: Path) -> tuple[bool, list[str]]:
    """Return whether every part reaches its floor, and one line a part; a failing part lists its worst files."""
    lines = []
    found = parts(json.loads(path.read_text(encoding="utf-8")))
    for part in found:
        shares = f"lines {part.lines:5.1f} %  branches {part.branches:5.1f} %"
        verdict = "" if part.passes else f"  BELOW {FLOORS[part.name]:.0f} %"
        lines.append(f"coverage  {part.name:<16}{shares}{verdict}")
        lines += [] if part.passes else part.worst()
    return all(part.passes for part in found), lines
