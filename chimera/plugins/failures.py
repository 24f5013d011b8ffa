"""Saying what went wrong in somebody else's source: file, line, reason."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

__all__ = ["described"]

_CHIMERA = str(Path(__file__).parent.parent)
_PACKS = str(Path(__file__).parent / "packs")
_PYTHON = sysconfig.get_path("stdlib")


def described(exc: BaseException) -> str:
    """Return `exc` in one line, with the place in the plugin's source where it happened, when there is one."""
    if isinstance(exc, SyntaxError) and exc.filename:
        return f"{exc.filename}, line {exc.lineno}: {type(exc).__name__}: {exc.msg}"
    text = f"{type(exc).__name__}: {exc}" if str(exc) else type(exc).__name__
    frames = [frame for frame in traceback.extract_tb(exc.__traceback__) if _is_foreign(frame.filename)]
    return f"{frames[-1].filename}, line {frames[-1].lineno}: {text}" if frames else text


def _is_foreign(filename: str) -> bool:
    """Tell whether a file is a plugin's: neither Python's nor Chimera's, but for the bundled packs."""
    if filename.startswith(("<frozen ", _CHIMERA)) and not filename.startswith(_PACKS):
        return False
    return not filename.startswith(_PYTHON) or "site-packages" in filename
