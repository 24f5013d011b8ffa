from __future__ import annotations

import threading
from contextvars import ContextVar
from functools import partial
from typing import Any

import pytest

from chimera.errors import PluginError
from chimera.plugins.guarded import check_synchronous, consent, within

HERE = __file__
VALUE: ContextVar[int] = ContextVar("value", default=0)


def test_what_is_returned_and_raised_comes_out() -> None:
    assert within(5, lambda: 7) == 7
    for failure in (KeyError("x"), TimeoutError("its own"), SystemExit(3), KeyboardInterrupt()):
        with pytest.raises(type(failure)) as caught:
            within(5, partial(_raise, failure))
        assert caught.value is failure


def _raise(failure: BaseException) -> None:
    raise failure


def test_context_variables_are_the_callers() -> None:
    token = VALUE.set(3)
    try:
        assert within(5, VALUE.get) == 3
    finally:
        VALUE.reset(token)


def test_what_takes_too_long_is_told_with_its_place() -> None:
    end = threading.Event()

    def stuck() -> None:
        end.wait(60)

    line = stuck.__code__.co_firstlineno + 1
    try:
        with pytest.raises(PluginError, match=rf"^{HERE}, line {line}: stuck has not returned after 0.05 s$"):
            within(0.05, stuck)
    finally:
        end.set()


@pytest.mark.parametrize("answer", [None, True])
def test_consent_is_given_by_nothing_and_true(answer: Any) -> None:
    consent(5, lambda: answer)


async def _asynchronous() -> bool:
    return True


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (False, "says no$"),
        (0, "says no: 0"),
        ("", "says no: $"),
        ("no key", "says no: no key"),
        (1, ": 1"),
    ],
)
def test_anything_else_is_a_refusal(answer: Any, why: str) -> None:
    def check() -> Any:
        return answer

    with pytest.raises(PluginError, match=rf"^{HERE}, line \d+: check {why}" if "says" in why else why):
        consent(5, check)


def test_what_would_have_to_be_awaited_is_a_refusal() -> None:
    with pytest.raises(PluginError, match="_asynchronous says no: it is asynchronous"):
        consent(5, _asynchronous)
    with pytest.raises(PluginError, match="_asynchronous says no: it is asynchronous"):
        consent(5, partial(_asynchronous))


@pytest.mark.parametrize("name", ["activate", "deactivate", "self_check", "import_state", "register_tools"])
def test_asynchronous_methods_are_named(name: str) -> None:
    async def method(self: Any) -> None: ...

    async def generator(self: Any) -> Any:
        yield

    for body in (method, generator):
        with pytest.raises(PluginError, match=rf"{HERE}, line \d+: {name} is asynchronous"):
            check_synchronous(type("Plugin", (), {name: body})())
    check_synchronous(type("Plugin", (), {name: lambda self: None})())
