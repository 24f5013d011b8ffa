"""`chimera sessions list`, `show` and `export`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chimera.cli.exits import OK
from chimera.cli.options import LATEST, Format
from chimera.cli.screen import make_console, print_beside
from chimera.cli.setup import project_folder
from chimera.errors import ConfigError, OutsideError
from chimera.text import clean, clip, headline, one_line
from chimera.types import Message, ToolCall

if TYPE_CHECKING:
    from rich.console import Console

    from chimera.assembly.journal import Session, SessionInfo

__all__ = ["export_session", "list_sessions", "show_session"]

_RESULT_LINES = 8


def list_sessions(project: Path, *, everywhere: bool) -> int:
    """Print the sessions of the project, or all of them, the one that was used last first."""
    from rich.table import Table
    from rich.text import Text

    from chimera.assembly.journal import list_sessions, sessions_folder

    console = make_console()
    found = list_sessions(project=None if everywhere else project_folder(project))
    if not found:
        where = "" if everywhere else " of this project"
        console.print(f"There are no sessions{where} in {clean(str(sessions_folder()))}.")
        return OK
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("id", no_wrap=True)
    table.add_column("last used", no_wrap=True)
    table.add_column("model", overflow="fold", max_width=20)
    for heading in ("project", "begins with") if everywhere else ("begins with",):
        table.add_column(heading, overflow="fold", min_width=12)
    for info in found:
        table.add_row(*(Text(cell) for cell in _row(info, everywhere)))
    console.print(table)
    return OK


def _row(info: SessionInfo, everywhere: bool) -> Iterator[str]:
    yield clean(info.id)
    yield _local(info.updated)
    yield one_line(info.model)
    if everywhere:
        yield clean(str(info.project))
    yield one_line(info.title, 60) + (f" (lane {one_line(info.lane)})" if info.lane else "")


def show_session(session_id: str, project: Path) -> int:
    """Print a session as a person reads it: what was said, and what was done, each call in a line or two."""
    from rich.text import Text

    session = _session(session_id, project)
    console = make_console()
    console.print(clean(session.id), style="bold")
    facts = dict(_facts(session))
    width = max(map(len, facts))
    for name, value in facts.items():
        print_beside(console, Text(f"  {name:<{width}} ", "dim"), Text(one_line(value, 400)))
    calls: dict[str, ToolCall] = {}
    for message in session.messages:
        calls.update((call.id, call) for call in message.tool_calls)
        _SHOWN.get(message.role, _show_other)(console, message, calls)
    return OK


def export_session(session_id: str, project: Path, output: Path | None, form: Format | None) -> int:
    """Write a session as Markdown or JSON to a new, private file, or to standard output.

    Without `form` the suffix of the file decides, and it is Markdown where that says nothing. Raises `OutsideError`
    when the file is there already or cannot be written.
    """
    session = _session(session_id, project)
    if form is None:
        form = Format.JSON if output is not None and output.suffix == ".json" else Format.MARKDOWN
    text = _as_json(session) if form is Format.JSON else _as_markdown(session)
    if output is None:
        import sys

        sys.stdout.write(text)
        return OK
    try:
        output.touch(0o600, exist_ok=False)
        output.write_text(text, "utf-8", "backslashreplace")
    except OSError as problem:
        raise OutsideError(f"{output} cannot be written: {problem.strerror}") from problem
    return OK


def _session(session_id: str, project: Path) -> Session:
    from chimera.assembly.journal import find_session, latest_session, read_session

    if session_id != LATEST:
        return read_session(find_session(session_id))
    latest = latest_session(project_folder(project))
    if latest is None:
        raise ConfigError("there is no session of this project yet; `chimera sessions list --all` lists the others")
    return read_session(latest.path)


def _facts(session: Session) -> Iterator[tuple[str, str]]:
    yield "project", str(session.project)
    yield "model", session.model or "unknown"
    if session.lane:
        yield "lane", session.lane
    yield "begun", _local(session.created)
    turns = len(session.turns)
    yield "turns", f"{turns}, ${session.cost_usd:.4f}"
    yield "decisions of interceptors", str(len(session.decisions))


def _local(when: datetime) -> str:
    return f"{when.astimezone():%Y-%m-%d %H:%M}"


def _show_user(console: Console, message: Message, _calls: dict[str, ToolCall]) -> None:
    from rich.text import Text

    console.print()
    print_beside(console, Text("> ", "bold"), Text(clean(message.content), "bold"))


def _show_assistant(console: Console, message: Message, _calls: dict[str, ToolCall]) -> None:
    from rich.text import Text

    if message.content.strip():
        console.print()
        console.print(clean(message.content.strip()))
    for call in message.tool_calls:
        print_beside(console, Text("* ", "cyan"), Text(f"{clean(call.name)} {headline(call)}", "cyan"))


def _show_tool(console: Console, message: Message, calls: dict[str, ToolCall]) -> None:
    from rich.text import Text

    call = calls.get(message.call_id or "")
    shown, hidden = clip(message.content, _RESULT_LINES)
    more = f"\n({hidden} more {'lines' if hidden > 1 else 'line'})" if hidden else ""
    name = f"{clean(call.name)}: " if call else ""
    print_beside(console, Text("  "), Text(f"{name}{shown or 'done'}{more}", "dim"))


def _show_other(console: Console, message: Message, _calls: dict[str, ToolCall]) -> None:
    console.print(f"{clean(message.role)}: {clean(message.content)}", style="dim")


_SHOWN: dict[str, Callable[[Console, Message, dict[str, ToolCall]], None]] = {
    "user": _show_user,
    "assistant": _show_assistant,
    "tool": _show_tool,
}


def _as_json(session: Session) -> str:
    from chimera.assembly.session_records import message_json

    about: dict[str, Any] = {
        "id": session.id,
        "project": str(session.project),
        "model": session.model,
        "created": session.created.astimezone(UTC).isoformat(),
        **({"lane": session.lane} if session.lane else {}),
        "cost_usd": session.cost_usd,
        "messages": [message_json(message) for message in session.messages],
        "turns": list(session.turns),
        "decisions": list(session.decisions),
    }
    return json.dumps(about, indent=2, default=str) + "\n"


def _as_markdown(session: Session) -> str:
    parts = [f"# Session {session.id}\n", "\n".join(f"- {name}: {value}" for name, value in _facts(session)) + "\n"]
    names: dict[str, str] = {}
    for message in session.messages:
        names.update((call.id, call.name) for call in message.tool_calls)
        if message.role == "tool":
            parts.append(f"### Result of {names.get(message.call_id or '', 'a call')}\n\n{_fenced(message.content)}")
            continue
        parts.append(f"## {message.role.capitalize()}\n")
        if message.content.strip():
            parts.append(message.content.strip() + "\n")
        for call in message.tool_calls:
            arguments = json.dumps(call.arguments, indent=2, ensure_ascii=False, default=str)
            parts.append(f"### Call of {call.name}\n\n{_fenced(arguments, 'json')}")
    return "\n".join(parts)


def _fenced(text: str, language: str = "") -> str:
    """Return text in a fence that nothing in it can close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"
