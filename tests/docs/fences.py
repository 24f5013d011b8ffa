"""Find the code fences of a Markdown page."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "Fence", "fences", "pages"]

ROOT = Path(__file__).parents[2]
_OPEN = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,}) *(?P<info>[^`]*)$")


@dataclass(frozen=True, slots=True)
class Fence:
    """One fence: its page from the root, the number of its first line of code, its info words, and its code."""

    page: str
    line: int
    info: tuple[str, ...]
    code: str

    @property
    def language(self) -> str:
        return self.info[0] if self.info else ""


def pages() -> list[str]:
    """Return the pages that people read, from the root."""
    found = [ROOT / "README.md", ROOT / "AGENTS.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page.relative_to(ROOT).as_posix() for page in found]


def fences(text: str, page: str = "") -> Iterator[Fence]:
    """Yield the fences of a page in order. Raises `ValueError` for one that is never closed."""
    lines = enumerate(text.splitlines(), 1)
    for number, line in lines:
        opened = _OPEN.match(line)
        if opened is None:
            continue
        code: list[str] = []
        for _, inner in lines:
            if re.fullmatch(rf" *{opened['ticks'][0]}{{{len(opened['ticks'])},}} *", inner):
                break
            code.append(inner)
        else:
            raise ValueError(f"{page}:{number}: the fence is never closed")
        yield Fence(page, number + 1, tuple(opened["info"].split()), textwrap.dedent("\n".join(code)) + "\n")
