"""What interceptors say, what they say it about, and how chains are bundled."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Literal, NamedTuple

from chimera.frozen import quick_init
from chimera.types import Message

__all__ = [
    "SEAMS",
    "Chains",
    "InterceptDecision",
    "Interceptor",
    "Interceptors",
    "ProviderRequest",
    "check_interceptor",
    "interceptor_name",
    "merge_interceptors",
]

Interceptor = Callable[..., "InterceptDecision | None"]
DecisionKind = Literal["allow", "replace", "block"]


@quick_init
@dataclass(frozen=True, slots=True)
class InterceptDecision:
    """A verdict. Make one with `allow`, `replace` or `block`; returning None from an interceptor means allow."""

    kind: DecisionKind
    value: Any = None
    reason: Any = None

    @staticmethod
    def allow() -> InterceptDecision:
        """Let the value pass as it is."""
        return _ALLOW

    @staticmethod
    def replace(value: Any) -> InterceptDecision:
        """Put `value` in its place: a value of the type that the seam hands out."""
        return InterceptDecision("replace", value)

    @staticmethod
    def block(reason: Any = None) -> InterceptDecision:
        """Stop here. `reason` is read by people and by the model; a block holds whatever it contains."""
        return InterceptDecision("block", None, reason)


_ALLOW = InterceptDecision("allow")


@quick_init
@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """The whole envelope of one provider call.

    `kwargs` go to the provider's `complete` or `stream` as they are. `headers` is None where the provider has no
    header surface; headers that an interceptor puts in its place belong to this one call.
    """

    model: str
    messages: list[Message]
    tools: Sequence[Mapping[str, Any]] | None = None
    kwargs: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] | None = None


@dataclass
class Interceptors:
    """Four chains of plain synchronous callables, one a seam. Any iterable will do; it is kept as a list.

    Raises `TypeError` for a coroutine function and for anything that cannot be called. A run reads the chains when it
    starts: what is appended while it runs counts from the next run on.
    """

    context: list[Interceptor] = field(default_factory=list)
    provider_request: list[Interceptor] = field(default_factory=list)
    tool_call: list[Interceptor] = field(default_factory=list)
    tool_result: list[Interceptor] = field(default_factory=list)

    def __post_init__(self) -> None:
        for seam in SEAMS:
            chain = getattr(self, seam)
            if not isinstance(chain, list):
                chain = list(chain or ())
                setattr(self, seam, chain)
            for fn in chain:
                check_interceptor(fn, seam)

    def __bool__(self) -> bool:
        return bool(self.context or self.provider_request or self.tool_call or self.tool_result)


SEAMS: tuple[str, ...] = tuple(item.name for item in fields(Interceptors))


class Chains(NamedTuple):
    """The chains that one run is held to: a snapshot that nobody can edit while the run lasts."""

    context: tuple[Interceptor, ...] = ()
    provider_request: tuple[Interceptor, ...] = ()
    tool_call: tuple[Interceptor, ...] = ()
    tool_result: tuple[Interceptor, ...] = ()

    @classmethod
    def of(cls, bundle: Interceptors | None) -> Chains:
        if bundle is None:
            return cls()
        return cls(*(tuple(getattr(bundle, seam)) for seam in SEAMS))

    def as_interceptors(self) -> Interceptors | None:
        """Return the same chains as a bundle, None when all four are empty."""
        return Interceptors(*(list(chain) for chain in self)) if any(self) else None


def merge_interceptors(*bundles: Interceptors | None) -> Interceptors | None:
    """Join bundles, seam by seam, in the order given.

    None and empty bundles add nothing. Returns None when nothing is left, and the very same object when one bundle is.
    Raises `TypeError` for anything else than a bundle.
    """
    for bundle in bundles:
        if bundle is not None and not isinstance(bundle, Interceptors):
            raise TypeError(f"only Interceptors can be merged, not {type(bundle).__name__}")
    present = [bundle for bundle in bundles if bundle]
    if len(present) <= 1:
        return present[0] if present else None
    return Interceptors(*([fn for bundle in present for fn in getattr(bundle, seam)] for seam in SEAMS))


def check_interceptor(fn: object, seam: str) -> None:
    """Refuse what can never decide: raises `TypeError` for a coroutine function or something that is not callable."""
    name = interceptor_name(fn)
    if not callable(fn):
        raise TypeError(f"an interceptor of the {seam} seam must be callable, not {name}")
    inner: Any = fn
    while isinstance(inner, partial | staticmethod):
        inner = inner.func if isinstance(inner, partial) else inner.__func__
    call = getattr(inner, "__call__", None)  # noqa: B004 - the method itself is looked at, for objects that are callable
    for candidate in (inner, call):
        if inspect.iscoroutinefunction(candidate) or inspect.isasyncgenfunction(candidate):
            raise TypeError(
                f"the {seam} interceptor {name} is asynchronous; interceptors run inside synchronous code and are not "
                "awaited: make it a plain function"
            )


def interceptor_name(fn: object) -> str:
    """Return the name that events and texts call `fn` by, whatever `fn` does when it is looked at."""
    try:
        inner = getattr(fn, "func", None)
        name = getattr(fn, "__qualname__", None) or getattr(inner, "__qualname__", None)
    except Exception:  # an object that forbids being looked at still has a class
        name = None
    return name if isinstance(name, str) else type(fn).__qualname__
