"""Consoles whose output can be read."""

from __future__ import annotations

import io

from rich.console import Console

__all__ = ["Recorded", "recorded"]


class Recorded(io.StringIO):
    """What a console wrote, as if to a file of some encoding."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding


def recorded(width: int = 80, *, encoding: str = "utf-8", terminal: bool = False) -> tuple[Console, Recorded]:
    """Return a console without colours, made like that of the program, and what it writes to."""
    out = Recorded(encoding)
    options = {"markup": False, "emoji": False, "highlight": False, "color_system": None}
    return Console(file=out, width=width, force_terminal=terminal, **options), out  # type: ignore[arg-type]
