"""What a conversation on a terminal says of its session: where it stood when it is gone on with, how to go on later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote

from chimera.text import one_line
from chimera.types import Message

__all__ = ["how_to_resume", "where_it_stood"]

_TITLE = 60
_EXCERPT = 200


def where_it_stood(session_id: str, messages: Sequence[Message]) -> Iterator[str]:
    """Yield lines that tell one recorded conversation from another: its id and title, and its last exchange in short.

    Nothing is yielded for a conversation in which nothing was said.
    """
    if not messages:
        return
    title = next((message.content for message in messages if message.role == "user"), "")
    count = len(messages)
    yield f"session {session_id} goes on: {one_line(title, _TITLE)} ({count} message{'s' * (count != 1)})"
    for role, mark in (("user", "you"), ("assistant", "agent")):
        last = next((item.content for item in reversed(messages) if item.role == role and item.content.strip()), None)
        if last is not None:
            yield f"{mark}: {one_line(last, _EXCERPT)}"


def how_to_resume(session_id: str, project: Path) -> str:
    """Return the command that goes on with a session from the folder that this process is in."""
    place = "" if project == Path.cwd() else f" -C {quote(str(project))}"
    return f"chimera code --resume {session_id}{place}"
