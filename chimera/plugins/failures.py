"""Saying what went wrong in somebody else's source: file, line, reason."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chimera.errors import PluginError

__all__ = ["defined_at", "described", "last_place", "saying"]

_CHIMERA = str(Path(__file__).parent.parent)
_PACKS = str(Path(__file__).parent / "packs")
_PYTHON = sysconfig.get_path("stdlib")


def described(exc: BaseException, place: str = "") -> str:
    """Return `exc` in one line, with the place in the plugin's source where it happened; else `place`, if any."""
    if isinstance(exc, SyntaxError) and exc.filename:
        return f"{exc.filename}, line {exc.lineno}: {type(exc).__name__}: {exc.msg}"
    where = last_place(traceback.extract_tb(exc.__traceback__))
    if isinstance(exc, PluginError):
        return f"{where}: {exc}" if where else str(exc)
    text = f"{type(exc).__name__}: {exc}" if str(exc) else type(exc).__name__
    return f"{where or place}: {text}" if where or place else text


def last_place(frames: Iterable[traceback.FrameSummary]) -> str:
    """Return file and line of the innermost frame in a plugin's source, an empty text when there is none."""
    found = [frame for frame in frames if _is_foreign(frame.filename)]
    return f"{found[-1].filename}, line {found[-1].lineno}" if found else ""


def defined_at(fn: Any) -> str:
    """Return file and line of a function or method, its name where that is not known."""
    code = getattr(fn, "__code__", None)
    return f"{code.co_filename}, line {code.co_firstlineno}" if code else str(getattr(fn, "__qualname__", fn))


@contextmanager
def saying(what: str, place: str = "") -> Iterator[None]:
    """Turn whatever fails inside into a `PluginError` that begins with `what`. Only interrupts pass."""
    try:
        yield
    except (Exception, SystemExit) as exc:
        raise PluginError(f"{what}: {described(exc, place)}") from exc


def _is_foreign(filename: str) -> bool:
    """Tell whether a file is a plugin's: neither Python's nor Chimera's, but for the bundled packs."""
    if filename.startswith(("<frozen ", _CHIMERA)) and not filename.startswith(_PACKS):
        return False
    return not filename.startswith(_PYTHON) or "site-packages" in filename
