"""Pictures of the screen, compared with those that were looked at and kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

__all__ = ["check_picture"]

_KEPT = Path(__file__).parent / "snapshots"
_UPDATE = "UPDATE_PICTURES"


async def check_picture(pilot: Any, name: str, tmp_path: Path) -> None:
    """Compare the screen with the picture `name`. With UPDATE_PICTURES=1 in the environment it becomes that picture."""
    picture = await _at_rest(pilot)
    kept = _KEPT / f"{name}.svg"
    if os.environ.get(_UPDATE):
        kept.write_text(picture, encoding="utf-8")
    drawn = tmp_path / kept.name
    drawn.write_text(picture, encoding="utf-8")
    assert kept.exists(), f"there is no picture {kept}; look at {drawn}, and run with {_UPDATE}=1 to keep it"
    assert picture == kept.read_text(encoding="utf-8"), f"the screen looks different: compare {drawn} with {kept}"


async def _at_rest(pilot: Any) -> str:
    """Return the picture of the screen once it has stopped changing."""
    picture, same = "", 0
    for _ in range(200):
        pilot.app.tick()
        await pilot.pause(0.01)
        now: str = pilot.app.export_screenshot(title="Chimera")
        picture, same = now, same + 1 if now == picture else 0
        if same == 5:
            return picture
    raise AssertionError("the screen does not come to rest")
