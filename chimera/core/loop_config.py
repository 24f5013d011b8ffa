"""Everything that a run can be told, in one object that travels whole."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from chimera.core.cancellation import CancellationToken, as_token
from chimera.core.decisions import Interceptors
from chimera.core.middleware import LoopMiddleware
from chimera.core.steering import MessageQueue
from chimera.core.truncation import Truncation
from chimera.errors import MisuseError
from chimera.events import EventBus
from chimera.permissions.base import PermissionPolicy
from chimera.types import PendingApproval

__all__ = ["LoopConfig", "PermissionCallback"]

PermissionCallback = Callable[[PendingApproval], "bool | Awaitable[bool | None] | None"]


@dataclass
class LoopConfig:
    """How a loop runs. The defaults are safe: without `permissions` and `yolo_mode`, writes and commands must be
    approved.

    - `permissions` judges effective calls; `permission_callback` answers what it asks: it is given the
      `PendingApproval` and returns True or False, or decides it and returns None. It may be a coroutine function.
    - `yolo_mode` switches prompts off: what would be asked runs. It loosens no denial and skips no seam.
    - `hooks` is a `chimera.hooks.HookRunner` or a sequence of them, which all have a say; `compaction` is a
      `chimera.compaction.CompactionStrategy`.
    - `cancellation` is a `CancellationToken` or any event with `is_set`.
    - `event_bus` gets a `RedactionMiddleware` unless `secrets_redaction` is False.
    - `resumed_approvals`: a call that a person approved while iterating runs `detached` from the `tool_result` seam
      and from hooks; `enforced` puts its result through both.
    - `max_blocked_steps` steps in a row in which every call was refused end the run; 0 means no limit.
    """

    permissions: PermissionPolicy | None = None
    interceptors: Interceptors | None = None
    hooks: Any = None
    middleware: Sequence[LoopMiddleware] | None = None
    compaction: Any = None
    event_bus: EventBus | None = None
    truncation: Truncation | None = None
    cancellation: CancellationToken | None = None
    yolo_mode: bool = False
    secrets_redaction: bool | None = None
    resumed_approvals: Literal["detached", "enforced"] = "detached"
    permission_callback: PermissionCallback | None = None
    message_queue: MessageQueue | None = None
    max_blocked_steps: int = 10

    def __post_init__(self) -> None:
        if self.interceptors is not None and not isinstance(self.interceptors, Interceptors):
            raise MisuseError(f"interceptors must be Interceptors, not {type(self.interceptors).__name__}")
        if self.resumed_approvals not in ("detached", "enforced"):
            raise MisuseError(f"resumed_approvals is 'detached' or 'enforced', not {self.resumed_approvals!r}")
        if self.permissions is not None and not callable(getattr(self.permissions, "evaluate", None)):
            raise MisuseError(f"permissions must be a PermissionPolicy, not {type(self.permissions).__name__}")
        if isinstance(self.middleware, LoopMiddleware):
            self.middleware = [self.middleware]
        self.cancellation = as_token(self.cancellation)
