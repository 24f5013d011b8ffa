"""Hooks as settings: reading and checking them.

The format is the one that coding agents share: events, each with groups of a `matcher` and a list of `hooks`, each of
which is a shell command.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from chimera.errors import ConfigError
from chimera.permissions.families import BUNDLED, FAMILIES, aliases_of, check_known, nearest

__all__ = ["EVENTS", "GATES", "Hook", "Hooks", "read_settings"]

GATES = ("PreToolUse", "UserPromptSubmit")
EVENTS = (*GATES, "PostToolUse", "SessionStart", "Stop")
DEFAULT_TIMEOUT = 60.0  # seconds
_TOOL_EVENTS = ("PreToolUse", "PostToolUse")
_PLAIN_NAMES = re.compile(r"[\w-]+(?:\|[\w-]+)*\Z")
_RULE = re.compile(r"(\w+)\(.*\)\Z", re.DOTALL)
_REPEAT = re.compile(r"\{\d*,?\d*\}")
_IN_NO_NAME = re.compile(r"[\s,;/&]")


@dataclass(frozen=True, slots=True)
class Hook:
    """A shell command that runs when its event matches. `timeout` in seconds; `place` is where it stands."""

    command: str
    timeout: float
    place: str
    matcher: re.Pattern[str] | None = None

    def matches(self, subject: str) -> bool:
        """Say whether the hook is meant for `subject`: a tool, by its name or a family's, or a session's source."""
        return self.matcher is None or any(self.matcher.fullmatch(name) for name in aliases_of(subject))

    def __str__(self) -> str:
        shown = " ".join(self.command.split())
        return f"{self.place} ({shown if len(shown) <= 60 else shown[:57] + '...'})"


Hooks = dict[str, tuple[Hook, ...]]


def read_settings(settings: Mapping[str, Any]) -> Hooks:
    """Read `{"hooks": {event: [group, ...]}}`, or what stands under `hooks` alone.

    Raises `ConfigError` that names the place of the first thing wrong.
    """
    events = _mapping(settings, "the settings")
    place = ""
    if "hooks" in events:
        events, place = _mapping(events["hooks"], "hooks"), "hooks."
    found: Hooks = {}
    for event, groups in events.items():
        _check_key(event, EVENTS, f"{place}{event}", "event")
        found[event] = tuple(_groups(groups, event, place + event))
    return found


def _groups(groups: Any, event: str, place: str) -> Iterable[Hook]:
    for index, group in enumerate(_list(groups, place)):
        here = f"{place}[{index}]"
        fields = _mapping(group, here)
        for key in fields:
            _check_key(key, ("matcher", "hooks"), f"{here}.{key}", "key")
        matcher = _matcher(fields.get("matcher", ""), event, f"{here}.matcher")
        if not fields.get("hooks"):
            raise ConfigError(f"{here}.hooks: a group needs a list of hooks")
        for number, entry in enumerate(_list(fields["hooks"], f"{here}.hooks")):
            yield _hook(entry, matcher, f"{here}.hooks[{number}]")


def _hook(entry: Any, matcher: re.Pattern[str] | None, place: str) -> Hook:
    fields = _mapping(entry, place)
    for key in fields:
        _check_key(key, ("type", "command", "timeout"), f"{place}.{key}", "key")
    if fields.get("type") != "command":
        raise ConfigError(f"{place}.type: only 'command' hooks are supported, not {fields.get('type')!r}")
    command = fields.get("command")
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        raise ConfigError(f"{place}.command: a shell command is needed, not {command!r}")
    timeout = fields.get("timeout", DEFAULT_TIMEOUT)
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < float("inf"):
        raise ConfigError(f"{place}.timeout: a number of seconds above 0 is needed, not {timeout!r}")
    return Hook(command, float(timeout), place, matcher)


def _matcher(text: Any, event: str, place: str) -> re.Pattern[str] | None:
    if not isinstance(text, str):
        raise ConfigError(f"{place}: a regular expression is needed, not {text!r}")
    if text in ("", "*"):
        return None
    if event not in (*_TOOL_EVENTS, "SessionStart"):
        raise ConfigError(f"{place}: {event} happens without a tool, so {text!r} would never match; leave it out")
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise ConfigError(f"{place}: {text!r} is no regular expression: {error}") from error
    if event in _TOOL_EVENTS:
        _check_can_match(text, place)
    return pattern


def _check_can_match(text: str, place: str) -> None:
    """Refuse a matcher that no tool's name can match: a gate that never opens its eyes looks like one that watches."""
    rule = _RULE.match(text)
    if rule is not None and rule[1] in (*BUNDLED, *FAMILIES):
        raise ConfigError(
            f"{place}: {text!r} is a permission rule; a matcher sees the tool's name alone: write {rule[1]!r}, and let "
            "the hook look at the input"
        )
    wrong = _IN_NO_NAME.search(_REPEAT.sub("", text))
    if wrong is not None:
        names = "|".join(re.findall(r"[\w-]+", text))
        what = f"no tool has {wrong[0]!r} in its name, so {text!r} would never match"
        raise ConfigError(f"{place}: {what}; write {names!r}")
    if _PLAIN_NAMES.match(text):
        _check_tools(text.split("|"), place)


def _check_tools(names: Iterable[str], place: str) -> None:
    for name in names:
        try:
            check_known(name)
        except ConfigError as error:
            raise ConfigError(f"{place}: {error}") from None


def _check_key(key: Any, known: tuple[str, ...], place: str, what: str) -> None:
    if key in known:
        return
    close = nearest(str(key), known)
    hint = f"; did you mean {close!r}?" if close else f"; known are {', '.join(known)}"
    raise ConfigError(f"{place}: there is no hook {what} {key!r}{hint}")


def _mapping(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{place}: a table is needed, not {value!r}")
    return value


def _list(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise ConfigError(f"{place}: a list is needed, not {value!r}")
    return list(value)
