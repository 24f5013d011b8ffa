"""Knowing secrets when they are seen, and keeping them out of texts and events."""

from chimera.secrets.detector import REDACTED, SecretDetector, SecretMatch
from chimera.secrets.redaction import RedactionMiddleware
from chimera.secrets.rules import DEFAULT_RULES, SecretRule
from chimera.secrets.scrub import scrub_value

__all__ = [
    "DEFAULT_RULES",
    "REDACTED",
    "RedactionMiddleware",
    "SecretDetector",
    "SecretMatch",
    "SecretRule",
    "scrub_value",
]
