"""One configuration file: its shape, and errors that say what to mend and where."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chimera.assembly._small_files import NotRegularError, read_start
from chimera.errors import ConfigError
from chimera.permissions.families import nearest

__all__ = ["ConfigFile", "read_config"]

_Text = Annotated[str, Field(min_length=1)]
_LINE = re.compile(r"\(at line (\d+), column (\d+)\)$")
_MAX_BYTES = 1 << 20
_KEY_HINT = "a key is no setting: it is read from the environment alone (ANTHROPIC_API_KEY or OPENAI_API_KEY)"


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class RulesTable(_Table):
    """`[permissions]`: rules such as `Bash(git status:*)`."""

    allow: list[_Text] = []
    ask: list[_Text] = []
    deny: list[_Text] = []


class ConfigFile(_Table):
    """A whole file."""

    model: _Text | None = None
    base_url: Annotated[str, Field(pattern=r"^https?://")] | None = None
    preset: _Text | None = None
    max_turns: Annotated[int, Field(ge=1)] | None = None
    permission_mode: Literal["ask", "accept-edits", "yolo"] | None = None
    permissions: RulesTable = RulesTable()
    plugins: dict[str, dict[str, Any]] = {}
    hooks: dict[str, Any] = {}


def read_config(path: Path) -> ConfigFile | None:
    """Return what the file says, None when there is none. Raises `ConfigError` that names the file and the fault."""
    try:
        data = read_start(path, _MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise ConfigError(f"{path}: too big: a configuration has at most {_MAX_BYTES >> 20} MiB")
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        return None
    except NotRegularError as problem:
        raise ConfigError(f"{path}: this is no regular file, but a folder, a pipe, a socket or a device") from problem
    except OSError as problem:
        raise ConfigError(f"{path}: cannot be read: {problem.strerror}") from problem
    except UnicodeDecodeError as problem:
        line = problem.object.count(b"\n", 0, problem.start) + 1
        raise ConfigError(f"{path}: line {line}: this is not UTF-8") from problem
    return check_config(_parse(text, path), str(path))


def check_config(table: dict[str, Any], where: str) -> ConfigFile:
    """Return the checked form of `table`. Raises `ConfigError` with one line for each fault, each starting `where`."""
    try:
        return ConfigFile.model_validate(table)
    except ValidationError as problem:
        faults = [f"{where}: {_fault(error)}" for error in problem.errors(include_input=False)]
        raise ConfigError("\n".join(faults)) from None  # the cause would print values


def _parse(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        found = _LINE.search(str(problem))
        line = int(found[1]) if found else max(1, len(text.splitlines()))
        said = _LINE.sub("", str(problem)).removesuffix("(at end of document)").strip()
        raise ConfigError(f"{path}: line {line}: this is not TOML: {said}") from problem


def _fault(error: Any) -> str:
    location = error["loc"]
    key = _dotted(location)
    if error["type"] == "extra_forbidden":
        return f"unknown key {key!r}; {_suggestion(location)}"
    if error["type"] == "string_pattern_mismatch":
        return f"{key!r}: must start with http:// or https://"
    said = str(error["msg"]).removeprefix("Input ")
    return f"{key!r}: {said[:1].lower()}{said[1:]}"


def _dotted(location: tuple[str | int, ...]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return text.removeprefix(".")


def _suggestion(location: tuple[str | int, ...]) -> str:
    *above, last = location
    name, known = str(last), _known_keys(above)
    near = nearest(name, known)
    if near is not None:
        return f"did you mean {_dotted((*above, near))!r}?"
    if re.search(r"(api|auth|secret)?_?(key|token)$", name, re.IGNORECASE):
        return _KEY_HINT
    return f"valid here are {', '.join(known)}"


def _known_keys(location: list[str | int]) -> list[str]:
    table: type[BaseModel] = ConfigFile
    for part in location:
        if isinstance(part, str):
            table = next(_tables_in(table.model_fields[part].annotation))
    return list(table.model_fields)


def _tables_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _tables_in(inner)
