"""How an entry of a transcript looks: lines of styled text for a width, without Textual."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown
from rich.segment import Segment
from rich.style import Style
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme

from chimera.permissions.families import COMMANDS
from chimera.text import clean, clip, headline, one_line
from chimera.tui.diffs import DiffLine, edit_lines
from chimera.tui.entries import Called, Entry, Prose, Remark, Said, Status, Thought, Tone
from chimera.tui.status import duration

__all__ = ["STYLES", "Lines", "diff_text", "render_entry"]

Lines = list[list[Segment]]
STYLES = (
    "said",
    "name",
    "quiet",
    "running",
    "done",
    "failed",
    "blocked",
    "warning",
    "added",
    "removed",
    "heading",
    "code",
)
"""What the stylesheet gives colours to."""

_MARKS = {
    Status.RUNNING: ("●", "running"),
    Status.DONE: ("✓", "done"),
    Status.FAILED: ("✗", "failed"),
    Status.BLOCKED: ("⊘", "blocked"),
    Status.DENIED: ("⊘", "blocked"),
    Status.CUT: ("◌", "warning"),
}
_TONES = {Tone.PLAIN: ("", ""), Tone.NOTE: ("~ ", "quiet"), Tone.WARNING: ("! ", "warning"), Tone.BAD: ("✗ ", "failed")}
_WORDS = {Status.BLOCKED: "BLOCKED", Status.DENIED: "DENIED", Status.CUT: "cut off", Status.FAILED: "failed"}
_MARGIN = 2
_FOLDED_DIFF = 8
_OPEN_LINES = 400
_SLOW = 1.0
Styles = Mapping[str, Style]


def render_entry(entry: Entry, width: int, styles: Styles, *, dark: bool = True) -> Lines:
    """Return the lines of `entry`, none of them wider than `width` cells, an empty one before those that begin
    something."""
    match entry:
        case Said():
            lines = _said(entry, width, styles)
        case Prose():
            return _prose(entry, width, styles, dark)
        case Thought():
            lines = _thought(entry, width, styles)
        case Called():
            lines = _called(entry, width, styles)
        case Remark():
            mark, style = _TONES[entry.tone]
            lines = _beside(Text(mark, _style(styles, style)), Text(clean(entry.text), _style(styles, style)), width)
        case _:
            lines = []
    return _segments(lines, width, styles)


def diff_text(line: DiffLine, styles: Styles) -> Text:
    """Return one line of a difference; its mark tells what it is where there are no colours."""
    style = {"+": "added", "-": "removed", "@": "heading"}.get(line.mark, "quiet")
    return Text(f"{line.mark} {line.text}".expandtabs(4), _style(styles, style))


def _said(entry: Said, width: int, styles: Styles) -> list[Text]:
    label = Text("» " if entry.during else "> ", _style(styles, "said"))
    return [Text(), *_beside(label, Text(clean(entry.text), _style(styles, "said")), width)]


def _thought(entry: Thought, width: int, styles: Styles) -> list[Text]:
    quiet = _style(styles, "quiet")
    if not entry.open:
        return [Text(), _cut(Text(f"· thinking: {one_line(entry.text, 400)}", quiet), width)]
    return [Text(), *_beside(Text("· ", quiet), Text(clean(entry.text.strip()), quiet), width)]


def _called(entry: Called, width: int, styles: Styles) -> list[Text]:
    mark, style = _MARKS[entry.status]
    margin = Text(" " * (_MARGIN * (1 + entry.depth)))
    head = Text.assemble(
        " " * (_MARGIN * entry.depth),
        (f"{mark} ", _style(styles, style)),
        (one_line(entry.call.name), _style(styles, "name")),
    )
    word = _WORDS.get(entry.status)
    if word:
        head.append(f" {word}", _style(styles, style))
    head.append(f"  {headline(entry.call, 400)}")
    lines = [Text(), _fitting(head, _aside(entry), width, styles)] if not entry.depth else [_cut(head, width)]
    warning = _style(styles, "warning")
    for text in _remarks(entry):
        lines += _beside(margin + Text("! ", warning), Text(clean(text), warning), width)
    if entry.open:
        body = [part for line in _open_body(entry, styles) for part in _beside(margin, line, width)]
    else:
        body = [_cut(margin + line, width) for line in _folded_body(entry, styles)]
        body += _refusal(entry, margin, width, styles)
    return [*lines, *body]


def _refusal(entry: Called, margin: Text, width: int, styles: Styles) -> list[Text]:
    """Why a call was kept from running, all of it: this is what the model has to go by, too."""
    if entry.result is None or entry.status not in (Status.BLOCKED, Status.DENIED):
        return []
    return _beside(margin, Text(clean(entry.result.error or ""), _style(styles, "blocked")), width)


def _remarks(entry: Called) -> Iterable[str]:
    """What was decided about a call; how it was refused stands in its result."""
    refused = entry.status in (Status.BLOCKED, Status.DENIED)
    return (text for text in entry.remarks if not (refused and text.startswith(("blocked", "error"))))


def _aside(entry: Called) -> str:
    slow = entry.seconds is not None and entry.seconds >= _SLOW
    return f"  {duration(entry.seconds)}" if slow and entry.seconds is not None else ""


def _fitting(head: Text, aside: str, width: int, styles: Styles) -> Text:
    line = _cut(head, max(1, width - len(aside)))
    line.append(aside, _style(styles, "quiet"))
    return line


def _folded_body(entry: Called, styles: Styles) -> list[Text]:
    result, lines = entry.result, []
    if entry.status in (Status.RUNNING, Status.DONE):
        changes = edit_lines(entry.call)
        lines = [diff_text(line, styles) for line in changes[:_FOLDED_DIFF]]
        if len(changes) > _FOLDED_DIFF:
            lines.append(Text(f"… {len(changes) - _FOLDED_DIFF} more lines", _style(styles, "quiet")))
    if result is None or entry.status in (Status.BLOCKED, Status.DENIED):
        return lines
    if result.error is not None:
        return [*lines, Text(one_line(result.error, 400), _style(styles, "failed"))]
    if entry.call.name == "think":
        return lines
    return [*lines, Text(_summary(result.output, last=entry.call.name in COMMANDS), _style(styles, "quiet"))]


def _summary(output: str, *, last: bool) -> str:
    """Return one line of an output, of a command the last one, and how many more there are."""
    found = [line for line in output.split("\n") if line.strip()]
    if len(found) < 2:
        return one_line("".join(found), 400) or "done"
    more = f"({len(found) - 1} more line{'s' * (len(found) > 2)})"
    return f"{one_line(found[-1 if last else 0], 400)}  {more}"


def _open_body(entry: Called, styles: Styles) -> list[Text]:
    quiet = _style(styles, "quiet")
    changes = edit_lines(entry.call)
    lines = [diff_text(line, styles) for line in changes]
    if not changes:
        lines += [Text(line) for line in _arguments(entry)]
    result = entry.result
    if result is not None and result.output:
        shown, hidden = clip(result.output, _OPEN_LINES)
        lines += [Text(line.expandtabs(4), quiet) for line in shown.split("\n")]
        if hidden:
            lines.append(Text(f"… {hidden} more lines", quiet))
    if result is not None and result.error is not None:
        lines += [Text(line, _style(styles, "failed")) for line in clean(result.error).split("\n")]
    return lines


def _arguments(entry: Called) -> Iterable[str]:
    from chimera.tui.diffs import call_lines

    return call_lines(entry.call)[1:]


def _prose(entry: Prose, width: int, styles: Styles, dark: bool) -> Lines:
    inner = max(10, width - _MARGIN)
    text = clean(entry.block.text)
    shown: Any
    if entry.block.code:
        theme = "ansi_dark" if dark else "ansi_light"
        shown = Syntax(text, entry.block.language or "text", theme=theme, background_color="default", word_wrap=True)
    else:
        shown = _Markdown(text, code_theme="ansi_dark" if dark else "ansi_light", hyperlinks=False)
    console = _console(inner)
    lines = console.render_lines(shown, console.options.update(width=inner), pad=False)
    margin = [Segment(" " * _MARGIN)]
    mark = [Segment("● " if entry.first else " " * _MARGIN, _style(styles, "name") if entry.first else None)]
    rendered = [[*(margin if number else mark), *map(_bare, line)] for number, line in enumerate(_trimmed(lines))]
    return [[], *rendered]


def _trimmed(lines: Lines) -> Lines:
    """Leave out empty lines at both ends."""
    full = [number for number, line in enumerate(lines) if "".join(part.text for part in line).strip()]
    return lines[full[0] : full[-1] + 1] if full else []


class _Heading(Heading):
    """A heading that stands where the text stands."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Markdown(Markdown):
    elements: ClassVar = {**Markdown.elements, "heading_open": _Heading}


def _bare(part: Segment) -> Segment:
    """Return the text on the background of the screen, since a highlighter brings one of its own, and without what a
    reference such as `&#x202e;` stood for."""
    text = part.text if clean(part.text) == part.text else "".join(map(_harmless, part.text))
    style = part.style
    if style is not None and style.bgcolor is not None:
        style = Style(color=style.color, bold=style.bold, italic=style.italic, underline=style.underline)
    return Segment(text, style)


def _harmless(letter: str) -> str:
    return letter if clean(letter) == letter else "\N{REPLACEMENT CHARACTER}"


def _beside(label: Text, text: Text, width: int) -> list[Text]:
    """Put `label` before `text`, whose lines all begin where its first one does."""
    margin = label.cell_len
    inner = max(10, width - margin)
    lines = text.wrap(_console(inner), inner, overflow="fold", tab_size=4)
    for line in lines:
        line.rstrip()
    return [(label if number == 0 else Text(" " * margin)) + line for number, line in enumerate(lines)]


def _cut(text: Text, width: int) -> Text:
    text = text.copy()
    text.expand_tabs(4)
    text.truncate(max(1, width), overflow="ellipsis")
    return text


def _segments(lines: Iterable[Text], width: int, styles: Styles) -> Lines:
    console = _console(width)
    return [[part for part in line.render(console) if part.text] for line in lines]


def _style(styles: Styles, name: str) -> Style:
    return styles.get(name, Style.null())


@lru_cache(maxsize=8)
def _console(width: int) -> Console:
    """Return a console that nothing is printed to; it knows how wide a line is and what markdown looks like."""
    theme = Theme(
        {
            "markdown.code": "bold cyan",
            "markdown.h1": "bold underline",
            "markdown.h2": "bold",
            "markdown.h3": "bold",
            "markdown.block_quote": "italic",
            "markdown.item.number": "bold",
            "markdown.item.bullet": "bold",
            "markdown.link": "underline",
            "markdown.link_url": "underline",
            "markdown.hr": "dim",
            "markdown.table.border": "dim",
            "markdown.table.header": "bold",
        }
    )
    return Console(width=width, theme=theme, color_system="truecolor", force_terminal=True, legacy_windows=False)
