"""Work, lint, feed back what the linter says, fix, and lint again."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial
from typing import Any

from chimera.core.context import Context
from chimera.core.effects import Ask, Consulting, Outcome
from chimera.core.engine import Program
from chimera.core.loop import Loop
from chimera.core.loops._command import Finished, run_command
from chimera.core.loops._parts import Wrapper, at_least
from chimera.errors import MisuseError, OutsideError
from chimera.types import Message

__all__ = ["LintFeedbackLoop"]

_DEFAULT_ARGS = {"ruff": ("check", ".")}
_FIX = "The linter ({command}) ended with status {status}:\n{output}\nFix what it reports."


class LintFeedbackLoop(Wrapper):
    """Run `inner`, lint the project, and have `inner` fix what is reported, for at most `max_lint_rounds` rounds.

    The linter is the command `linter` with `lint_args` (`check .` for ruff and nothing for others, unless given), run
    in the project folder without a shell for at most `lint_timeout` seconds. Its name is looked up on the path; one
    with a slash in it is taken from the project folder. Exit status 0 means that the project is clean, whatever is
    printed. The run succeeds when `inner` did and the linter is content; a linter that cannot be run makes it fail. A
    run is held to what `inner` (a ReAct without a configuration, unless given) is held to; the linter itself is chosen
    by the program and not by the model, so no policy is asked about it.
    """

    name = "lint-feedback"

    def __init__(
        self,
        inner: Loop | None = None,
        linter: str = "ruff",
        lint_args: Sequence[str] | None = None,
        max_lint_rounds: int = 3,
        *,
        lint_timeout: float = 120.0,
    ) -> None:
        super().__init__(inner)
        at_least(0, max_lint_rounds=max_lint_rounds)
        if isinstance(lint_args, str):
            raise MisuseError("lint_args is a list of arguments, not one text")
        self.linter = linter
        self.lint_args = tuple(_DEFAULT_ARGS.get(linter, ()) if lint_args is None else lint_args)
        self.max_lint_rounds, self.lint_timeout = max_lint_rounds, lint_timeout

    def program(self, context: Context) -> Program:
        outcome = yield from self.inner.program(context)
        for left in reversed(range(self.max_lint_rounds + 1)):
            if not outcome.success:
                return outcome
            try:
                done = yield from self._lint()
            except OutsideError as exc:
                return Outcome(outcome.output, False, f"the project was not linted: {exc}", "lint_unavailable")
            if done.status == 0:
                return outcome
            if left:
                text = _FIX.format(command=self._command, status=done.status, output=done.output)
                context.add(Message.user(text))
                outcome = yield from self.inner.program(context)
        error = f"{self._command} still ends with status {done.status}:\n{done.output}"
        return Outcome(outcome.output, False, error, "lint_failed")

    @property
    def _command(self) -> str:
        return " ".join((self.linter, *self.lint_args))

    def _lint(self) -> Generator[Ask, Any, Finished]:
        done: Finished = yield Consulting(partial(run_command, (self.linter, *self.lint_args), self.lint_timeout))
        return done
