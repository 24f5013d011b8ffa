"""Durable changes around a model call, made by the program itself."""

from __future__ import annotations

from chimera.core.context import Context
from chimera.providers.base import Response

__all__ = ["LoopMiddleware"]


class LoopMiddleware:
    """Override what you need. Middleware is part of the program: whatever it raises ends the run as an error."""

    def before_model(self, context: Context) -> None:
        """Called before the pre-provider seams. Edits to `context` stay in the conversation."""

    def after_model(self, context: Context, response: Response) -> Response | None:
        """Called with each answer. Return another response to use in its place, or None."""
        return None
