"""Providers and tools are called by the drivers alone, and each seam stands at one line of the flows."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.architecture.source import parse, python_files, walk_scopes

DRIVERS = "chimera/core/drivers.py"
FLOWS = "chimera/core/flows.py"
PROVIDER_METHODS = frozenset({"complete", "async_complete", "stream", "async_stream"})
TOOL_METHODS = frozenset({"execute", "async_execute"})
SEAMS = ("intercept_context", "intercept_provider_request", "intercept_tool_call", "intercept_tool_result")
SEAM_HOMES = frozenset({"chimera/core/interception.py", "chimera/core/seams.py"})
BY_NAME = frozenset({"getattr", "attrgetter", "methodcaller"})


@dataclass(frozen=True, slots=True, order=True)
class Site:
    """A place that reaches for a method: the file, the dotted name of the function, and the method."""

    file: str
    scope: str
    name: str


# Places that reach for such a method without running a model or a tool past the drivers. Every entry says why.
# The list may shrink; an entry that nothing matches any more fails the test.
ALLOWED: dict[Site, str] = {
    Site("chimera/core/tool.py", "BaseTool.execute", "async_execute"): "a tool's own other half",
    Site("chimera/core/tool.py", "BaseTool.async_execute", "execute"): "a tool's own other half",
    Site("chimera/providers/base.py", "Provider.stream", "complete"): "a provider's default, built on its own method",
    Site("chimera/providers/base.py", "Provider.async_complete", "complete"): "the same",
    Site("chimera/providers/base.py", "Provider.async_stream", "async_complete"): "the same",
}


def reached(tree: ast.AST, methods: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield (scope, method) wherever one of `methods` is read from an object, by a dot or by its name as a text."""
    for scope, node in walk_scopes(tree):
        match node:
            case ast.Attribute(attr=name, ctx=ast.Load()) if name in methods:
                yield scope, name
            case ast.Call(func=ast.Name(id=function) | ast.Attribute(attr=function), args=arguments):
                texts = {arg.value for arg in arguments if isinstance(arg, ast.Constant) and isinstance(arg.value, str)}
                for name in sorted(texts & methods if function in BY_NAME else ()):
                    yield scope, name


def sites() -> set[Site]:
    methods = PROVIDER_METHODS | TOOL_METHODS
    return {Site(file, *found) for file in python_files("chimera") for found in reached(parse(file), methods)}


def seam_uses(tree: ast.AST, seam: str) -> Iterator[str]:
    """Yield the scope of every mention of a seam function that is no import and no text."""
    for scope, node in walk_scopes(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()) if name == seam:
                yield scope


def test_nobody_but_the_drivers_calls_providers_and_tools() -> None:
    strangers = {site for site in sites() if site.file != DRIVERS} - set(ALLOWED)
    assert not strangers, "run these through a flow and a driver, so that they meet the seams"


def test_the_allowlist_is_not_stale() -> None:
    assert not set(ALLOWED) - sites(), "these places are gone; take them off the list"


@pytest.mark.parametrize("method", sorted(PROVIDER_METHODS - {"stream"} | TOOL_METHODS))
def test_the_drivers_do_call_them(method: str) -> None:
    """Guards the tests above: drivers that moved elsewhere would let them pass for want of anything to find."""
    assert method in {name for _, name in reached(parse(DRIVERS), frozenset({method}))}


@pytest.mark.parametrize("seam", SEAMS)
def test_each_seam_stands_at_one_line(seam: str) -> None:
    uses = Counter(file for file in python_files("chimera") for _ in seam_uses(parse(file), seam))
    outside = {file: count for file, count in uses.items() if file not in SEAM_HOMES}
    assert outside == {FLOWS: 1}


@pytest.mark.parametrize(
    "code",
    [
        "def f(p): return p.complete([])",
        "async def f(p): return await p.async_complete([])",
        "def f(p): return run(p.complete)",
        "def f(p): return getattr(p, 'complete')([])",
        "def f(t): return operator.methodcaller('execute', {})(t)",
        "class A:\n    def f(self): return [t.execute({}, None) for t in self.tools]",
        "f = lambda t: t.async_execute({})",
    ],
)
def test_the_search_finds_what_it_must(code: str) -> None:
    assert len(list(reached(ast.parse(code), PROVIDER_METHODS | TOOL_METHODS))) == 1


@pytest.mark.parametrize(
    "code",
    ["class A:\n    def execute(self): return complete", "'complete'", "a.complete = 1", "print('execute')"],
)
def test_the_search_leaves_other_code_alone(code: str) -> None:
    assert not list(reached(ast.parse(code), PROVIDER_METHODS | TOOL_METHODS))


@pytest.mark.parametrize(
    "code", ["intercept_context([], m)", "seams.intercept_context([], m)", "map(intercept_context)"]
)
def test_the_search_finds_seams(code: str) -> None:
    assert list(seam_uses(ast.parse(code), "intercept_context")) == [""]
