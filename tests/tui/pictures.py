"""Pictures of the screen, compared with those that were looked at and kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

__all__ = ["check_picture"]

_KEPT = Path(__file__).parent / "snapshots"
_UPDATE = "UPDATE_PICTURES"


def check_picture(app: Any, name: str, tmp_path: Path) -> None:
    """Compare the screen with the picture `name`. With UPDATE_PICTURES=1 in the environment it becomes that picture."""
    picture = app.export_screenshot(title="Chimera")
    kept = _KEPT / f"{name}.svg"
    if os.environ.get(_UPDATE):
        kept.write_text(picture, encoding="utf-8")
    drawn = tmp_path / kept.name
    drawn.write_text(picture, encoding="utf-8")
    assert kept.exists(), f"there is no picture {kept}; look at {drawn}, and run with {_UPDATE}=1 to keep it"
    assert picture == kept.read_text(encoding="utf-8"), f"the screen looks different: compare {drawn} with {kept}"
