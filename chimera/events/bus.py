"""The event bus: many observers, none of whom can break what they observe."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from threading import Lock

from chimera.events.types import Event

__all__ = ["EventBus", "EventMiddleware", "Subscriber"]

Subscriber = Callable[[Event], object]
EventMiddleware = Callable[[Event], Event | None]

_log = logging.getLogger("chimera.events")


class EventBus:
    """Hands each published event to its subscribers, through the middleware, in order of registration.

    A subscriber that raises is logged and skipped. A middleware that raises or answers with anything but an event or
    None is logged and the event is dropped: an observer that misses a record is better than a record that skipped its
    redaction. May be used from several threads.
    """

    def __init__(self) -> None:
        self._subscribers: tuple[tuple[str, Subscriber], ...] = ()
        self._middleware: tuple[EventMiddleware, ...] = ()
        self._lock = Lock()

    def subscribe(self, event_type: str | type[Event], fn: Subscriber) -> Callable[[], None]:
        """Call `fn` with every event of `event_type`: its `type` text, its class, or `"*"` for all.

        Returns a function that takes just this subscription back. Raises `TypeError` for what cannot be called or would
        have to be awaited.
        """
        _check(fn, "subscriber")
        entry = (event_type if isinstance(event_type, str) else _type_of(event_type), fn)
        with self._lock:
            self._subscribers = (*self._subscribers, entry)

        def undo() -> None:
            with self._lock:
                self._subscribers = tuple(item for item in self._subscribers if item is not entry)

        return undo

    def use(self, middleware: EventMiddleware, *, first: bool = False) -> Callable[[], None]:
        """Pass every event through `middleware`; it returns the event to publish, or None to drop it.

        Several run in the order in which they were added; with `first` this one runs before those that are there.
        Returns a function that takes just this registration back. Raises `TypeError` for what cannot be called or would
        have to be awaited.
        """
        _check(middleware, "middleware")
        entry = _Entry(middleware)
        with self._lock:
            self._middleware = (entry, *self._middleware) if first else (*self._middleware, entry)

        def undo() -> None:
            with self._lock:
                self._middleware = tuple(item for item in self._middleware if item is not entry)

        return undo

    def uses(self, kind: type) -> bool:
        """Tell whether a middleware of this class is in place."""
        return any(isinstance(getattr(item, "fn", item), kind) for item in self._middleware)

    def wants(self, event_type: str) -> bool:
        """Tell whether anybody listens to `event_type`; nobody needs to build an event that nobody hears."""
        return any(wanted in (event_type, "*") for wanted, _ in self._subscribers)

    def publish(self, event: Event) -> None:
        """Hand `event` on. Only `BaseException`s that are no `Exception` (an interrupt, a cancellation) come out."""
        subscribers = self._subscribers
        if not subscribers:
            return
        for middleware in self._middleware:
            passed = _apply(middleware, event)
            if passed is None:
                return
            event = passed
        for wanted, fn in subscribers:
            if wanted == event.type or wanted == "*":
                _call(fn, event)


class _Entry:
    """One registration, told apart from another one of the same callable."""

    __slots__ = ("fn",)

    def __init__(self, fn: EventMiddleware) -> None:
        self.fn = fn

    def __call__(self, event: Event) -> Event | None:
        return self.fn(event)


def _type_of(event_class: type[Event]) -> str:
    default = event_class.__dataclass_fields__["type"].default
    return "*" if event_class is Event else str(default)


def _apply(middleware: EventMiddleware, event: Event) -> Event | None:
    try:
        result = middleware(event)
    except Exception:
        _log.warning("an event middleware raised; the %s event is dropped", event.type, exc_info=True)
        return None
    if result is None or isinstance(result, Event):
        return result
    _close(result)
    _log.warning("an event middleware returned %s; the %s event is dropped", type(result).__name__, event.type)
    return None


def _call(fn: Subscriber, event: Event) -> None:
    try:
        result = fn(event)
    except Exception:
        _log.warning("a subscriber of %s events raised and is skipped", event.type, exc_info=True)
        return
    if _close(result):
        _log.warning("a subscriber of %s events returned a coroutine, which nobody awaits", event.type)


def _check(fn: object, what: str) -> None:
    if not callable(fn):
        raise TypeError(f"a {what} must be callable, not {type(fn).__name__}")
    if inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None)):  # noqa: B004
        raise TypeError(f"a {what} is called and not awaited: make it a plain function")


def _close(result: object) -> bool:
    if not inspect.iscoroutine(result):
        return False
    result.close()
    return True
