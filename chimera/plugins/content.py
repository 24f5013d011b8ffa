"""What a plugin is made of: the modules of its package that it imports, their sources, and a digest of those."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.util import resolve_name
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["Content", "mentioned"]

_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Content:
    """The sources of one version, as they were imported. `files` has a digest for each file."""

    digest: str = ""
    files: Mapping[Path, str] = field(default_factory=dict)

    @classmethod
    def of(cls, start: str, covers: Callable[[str], bool]) -> Content:
        """Return the content of the plugin in the module `start`: of those modules that `covers` names, all that it
        imports, directly or through others, also inside functions."""
        root = start.rpartition(".")[0] or start
        files, whole = {}, sha256()
        for name in sorted(mentioned(start, covers)):
            path, source = _source(sys.modules.get(name))
            if path is not None:
                files[path] = digest = _digest(source)
                whole.update(f"{name.removeprefix(root)}={digest};".encode())
        return cls(whole.hexdigest()[:_DIGITS] if files else "", files)

    def now(self) -> dict[Path, str]:
        """Return the digests that the files have now; an empty text for one that cannot be read."""
        return {path: _digest(_read(path)) for path in self.files}

    @property
    def outdated(self) -> bool:
        """True when a file is another one than was imported."""
        return self.now() != self.files


def mentioned(start: str, covers: Callable[[str], bool]) -> set[str]:
    """Return the names of covered modules that the imported module `start` needs, as far as its sources say, itself
    included. Names that are no modules may be among them."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name in found or not covers(name):
            continue
        found.add(name)
        waiting += _with_parents(name)
        module = sys.modules.get(name)
        if module is not None:
            waiting += _imports(module, _source(module)[1] or b"")
    return found


def _imports(module: ModuleType, source: bytes) -> Iterator[str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # the file is no longer what was imported
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from _from(node, module.__package__ or "")


def _from(node: ast.ImportFrom, package: str) -> Iterable[str]:
    try:
        base = resolve_name("." * node.level + (node.module or ""), package)
    except ImportError:  # beyond the top: a line that was never run
        return ()
    return (base, *(f"{base}.{alias.name}" for alias in node.names))


def _with_parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]


def _source(module: ModuleType | None) -> tuple[Path | None, bytes | None]:
    """Return the file of a module and its source: what was compiled, where that is known, else what is there now."""
    file = getattr(module, "__file__", None)
    if not file or not file.endswith(".py"):
        return None, None
    loader: Any = getattr(module, "__loader__", None)
    source = getattr(loader, "source", None)
    path = Path(file)
    return path, source if isinstance(source, bytes) else _read(path)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _digest(source: bytes | None) -> str:
    return "" if source is None else sha256(source).hexdigest()
