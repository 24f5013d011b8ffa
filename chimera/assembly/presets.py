"""Ready-made agents: which tools they have and what they are told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chimera.assembly._small_files import read_start
from chimera.core.tool import BaseTool
from chimera.errors import ConfigError
from chimera.tools import default_tools

__all__ = ["PRESETS", "Preset", "get_preset", "system_prompt"]

_INSTRUCTIONS = "AGENTS.md"
_INSTRUCTION_LIMIT = 20_000
_BYTES_A_CHARACTER = 4

_CODING = (
    "You are a coding agent. You work in the project folder with the tools you have: look before you change, make the "
    "smallest change that does the task, and run the project's tests when there are any. A tool result that says that "
    "a call was blocked or denied is final: do not repeat the call, follow what it says or find another way. When you "
    "are done, say in a few sentences what you did and what you could not do."
)
_EXPLORE = (
    "You explore a code base and answer questions about it. You can read and search; you cannot change anything. Name "
    "files and lines for what you claim."
)


@dataclass(frozen=True, slots=True)
class Preset:
    """A named kind of agent. `tools` makes its tools for a project folder."""

    name: str
    description: str
    prompt: str
    tools: Callable[[Path], list[BaseTool]]


def _only(*names: str) -> Callable[[Path], list[BaseTool]]:
    def make(root: Path) -> list[BaseTool]:
        return [tool for tool in default_tools(root) if tool.name in names]

    return make


def _reading(root: Path) -> list[BaseTool]:
    return [tool for tool in default_tools(root) if tool.effect == "read"]


PRESETS = {
    preset.name: preset
    for preset in (
        Preset("coding_agent", "reads, edits and runs commands", _CODING, default_tools),
        Preset(
            "minimal", "bash, read, write and edit only", _CODING, _only("bash", "read_file", "write_file", "edit_file")
        ),
        Preset("explore", "read-only", _EXPLORE, _reading),
    )
}


def get_preset(name: str) -> Preset:
    """Return the preset called `name`. Raises `ConfigError` that lists what there is."""
    try:
        return PRESETS[name]
    except KeyError:
        raise ConfigError(f"there is no preset {name!r}; choose one of {', '.join(PRESETS)}") from None


def system_prompt(preset: Preset, project_dir: Path) -> str:
    """Return the preset's prompt with the project's folder and, when it has an AGENTS.md, its first 20,000 characters.

    One that is no regular file, or that cannot be read, is left out.
    """
    prompt = f"{preset.prompt}\n\nProject folder: {project_dir}"
    try:
        start = read_start(project_dir / _INSTRUCTIONS, _BYTES_A_CHARACTER * _INSTRUCTION_LIMIT)
    except OSError:  # there is none, or none that can be read
        return prompt
    instructions = start.decode("utf-8", "replace").replace("\r\n", "\n")
    return f"{prompt}\n\nInstructions of the project ({_INSTRUCTIONS}):\n{instructions[:_INSTRUCTION_LIMIT]}"
