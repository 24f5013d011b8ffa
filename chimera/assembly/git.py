"""Asking git: the state of a folder as a tree of git, without touching the index, the branches or the configuration."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock

from chimera.assembly.edits import Edit
from chimera.errors import OutsideError

__all__ = ["Git", "find_git", "forget_worktrees"]

_SETTINGS = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "core.safecrlf=false", "advice.addEmbeddedRepo=false")
_QUIET = tuple(word for setting in _SETTINGS for word in ("-c", setting))
_ATTEMPTS = 4
_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "chimera"), ("EMAIL", "chimera@localhost"), ("DATE", "2000-01-01T00:00:00Z"))
}
_KINDS = {"A": "added", "D": "deleted"}


def find_git(project: Path) -> Git | None:
    """Return git at the work tree that `project` is in; None where there is none, or it leaves the project out."""
    if shutil.which("git") is None:
        return None
    try:
        folder, common, top = (
            _run(project, "rev-parse", f"--{what}").removesuffix("\n")
            for what in ("absolute-git-dir", "git-common-dir", "show-toplevel")
        )
    except OutsideError:  # it is no repository, or one that git does not trust
        return None
    if _ignored(project):
        return None
    git = Git(Path(folder), (project / common).resolve(), Path(top).resolve())
    return git if project.is_relative_to(git.top) else None


def _ignored(project: Path) -> bool:
    done = _start(project, ("check-ignore", "-q", "."), {})
    return done.returncode == 0


class Git:
    """A work tree at `top`. `folder` is its own folder in the repository, `common` that of the repository itself."""

    def __init__(self, folder: Path, common: Path, top: Path) -> None:
        self.folder, self.common, self.top = folder, common, top
        self._looking = Lock()

    def tree_of(self, work_tree: Path, index: Path) -> str:
        """Return the id of the tree that `work_tree` is now, with what is untracked and without what is ignored.

        `index` is the index that is used, and kept, for that; it need not exist.
        """
        environment = {"GIT_INDEX_FILE": str(index)}
        with self._looking:
            for _ in range(_ATTEMPTS - 1):
                with suppress(OutsideError):  # a file may vanish while git looks at it: somebody works there
                    self.run(work_tree, "add", "-A", "--", ".", environment=environment)
                    break
            else:
                self.run(work_tree, "add", "-A", "--", ".", environment=environment)
            return self.run(work_tree, "write-tree", environment=environment).strip()

    def own_index(self) -> Path:
        """Return the index of the work tree, to be copied and not to be written to."""
        return self.top / self.run(self.top, "rev-parse", "--git-path", "index").removesuffix("\n")

    def has_modules(self, tree: str) -> bool:
        """Tell whether the tree holds other repositories, which a work tree would be made without."""
        listed = self.run(self.top, "ls-tree", "-r", "-z", tree)
        return any(entry.startswith("160000 ") for entry in listed.split("\0"))

    def commit(self, tree: str) -> str:
        """Return the id of a commit of the tree on top of the current one, which no branch knows."""
        head = _start(self.top, (*self._place(self.top), "rev-parse", "-q", "--verify", "HEAD^{commit}"), {})
        above = ("-p", _text(head.stdout).strip()) if head.returncode == 0 else ()
        words = ("commit-tree", tree, *above, "-m", "The project as it stands")
        return self.run(self.top, *words, environment=_IDENTITY).strip()

    def edits(self, before: str, after: str, prefix: str) -> list[Edit]:
        """Return what is different in the folder `prefix` (empty: everywhere), by paths relative to it."""
        words = ("diff-tree", "-r", "-z", "--no-renames", "--name-status", before, after)
        fields = self.run(self.top, *words, *_only(prefix)).split("\0")[:-1]
        cut = len(prefix) + 1 if prefix else 0
        pairs = zip(fields[::2], fields[1::2], strict=True)
        return sorted(Edit(path[cut:], _KINDS.get(kind, "modified")) for kind, path in pairs)  # type: ignore[arg-type]

    def diff(self, before: str, after: str, prefix: str) -> str:
        """Return the difference in unified form."""
        relative = (f"--relative={prefix}",) if prefix else ()
        words = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", *relative, before, after)
        return self.run(self.top, *words)

    def add_worktree(self, path: Path, commit: str) -> None:
        """Make a work tree of its own at `path`, on no branch."""
        repository = f"--git-dir={self.common}"
        _run(self.common, repository, "worktree", "add", "--detach", str(path), commit)

    def run(self, cwd: Path, *words: str, environment: Mapping[str, str] | None = None) -> str:
        """Run a command on `cwd` as the work tree, and return what it prints. Raises `OutsideError` when it fails."""
        return _run(cwd, *self._place(cwd), *words, environment=environment)

    def _place(self, work_tree: Path) -> tuple[str, ...]:
        return (f"--git-dir={self.folder}", f"--work-tree={work_tree}")


def forget_worktrees(common: Path, below: Path) -> None:
    """Let the repository `common` forget the work trees below a folder, which are gone already."""
    repository = f"--git-dir={common}"
    for line in _run(common, repository, "worktree", "list", "--porcelain").splitlines():
        path = line.removeprefix("worktree ")
        if path != line and Path(path).is_relative_to(below):
            _run(common, repository, "worktree", "remove", "--force", "--force", path)


def _only(prefix: str) -> tuple[str, ...]:
    return ("--", f":(top,literal){prefix}") if prefix else ()


def _run(cwd: Path, *words: str, environment: Mapping[str, str] | None = None) -> str:
    done = _start(cwd, words, environment or {})
    if done.returncode:
        command = next((word for word in words if not word.startswith("-")), "")
        raise OutsideError(f"git {command} failed: {_text(done.stderr).strip() or f'exit code {done.returncode}'}")
    return _text(done.stdout)


def _start(cwd: Path, words: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    quiet = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        return subprocess.run(
            ["git", *_QUIET, *words],
            cwd=cwd,
            env={**own, **quiet, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError as problem:
        raise OutsideError(f"git cannot be started in {cwd}: {problem.strerror}") from problem


def _text(output: bytes) -> str:
    """Return what git prints; names that are no text survive the way there and back."""
    return output.decode("utf-8", "surrogateescape")
