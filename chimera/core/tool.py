"""What a tool is, and how to make one from a typed function."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, overload

from chimera.errors import MisuseError
from chimera.threads import in_thread, run_coroutine
from chimera.types import ToolResult

__all__ = ["BaseTool", "FunctionTool", "ToolEffect", "ToolEnv", "parameters_of", "schema_of", "tool"]

ToolEffect = Literal["read", "write", "command"]


class ToolEnv(Protocol):
    """What a tool may know of the run that it works for."""

    @property
    def root(self) -> Path | None:
        """The project folder, or None where the run has none."""

    @property
    def cancelled(self) -> bool:
        """True once the run is being cancelled; long work should look at it now and then."""

    def on_cancel(self, fn: Callable[[], None]) -> Callable[[], None]:
        """Call `fn` (quick, from any thread) when the run is cancelled; returns a function that takes that back."""

    def run_tool(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Run another tool of this run. The nested call meets every seam and check that a model's call meets."""


class BaseTool:
    """Base class of tools.

    A subclass sets `name`, `description` and `parameters` (a JSON Schema of type object) and writes `execute`, or
    `async_execute` when it awaits things. `effect` says what it does to the world: `read` looks, `write` changes files,
    `command` runs programs or reaches outside; None means that the tool does not say, which planning phases and
    read-only presets take for "not read-only". `is_concurrency_safe` allows calls of it to run side by side.
    """

    name: str = ""
    description: str = ""
    parameters: Mapping[str, Any] = {"type": "object", "properties": {}}
    effect: ToolEffect | None = None
    is_concurrency_safe: bool = False

    def execute(self, args: dict[str, Any], env: ToolEnv | None = None) -> ToolResult:
        """Do the work. `args` is a private copy that was checked against `parameters`.

        Whatever it raises becomes the error of its result.
        """
        if type(self).async_execute is BaseTool.async_execute:
            raise MisuseError(f"the tool {self.name!r} has neither execute nor async_execute")
        return run_coroutine(self.async_execute(args, env))

    async def async_execute(self, args: dict[str, Any], env: ToolEnv | None = None) -> ToolResult:
        """`execute` without blocking the event loop; by default in a thread."""
        return await in_thread(self.execute, args, env)

    @property
    def schema(self) -> dict[str, Any]:
        """The function schema that providers send to the model."""
        return _function_schema(self)


def schema_of(tool: Any) -> Mapping[str, Any]:
    """Return the function schema of anything that is used as a tool."""
    schema: Mapping[str, Any] | None = getattr(tool, "schema", None)
    return _function_schema(tool) if schema is None else schema


def parameters_of(tool: Any) -> Mapping[str, Any]:
    """Return the JSON Schema of the arguments of anything that is used as a tool; it takes any when it has none."""
    parameters: Mapping[str, Any] = getattr(tool, "parameters", BaseTool.parameters)
    return parameters


def _function_schema(tool: Any) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": str(getattr(tool, "description", "") or ""),
        "parameters": parameters_of(tool),
    }
    return {"type": "function", "function": function}


class FunctionTool(BaseTool):
    """A tool made from a function by `tool`.

    A parameter named `env` receives the run's environment when it is annotated as one (`ToolEnv`) or not at all; with
    any other annotation it is an argument like all others.
    """

    _env_parameter: ClassVar[str] = "env"

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        effect: ToolEffect | None = None,
        is_concurrency_safe: bool = False,
    ) -> None:
        self.fn = fn
        self.name = name or fn.__name__
        self.description = description or inspect.getdoc(fn) or ""
        self.effect = effect
        self.is_concurrency_safe = is_concurrency_safe
        taken = inspect.signature(fn).parameters
        for parameter in taken.values():
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                raise MisuseError(f"the tool {self.name!r} takes its arguments by name: {parameter} has none")
        self._takes_env = _is_environment(taken.get(self._env_parameter))
        inside = {self._env_parameter} if self._takes_env else set()
        self._parameters = [parameter for name, parameter in taken.items() if name not in inside]
        if inspect.iscoroutinefunction(fn):
            self.async_execute = self._execute_async  # type: ignore[method-assign]

    @cached_property
    def _model(self) -> Any:
        """The arguments as a pydantic model. Its fields have names of their own: a parameter may be called `schema`,
        or `copy`, or whatever else a model has."""
        from pydantic import ConfigDict, Field, create_model

        hints = inspect.get_annotations(self.fn, eval_str=True)
        fields: dict[str, Any] = {}
        for number, parameter in enumerate(self._parameters):
            default = ... if parameter.default is parameter.empty else parameter.default
            hint = hints.get(parameter.name, Any)
            fields[_field(number)] = (hint, Field(default, alias=parameter.name))
        return create_model(f"{self.name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)

    @cached_property
    def parameters(self) -> Mapping[str, Any]:  # type: ignore[override]
        schema: dict[str, Any] = self._model.model_json_schema()
        schema.pop("title", None)
        for prop in schema.get("properties", {}).values():
            prop.pop("title", None)
        return schema

    def execute(self, args: dict[str, Any], env: ToolEnv | None = None) -> ToolResult:
        if inspect.iscoroutinefunction(self.fn):
            return run_coroutine(self._execute_async(args, env))
        return _as_result(self.fn(**self._bind(args, env)))

    async def _execute_async(self, args: dict[str, Any], env: ToolEnv | None = None) -> ToolResult:
        pending: Awaitable[Any] = self.fn(**self._bind(args, env))
        return _as_result(await pending)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)

    def _bind(self, args: dict[str, Any], env: ToolEnv | None) -> dict[str, Any]:
        model = self._model(**args)
        bound = {parameter.name: getattr(model, _field(number)) for number, parameter in enumerate(self._parameters)}
        if self._takes_env:
            bound[self._env_parameter] = env
        return bound


def _is_environment(parameter: inspect.Parameter | None) -> bool:
    if parameter is None:
        return False
    hint = parameter.annotation
    named = hint if isinstance(hint, str) else getattr(hint, "__name__", str(hint))
    return hint is parameter.empty or re.search(r"\b(ToolEnv|RunEnv|Any)\b", named) is not None


def _field(number: int) -> str:
    return f"argument_{number}"


def _as_result(value: Any) -> ToolResult:
    return value if isinstance(value, ToolResult) else ToolResult("" if value is None else str(value))


@overload
def tool(fn: Callable[..., Any], /) -> FunctionTool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    effect: ToolEffect | None = None,
    is_concurrency_safe: bool = False,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(fn: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a tool from a typed function (sync or async): its name, docstring and annotations become the schema.

    The function returns a `ToolResult`, or anything else, whose text becomes the output. Use it bare or with the
    keyword arguments `name`, `description`, `effect` and `is_concurrency_safe`.
    """
    if fn is not None:
        return FunctionTool(fn)
    return lambda function: FunctionTool(function, **options)
