"""Where plugins put what they bring: interceptor chains for every agent, components for those who ask for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import BuiltinMethodType, MethodType
from typing import TYPE_CHECKING, Any, ClassVar

from chimera.core.decisions import SEAMS, Chains, Interceptor, Interceptors, check_interceptor
from chimera.core.versions import interceptor_version, versions_in
from chimera.errors import PluginError
from chimera.plugins.ledger import Ledger

if TYPE_CHECKING:
    from chimera.hooks.settings import Hooks

__all__ = ["INTERCEPTOR_SEAMS", "Command", "ComponentRegistry", "PluginExtensionRegistry", "Skill"]

INTERCEPTOR_SEAMS: tuple[str, ...] = SEAMS


class PluginExtensionRegistry:
    """The interceptors that every assembled agent of this process takes up at the start of its next turn.

    Entries stand in the order in which their plugins were loaded, and within a plugin in the order of registration.
    May be used from several threads.
    """

    _ledger: ClassVar[Ledger] = Ledger()

    @classmethod
    def register_interceptor(cls, seam: str, fn: Interceptor) -> Callable[[], None]:
        """Put `fn` at the end of a seam's chain. Registered twice, it runs twice.

        Returns a function that takes just this registration back. Raises `ValueError` for an unknown seam and
        `TypeError` for what is not callable or is asynchronous.
        """
        _check_seam(seam)
        check_interceptor(fn, seam)
        if isinstance(fn, partial):
            check_interceptor(fn.func, seam)
        return cls._ledger.add(seam, "", fn)

    @classmethod
    def unregister_interceptor(cls, seam: str, fn: Interceptor) -> bool:
        """Take one registration of `fn` back, and tell whether there was one.

        A method is known again by its object and function, so that `self._gate` finds what `self._gate` registered.
        Of several registrations the newest goes, the program's own before those of plugins. While a plugin is loaded
        or unloaded, only its own can go.
        Raises `ValueError` for an unknown seam.
        """
        _check_seam(seam)
        found = [entry for entry in reversed(cls._ledger.entries(seam)) if _same(entry.value, fn)]
        found.sort(key=lambda entry: entry.owner is not None)
        return any(cls._ledger.remove(entry) for entry in found)

    @classmethod
    def get_interceptors(cls, seam: str) -> list[Interceptor]:
        """Return the chain of one seam, as a list of the caller's own. Raises `ValueError` for an unknown seam."""
        _check_seam(seam)
        return [entry.value for entry in cls._ledger.entries(seam)]

    @classmethod
    def get_all_interceptors(cls, below: Chains | None = None) -> Interceptors:
        """Return all four chains as they stand at one moment.

        `below` are the chains that a run is held to anyway: plugins that have a say there are left out, in whatever
        version, so that no run is ever held to two versions of one.
        """
        held = {version.family for version in versions_in(below)} if below is not None else set()
        bundle = Interceptors()
        for entry in cls._ledger.entries():
            if entry.kind in INTERCEPTOR_SEAMS and not (held and _family(entry.value) in held):
                getattr(bundle, entry.kind).append(entry.value)
        return bundle

    @classmethod
    @contextmanager
    def unchanged(cls) -> Iterator[None]:
        """Keep all registries of plugins as they are while inside, so that what is read from several of them belongs
        together. Loading and swapping waits for a moment at its very end; do nothing slow here."""
        with cls._ledger.unchanged():
            yield

    @classmethod
    def get_loops(cls) -> dict[str, Callable[..., Any]]:
        """Return the factories of the loops that plugins registered; of two with one name the newer one."""
        return {entry.key: entry.value for entry in cls._ledger.entries("loop")}

    @classmethod
    def _reset(cls) -> None:
        """Forget everything; for tests."""
        cls._ledger.clear()


@dataclass(frozen=True, slots=True)
class Skill:
    """Instructions that an agent can be given for a kind of task: `content` is text for the model."""

    name: str
    description: str = ""
    content: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the interactive session: `handler` takes the text after its name and returns what to show."""

    name: str
    handler: Callable[[str], str | None]
    help: str = ""


class ComponentRegistry:
    """The tools, loops, providers, skills, commands and hooks that the plugins of one manager bring.

    Every `register_*` checks first, then records, and returns a function that takes just that registration back.
    `PluginError` names both owners when a name is taken, and says what is missing when something cannot be used.
    """

    def __init__(self) -> None:
        self._ledger = Ledger(unique=("tool", "loop", "provider", "skill", "command"))

    def register_tool(self, tool: Any) -> Callable[[], None]:
        """Add a tool: an instance with `name`, `description`, `parameters` and `execute`."""
        if isinstance(tool, type):
            raise PluginError(f"register an instance of the tool {tool.__name__}, not its class")
        for part in ("description", "parameters", "execute"):
            if not hasattr(tool, part):
                raise PluginError(f"the tool {_name_of(tool)!r} has no {part}")
        return self._ledger.add("tool", _checked_name(getattr(tool, "name", None), "tool"), tool)

    def register_loop(self, name: str, factory: Callable[..., Any]) -> Callable[[], None]:
        """Add a loop: `factory(config=...)` returns an object that has the methods of `chimera.core.loop.ReAct`.

        Every agent of this process can run it, in a lane that carries its name.
        """
        undo = self._add_callable("loop", name, factory)
        undo_for_all = PluginExtensionRegistry._ledger.add("loop", name, factory)

        def undo_both() -> None:
            undo()
            undo_for_all()

        return undo_both

    def register_provider(self, name: str, factory: Callable[..., Any]) -> Callable[[], None]:
        """Add a provider: `factory(model, ...)` returns a `chimera.providers.base.Provider`."""
        return self._add_callable("provider", name, factory)

    def register_skill(self, skill: Skill) -> Callable[[], None]:
        """Add a skill, or any object with a `name` that serves as one."""
        return self._ledger.add("skill", _checked_name(getattr(skill, "name", None), "skill"), skill)

    def register_command(self, name: str, handler: Callable[[str], str | None], help: str = "") -> Callable[[], None]:
        """Add a command of the interactive session, named without a slash."""
        _check_callable("command", name, handler)
        return self._ledger.add("command", _checked_name(name, "command"), Command(name, handler, help))

    def register_hook(
        self, event: str, command: str, *, matcher: str | None = None, timeout: float | None = None
    ) -> Callable[[], None]:
        """Add a hook: a shell command, as in the hooks of the settings. An event may have several.

        `matcher` limits it to tools (or session sources) that match, `timeout` is in seconds. Raises `ConfigError` for
        an unknown event and for what the settings would not take.
        """
        from chimera.hooks.settings import read_settings

        entry = {"type": "command", "command": command, **({} if timeout is None else {"timeout": timeout})}
        group = {"hooks": [entry], **({} if matcher is None else {"matcher": matcher})}
        ((hook,),) = read_settings({event: [group]}).values()
        return self._ledger.add("hook", event, hook)

    def register_interceptor(self, seam: str, fn: Interceptor) -> Callable[[], None]:
        """Short for `PluginExtensionRegistry.register_interceptor`."""
        return PluginExtensionRegistry.register_interceptor(seam, fn)

    def register_interceptors(self, bundle: Interceptors) -> Callable[[], None]:
        """Register all chains of `bundle`; what is returned takes them all back."""
        undo = [self.register_interceptor(seam, fn) for seam in SEAMS for fn in getattr(bundle, seam)]

        def undo_all() -> None:
            for step in reversed(undo):
                step()

        return undo_all

    @property
    def tools(self) -> list[Any]:
        return self._values("tool")

    @property
    def skills(self) -> list[Any]:
        return self._values("skill")

    @property
    def loops(self) -> dict[str, Callable[..., Any]]:
        return self._named("loop")

    @property
    def providers(self) -> dict[str, Callable[..., Any]]:
        return self._named("provider")

    @property
    def commands(self) -> dict[str, Command]:
        return self._named("command")

    @property
    def hooks(self) -> Hooks:
        """The hooks by event, in order, as `chimera.hooks.HookRunner` takes them."""
        found: Hooks = {}
        for entry in self._ledger.entries("hook"):
            found[entry.key] = (*found.get(entry.key, ()), entry.value)
        return found

    def _add_callable(self, kind: str, name: str, value: Callable[..., Any]) -> Callable[[], None]:
        _check_callable(kind, name, value)
        return self._ledger.add(kind, _checked_name(name, kind), value)

    def _values(self, kind: str) -> list[Any]:
        return [entry.value for entry in self._ledger.entries(kind)]

    def _named(self, kind: str) -> dict[str, Any]:
        return {entry.key: entry.value for entry in self._ledger.entries(kind)}


def _family(fn: Interceptor) -> int | None:
    version = interceptor_version(fn)
    return version.family if version else None


def _check_seam(seam: str) -> None:
    if seam not in INTERCEPTOR_SEAMS:
        raise ValueError(f"unknown interceptor seam {seam!r}; the seams are {', '.join(INTERCEPTOR_SEAMS)}")


def _check_callable(kind: str, name: object, value: object) -> None:
    if not callable(value):
        raise PluginError(f"the {kind} {name!r} must be callable, not {type(value).__name__}")


def _checked_name(name: object, kind: str) -> str:
    if not isinstance(name, str) or not name.strip():
        raise PluginError(f"a {kind} needs a name, not {name!r}")
    return name


def _name_of(value: object) -> str:
    return str(getattr(value, "name", "") or type(value).__name__)


def _same(first: object, second: object) -> bool:
    """Tell whether two callables are one: methods by object and function, all else by identity, never by equality."""
    if first is second:
        return True
    if isinstance(first, MethodType) and isinstance(second, MethodType):
        return first.__self__ is second.__self__ and first.__func__ is second.__func__
    if isinstance(first, BuiltinMethodType) and isinstance(second, BuiltinMethodType):
        return first.__self__ is second.__self__ and first.__name__ == second.__name__
    return False
