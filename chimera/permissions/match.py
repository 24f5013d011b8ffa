"""How surely a rule meets a call."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Match"]


class Match(IntEnum):
    """MAYBE: the call does not tell before it runs."""

    NO = 0
    MAYBE = 1
    YES = 2
