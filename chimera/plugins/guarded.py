"""Calling a plugin's own methods: with a limit on the time they take, and with a close look at what they answer."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import Any, TypeVar

from chimera.errors import PluginError
from chimera.plugins.failures import defined_at, last_place

__all__ = ["check_synchronous", "consent", "within"]

T = TypeVar("T")
_METHODS = ("activate", "deactivate", "self_check", "export_state", "import_state")


def within(seconds: float, fn: Callable[[], T]) -> T:
    """Call `fn` in a thread of its own, with the caller's context variables, and return what it returns.

    Raises what it raises, and `PluginError` that says where it is when it takes longer; it is then left to itself.
    """
    outcome: Future[T] = Future()
    context = copy_context()

    def work() -> None:
        try:
            outcome.set_result(context.run(fn))
        except BaseException as exc:
            outcome.set_exception(exc)

    thread = Thread(target=work, name=f"chimera-{_name(fn)}", daemon=True)
    thread.start()
    try:
        return outcome.result(seconds)
    except TimeoutError:
        if outcome.done():  # it raised this itself, or was just in time
            return outcome.result()
    raise PluginError(f"{_where(thread) or defined_at(fn)}: {_name(fn)} has not returned after {seconds:g} s")


def consent(seconds: float, fn: Callable[[], Any]) -> None:
    """Call a method that says no by raising or by returning anything but None and True. Raises `PluginError` then."""
    answer = within(seconds, fn)
    if answer is None or answer is True:
        return
    close = getattr(answer, "close", None)
    if inspect.iscoroutine(answer) and close is not None:
        close()
        answer = "it is asynchronous, and nobody awaits it"
    why = "" if answer is False else f": {answer}"
    raise PluginError(f"{defined_at(fn)}: {_name(fn)} says no{why}")


def check_synchronous(plugin: Any) -> None:
    """Raise `PluginError` for a plugin whose methods would have to be awaited: nothing in them would ever happen."""
    register = [name for name in dir(type(plugin)) if name.startswith("register_")]
    for name in (*_METHODS, *register):
        method = getattr(plugin, name, None)
        if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
            raise PluginError(f"{defined_at(method)}: {name} is asynchronous; make it a plain function")


def _where(thread: Thread) -> str:
    frame = sys._current_frames().get(thread.ident or 0)
    return last_place(traceback.extract_stack(frame)) if frame is not None else ""


def _name(fn: Any) -> str:
    return str(getattr(fn, "__name__", None) or getattr(getattr(fn, "func", None), "__name__", "the call"))
