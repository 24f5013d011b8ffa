"""The tables of `docs/loops.md`, from what was recorded: `python -m tests.core.loops.coverage_table` renews them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from chimera.core.decisions import SEAMS
from tests.core.loops.coverage import SITUATIONS, Measured, Seen, measured

__all__ = ["PAGE", "rendered", "tables", "updated"]

PAGE = Path(__file__).parents[3] / "docs" / "loops.md"
_TOOLS_RUN_IN = [name for name in SITUATIONS if name not in ("approved call", "summary", "internal")]
_MODEL_CALLED_IN = [
    name for name in SITUATIONS if name not in ("approved call", "call after it", "nested call", "internal")
]


def rendered(seen: Seen | None) -> str:
    if seen is None:
        return ""
    return "".join(letter for letter, seam in zip("CPTR", SEAMS, strict=True) if seam in seen) or "none"


def tables(cells: Measured) -> dict[str, str]:
    """Return the tables of the page, by name."""
    by_seam = [[f"`{seam}`", *(_verdict(seam, row) for row in cells.values())] for seam in SEAMS]
    by_situation = [[loop, *map(rendered, row.values())] for loop, row in cells.items()]
    return {"seams": _table(["seam", *cells], by_seam), "situations": _table(["loop", *SITUATIONS], by_situation)}


def _verdict(seam: str, row: Mapping[str, Seen | None]) -> str:
    """Say in a word whether the seam sees all that it is there for."""
    before_the_model = seam in ("context", "provider_request")
    found = [row[name] for name in (_MODEL_CALLED_IN if before_the_model else _TOOLS_RUN_IN)]
    if not all(seam in seen for seen in found if seen is not None):
        return "no"
    return "conversation calls only" if before_the_model and row["internal"] is not None else "yes"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def updated(page: str, found: Mapping[str, str]) -> str:
    """Return the page with these tables in the places that carry their names."""
    for name, table in found.items():
        begin, end = f"<!-- {name}: begin -->\n", f"\n<!-- {name}: end -->"
        before, marker, rest = page.partition(begin)
        _, closing, after = rest.partition(end)
        if not marker or not closing:
            raise ValueError(f"the page has no place for the table {name!r}")
        page = f"{before}{begin}{table}{closing}{after}"
    return page


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8"), tables(measured())), encoding="utf-8")
