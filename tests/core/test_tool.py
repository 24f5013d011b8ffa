"""What a tool is: classes, functions, and whatever else has a name and an `execute`."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from chimera.core.context import Context
from chimera.core.loop import ReAct
from chimera.core.tool import BaseTool, ToolEnv, parameters_of, schema_of, tool
from chimera.errors import MisuseError
from chimera.providers.faux import FauxProvider
from chimera.types import ToolResult
from tests.core.driving import calling, drive, every_mode, held


@tool
def greet(name: str, times: int = 1) -> str:
    """Greet somebody."""
    return " ".join([f"hello {name}"] * times)


@tool(name="weather", description="Tell the weather.", effect="read", is_concurrency_safe=True)
async def forecast(city: str, env: Any) -> ToolResult:
    await asyncio.sleep(0)
    return ToolResult(f"fine in {city}, {'with' if env else 'without'} env")


@tool
def awkward(
    schema: str,
    copy: int = 2,
    *,
    json: Literal["a", "b"] = "a",
    model_config: Annotated[int, Field(ge=0, description="how many")] = 0,
) -> dict[str, Any]:
    """Has parameters that are called like parts of a pydantic model."""
    return {"schema": schema, "copy": copy, "json": json, "model_config": model_config}


class Both(BaseTool):
    name = "both"

    def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        return ToolResult("sync")

    async def async_execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        return ToolResult("async")


class OnlyAsync(BaseTool):
    name = "only_async"

    async def async_execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        await asyncio.sleep(0)
        return ToolResult("awaited")


class Neither(BaseTool):
    name = "neither"


class Duck:
    """Not derived from anything, and as little as will do."""

    name = "duck"

    def execute(self, args: dict[str, Any], env: Any = None) -> ToolResult:
        return ToolResult(f"quack {args}")


def test_a_function_becomes_a_schema() -> None:
    assert (greet.name, greet.description, greet.effect, greet.is_concurrency_safe) == (
        "greet",
        "Greet somebody.",
        None,
        False,
    )
    assert greet.schema == {
        "type": "function",
        "function": {
            "name": "greet",
            "description": "Greet somebody.",
            "parameters": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "times": {"type": "integer", "default": 1}},
                "required": ["name"],
                "additionalProperties": False,
            },
        },
    }


def test_options_win_over_what_the_function_says() -> None:
    assert (forecast.name, forecast.description, forecast.effect, forecast.is_concurrency_safe) == (
        "weather",
        "Tell the weather.",
        "read",
        True,
    )
    assert list(forecast.parameters["properties"]) == ["city"], "env is no argument of the model's"


def test_parameters_may_be_called_anything() -> None:
    properties = awkward.parameters["properties"]
    assert list(properties) == ["schema", "copy", "json", "model_config"]
    assert properties["model_config"] == {
        "type": "integer",
        "default": 0,
        "minimum": 0,
        "description": "how many",
    }
    assert awkward.parameters["required"] == ["schema"]
    result = awkward.execute({"schema": "s", "json": "b"})
    assert result.output == "{'schema': 's', 'copy': 2, 'json': 'b', 'model_config': 0}"


def test_a_function_tool_is_still_callable() -> None:
    assert greet("you", times=2) == "hello you hello you"


@pytest.mark.parametrize(
    "fn",
    [lambda *args: None, lambda **kwargs: None, eval("lambda x, /: None")],
    ids=["args", "kwargs", "positional"],
)
def test_arguments_come_by_name(fn: Any) -> None:
    with pytest.raises(MisuseError, match="takes its arguments by name"):
        tool(fn)


@pytest.mark.parametrize(("value", "output"), [(None, ""), (3, "3"), ({"a": 1}, "{'a': 1}"), (ToolResult("x"), "x")])
def test_whatever_a_function_returns_becomes_a_result(value: Any, output: str) -> None:
    assert tool(lambda: value).execute({}) == ToolResult(output)


@every_mode
def test_every_kind_of_tool_runs_in_every_mode(mode: str) -> None:
    script = [
        calling(
            ("greet", {"name": "you"}),
            ("weather", {"city": "Rome"}),
            ("awkward", {"schema": "s"}),
            "both",
            "only_async",
            "neither",
            ("duck", {"any": [1]}),
        ),
        "done",
    ]
    tools = [greet, forecast, awkward, Both(), OnlyAsync(), Neither(), Duck()]
    ran = drive(mode, script, tools, held())
    asynchronous = mode not in ("run", "iter_steps")
    assert ran.answers == [
        "hello you",
        "fine in Rome, with env",
        "{'schema': 's', 'copy': 2, 'json': 'a', 'model_config': 0}",
        "async" if asynchronous else "sync",
        "awaited",
        "the tool 'neither' has neither execute nor async_execute",
        "quack {'any': [1]}",
    ]


@every_mode
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "the arguments must contain ['name'] properties"),
        ({"name": 3}, "name must be string"),
        ({"name": "x", "times": "many"}, "times must be integer"),
        ({"name": "x", "extra": 1}, "the arguments must not contain {'extra'} properties"),
    ],
)
def test_arguments_are_checked_before_the_function_sees_them(mode: str, arguments: Any, problem: str) -> None:
    ran = drive(mode, [calling(("greet", arguments)), "done"], [greet], held())
    assert ran.answers == [f"Invalid arguments for greet: {problem}"]


async def test_a_synchronous_tool_can_be_awaited() -> None:
    assert await greet.async_execute({"name": "you"}) == ToolResult("hello you")


async def test_asynchronous_tools_run_from_synchronous_code_below_a_loop() -> None:
    assert OnlyAsync().execute({}) == ToolResult("awaited")
    assert forecast.execute({"city": "Rome"}) == ToolResult("fine in Rome, without env")
    context = Context()
    assert ReAct(config=held()).run(FauxProvider([calling("only_async"), "done"]), [OnlyAsync()], context).success
    assert context.messages[1].content == "awaited"


def test_schemas_of_ducks() -> None:
    assert schema_of(Duck()) == {
        "type": "function",
        "function": {"name": "duck", "description": "", "parameters": {"type": "object", "properties": {}}},
    }
    assert parameters_of(Duck()) == BaseTool.parameters
    assert schema_of(greet) == greet.schema


@pytest.mark.parametrize("junk", [print, "text", object(), Duck, type("Nameless", (BaseTool,), {})()])
def test_what_is_no_tool_is_refused_when_the_run_starts(junk: Any) -> None:
    with pytest.raises(MisuseError, match="is no tool"):
        drive("run", ["never"], [junk], held())


def test_two_tools_with_one_name_are_refused_and_both_are_named() -> None:
    with pytest.raises(MisuseError, match="two tools are named 'both': Both and Twin"):
        drive("run", ["never"], [Both(), type("Twin", (Both,), {})()], held())


@tool
def deploy(env: str, force: bool = False) -> str:
    """Deploy to an environment."""
    return f"deployed to {env}"


def test_env_is_an_argument_like_all_others_where_it_is_annotated_as_one() -> None:
    assert list(deploy.parameters["properties"]) == ["env", "force"]
    assert deploy.execute({"env": "staging"}) == ToolResult("deployed to staging")


def test_env_is_the_run_where_its_annotation_says_so_or_says_nothing() -> None:
    def bare(env) -> str:  # type: ignore[no-untyped-def]
        return str(env)

    def named(env: ToolEnv | None = None) -> str:
        return str(env)

    def quoted(env: "RunEnv") -> str:  # type: ignore[name-defined]  # noqa: F821, UP037
        return str(env)

    for fn in (bare, named, quoted):
        assert tool(fn).execute({}) == ToolResult("None")
