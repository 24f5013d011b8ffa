"""Handing the state of a plugin to its next version, which may refuse it."""

from __future__ import annotations

from functools import partial

from chimera.plugins.base import BasePlugin
from chimera.plugins.failures import described
from chimera.plugins.guarded import consent, within
from chimera.plugins.making import made_again

__all__ = ["hand_over"]


def hand_over(old: BasePlugin, new: BasePlugin, patience: float) -> tuple[BasePlugin, str]:
    """Give `new` the state that `old` exports. Returns the plugin to use and a warning, empty when all went well.

    When the state is refused, the plugin to use is another one like `new`, which has not seen it.
    """
    export, take = getattr(old, "export_state", None), getattr(new, "import_state", None)
    if export is None:
        return new, ""
    if take is None:
        return new, "the new version takes no state and starts afresh"
    try:
        state = within(patience, export)
    except (Exception, SystemExit) as exc:
        return new, f"the old version gave no state, the new one starts afresh: {described(exc)}"
    try:
        consent(patience, partial(take, state))
    except (Exception, SystemExit) as exc:
        return made_again(new), f"the new version refused the state and starts afresh: {described(exc)}"
    return new, ""
