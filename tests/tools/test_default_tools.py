"""The default set: names, schemas and what each tool says of itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import chimera.tools
from chimera.core.arguments import argument_problem, validator_for
from chimera.core.tool import BaseTool
from chimera.tools import default_tools

EFFECTS = {
    "bash": ("command", False),
    "read_file": ("read", True),
    "write_file": ("write", False),
    "edit_file": ("write", False),
    "replace_in_file": ("write", False),
    "apply_patch": ("write", False),
    "list_files": ("read", True),
    "search": ("read", True),
    "think": ("read", True),
    "todo": ("read", False),
}


def test_the_set_and_its_order() -> None:
    assert {tool.name: (tool.effect, tool.is_concurrency_safe) for tool in default_tools()} == EFFECTS
    assert [tool.name for tool in default_tools()] == list(EFFECTS)


def test_all_of_them_get_the_root(tmp_path: Path) -> None:
    roots = [vars(tool)["root"] for tool in default_tools(tmp_path) if "root" in vars(tool)]
    assert roots == [tmp_path] * 8


def test_every_set_is_a_new_one() -> None:
    first, second = default_tools(), default_tools()
    assert not {id(tool) for tool in first} & {id(tool) for tool in second}


@pytest.mark.parametrize("tool", default_tools(), ids=lambda tool: tool.name)
def test_schemas_are_strict_and_explain_themselves(tool: BaseTool) -> None:
    def check(schema: Any) -> None:
        assert schema["type"] != "object" or schema["additionalProperties"] is False
        for prop in schema.get("properties", {}).values():
            assert prop["description"]
            check(prop)
        if "items" in schema:
            check(schema["items"])

    check(tool.parameters)
    assert set(tool.parameters["required"]) <= set(tool.parameters["properties"])
    assert len(tool.description) > 100
    problem = argument_problem(validator_for(tool.name, tool.parameters), {"no such": 1})
    assert problem is not None


@pytest.mark.parametrize("tool", default_tools(), ids=lambda tool: tool.name)
async def test_the_asynchronous_way_gives_the_same(tool: BaseTool, tmp_path: Path) -> None:
    examples: dict[str, dict[str, Any]] = {
        "bash": {"command": "echo x"},
        "write_file": {"path": "x", "content": "x\n"},
        "edit_file": {"path": "x", "old_string": "a", "new_string": "b"},
        "replace_in_file": {"path": "x", "diff": "-"},
        "apply_patch": {"patch": "-"},
        "search": {"pattern": "x"},
        "think": {"thought": "x"},
        "read_file": {"path": "none"},
    }
    arguments = examples.get(tool.name, {})
    assert argument_problem(validator_for(tool.name, tool.parameters), arguments) is None
    first = tool.execute(dict(arguments), tmp_path)  # type: ignore[arg-type]
    (tmp_path / "x").unlink(missing_ok=True)
    assert await tool.async_execute(dict(arguments), tmp_path) == first  # type: ignore[arg-type]


def test_every_export_is_there_and_nothing_heavy_comes_along() -> None:
    assert all(hasattr(chimera.tools, name) for name in chimera.tools.__all__)
    heavy = ("pathspec", "difflib", "pydantic", "tempfile", "fastjsonschema")
    code = f"import sys, chimera.tools; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
