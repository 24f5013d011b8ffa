"""Keeping secrets out of events: what observers see, log and store."""

from __future__ import annotations

from chimera.events import Event
from chimera.secrets.detector import REDACTED, SecretDetector
from chimera.secrets.scrub import scrub_fields

__all__ = ["RedactionMiddleware"]

_KEPT = frozenset({"type", "timestamp"})


class RedactionMiddleware:
    """An event middleware that scrubs every text of every event: messages, arguments, results, metadata, reasons.

    The event that was published stays as it is; observers get a copy where there was something to scrub. A question
    to the user keeps its effect: approving the scrubbed one approves the call as it stands.
    """

    def __init__(self, detector: SecretDetector | None = None, replacement: str = REDACTED) -> None:
        self.detector = detector or SecretDetector()
        self.replacement = replacement

    def __call__(self, event: Event) -> Event | None:
        clean: Event = scrub_fields(event, self._scrub, _KEPT)
        return clean

    def _scrub(self, text: str) -> str:
        return self.detector.scrub(text, self.replacement)
