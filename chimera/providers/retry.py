"""When to try again. The same bytes are sent again; planning a new call is the engine's business."""

from __future__ import annotations

import random
from dataclasses import dataclass

from chimera.errors import ConfigError
from chimera.providers.failures import Failure

__all__ = ["Backoff"]

_LONGEST_DELAY = 8.0
_LONGEST_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """Up to `max_retries` further attempts, waiting `first_delay` seconds, then twice as long each time.

    The wait is at most 8 seconds, and up to a quarter shorter by chance, so that clients do not come back all at once.
    What the service asks for goes first; when it asks for more than a minute, there is no further attempt.
    """

    max_retries: int = 2
    first_delay: float = 0.5

    def __post_init__(self) -> None:
        if self.max_retries < 0 or self.first_delay < 0:
            raise ConfigError("max_retries and retry_delay must not be negative")

    def delay(self, attempts: int, failure: Failure) -> float | None:
        """Say how many seconds to wait after `attempts` attempts, the last of which failed; None means give up."""
        if not failure.retryable or attempts > self.max_retries:
            return None
        if failure.retry_after is not None:
            return failure.retry_after if failure.retry_after <= _LONGEST_PATIENCE else None
        full = min(self.first_delay * 2.0 ** (attempts - 1), _LONGEST_DELAY)
        return full * (1 - random.random() / 4)
